// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/ring_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/arena_board.h"
#include "tests/support/heap_board.h"
#include "tests/support/processes.h"
#include "tests/transport/conformance.h"

namespace axon {
namespace {

using ::testing::HasSubstr;

constexpr size_t kArena = size_t{1} << 21;

// Rings over a board of either kind.
template <typename AnyBoard>
class RingWorld final : public ChannelWorld {
 public:
  using Take = std::function<absl::StatusOr<std::byte*>(int rank, size_t size)>;

  RingWorld(std::unique_ptr<AnyBoard> boards, size_t ring_size, Take take)
      : boards_(std::move(boards)) {
    const int n = boards_->ranks();
    for (int me = 0; me < n; ++me) {
      for (int peer = 0; peer < n; ++peer) {
        channels_.push_back(std::make_unique<RingChannel>(
            boards_->board(me), peer, ring_size,
            [take, me](size_t size) { return take(me, size); }));
      }
    }
  }
  Channel& channel(int me, int peer) override {
    return *channels_[static_cast<size_t>(me * boards_->ranks() + peer)];
  }
  // The peer says that its ring lies where its arena has ended.
  void Break(int me, int peer) override {
    boards_->board(peer).mine().peer(me)->ring.store(kArena - 64);
  }
  AnyBoard& boards() { return *boards_; }

 private:
  std::unique_ptr<AnyBoard> boards_;
  std::vector<std::unique_ptr<RingChannel>> channels_;
};

std::unique_ptr<RingWorld<HeapBoard>> OnHeap(int ranks, size_t ring_size) {
  auto heap = std::make_unique<HeapBoard>(ranks, kArena, false);
  HeapBoard* board = heap.get();
  return std::make_unique<RingWorld<HeapBoard>>(
      std::move(heap), ring_size, [board](int rank, size_t size) {
        return absl::StatusOr<std::byte*>(board->Allocate(rank, size));
      });
}

std::unique_ptr<RingWorld<ArenaBoard>> InArenas(int ranks, size_t ring_size) {
  auto arenas = std::make_unique<ArenaBoard>(ranks, kArena);
  ArenaBoard* board = arenas.get();
  return std::make_unique<RingWorld<ArenaBoard>>(
      std::move(arenas), ring_size, [board](int rank, size_t size) {
        return board->arena(rank).Allocate(size);
      });
}

INSTANTIATE_TEST_SUITE_P(
    Ring, ChannelConformance,
    testing::Values(
        ChannelKind{"smallest", [](int n) { return OnHeap(n, 256); }},
        ChannelKind{"not_whole_lines", [](int n) { return OnHeap(n, 1000); }},
        ChannelKind{"in_arenas", [](int n) { return InArenas(n, 8192); }}),
    KindName);

// Two processes, each way at once.
TEST(RingChannelProcesses, CarryChecksummedMessages) {
  constexpr uint64_t kMessages = 5000;
  const auto world = InArenas(2, 4096);
  const auto texts = RunProcesses(2, 60'000, [&](int me) -> std::string {
    Channel& channel = world->channel(me, 1 - me);
    const auto mine = static_cast<uint64_t>(me);
    for (uint64_t i = 0; i < kMessages; ++i) {
      const size_t most = channel.max_message();
      if (!SendMessage(channel, mine, i, SizeOfMessage(mine, i, most))) {
        return absl::StrCat("cannot send message ", i);
      }
      const std::string wrong = ReceiveMessage(
          channel, 1 - mine, i, SizeOfMessage(1 - mine, i, most));
      if (!wrong.empty()) return wrong;
    }
    return "fine";
  });
  EXPECT_THAT(texts, testing::Each("fine"));
}

// A rank that dies in the middle of a message leaves nothing half-seen.
TEST(RingChannelProcesses, AnUncommittedMessageOfADeadProcessIsNotSeen) {
  const auto world = InArenas(2, 4096);
  RunProcesses(1, 60'000, [&](int) -> std::string {
    SendMessage(world->channel(0, 1), 1, 0, 100);
    std::byte* place = nullptr;
    world->channel(0, 1).Reserve(100, &place);
    place[0] = std::byte{1};
    _exit(3);
  });
  EXPECT_EQ(ReceiveMessage(world->channel(1, 0), 1, 0, 100), "");
  Bytes message;
  EXPECT_EQ(world->channel(1, 0).TryPeek(&message), Poll::kPending);
}

TEST(RingChannelTest, TakesNoMemoryBeforeTheFirstMessage) {
  const auto world = InArenas(2, 4096);
  Arena& arena = world->boards().arena(0);
  const size_t before = arena.allocated_bytes();
  Bytes message;
  EXPECT_EQ(world->channel(0, 1).TryPeek(&message), Poll::kPending);
  EXPECT_EQ(world->channel(0, 1).Flush(), Poll::kReady);
  EXPECT_EQ(arena.allocated_bytes(), before);
  ASSERT_TRUE(SendMessage(world->channel(0, 1), 1, 0, 8));
  EXPECT_GT(arena.allocated_bytes(), before);
}

TEST(RingChannelTest, SaysThatThereIsNoMemory) {
  HeapBoard heap(2, kArena, false);
  RingChannel channel(heap.board(0), 1, 4096, [](size_t) {
    return absl::StatusOr<std::byte*>(
        absl::ResourceExhaustedError("no 8 KiB left"));
  });
  std::byte* place = nullptr;
  EXPECT_EQ(channel.Reserve(8, &place), Poll::kFailed);
  EXPECT_EQ(channel.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(channel.status().message()),
              HasSubstr("no 8 KiB left"));
}

// What the peer writes is believed only as far as it can be true. Nothing that
// stands in a ring makes the reader look outside it, or look for ever.
class RingChannelNonsense : public testing::Test {
 protected:
  RingChannelNonsense() : world_(OnHeap(2, 1024)) {
    EXPECT_TRUE(SendMessage(world_->channel(0, 1), 1, 0, 8));
    Board& board = world_->boards().board(0);
    ring_ = reinterpret_cast<RingHeader*>(
        board.InArena(0, board.mine().peer(1)->ring.load(), 1024));
    first_ = reinterpret_cast<uint64_t*>(ring_ + 1);
  }
  void ExpectRefused(const char* why) {
    Bytes message;
    ASSERT_EQ(world_->channel(1, 0).TryPeek(&message), Poll::kFailed);
    EXPECT_THAT(std::string(world_->channel(1, 0).status().message()),
                testing::AllOf(HasSubstr("rank 0 (host test"), HasSubstr(why)));
  }
  static constexpr uint64_t kSkip = ~uint64_t{0};

  std::unique_ptr<RingWorld<HeapBoard>> world_;
  RingHeader* ring_;
  uint64_t* first_;  // size of the first message
};

TEST_F(RingChannelNonsense, SizeBeyondTheLargest) {
  *first_ = 5000;
  ExpectRefused("5000 bytes");
}

TEST_F(RingChannelNonsense, SizeBeyondWhatWasSent) {
  *first_ = 200;
  ExpectRefused("200 bytes");
}

TEST_F(RingChannelNonsense, MessageBeyondTheEndOfTheRing) {
  // To the last line: what was sent covers a message that cannot lie there.
  for (uint64_t i = 1; i < 15; ++i) {
    ASSERT_EQ(ReceiveMessage(world_->channel(1, 0), 1, i - 1, 8), "");
    ASSERT_TRUE(SendMessage(world_->channel(0, 1), 1, i, 8));
  }
  ASSERT_EQ(ReceiveMessage(world_->channel(1, 0), 1, 14, 8), "");
  ASSERT_TRUE(SendMessage(world_->channel(0, 1), 1, 15, 8));
  ring_->sent.store(ring_->sent.load() + 512);
  first_[size_t{15} * 64 / 8] = 300;
  ExpectRefused("300 bytes");
}

TEST_F(RingChannelNonsense, SkippingAWholeRing) {
  *first_ = kSkip;
  ExpectRefused("skips");
}

TEST_F(RingChannelNonsense, RingOfAnotherSize) {
  ring_->capacity = 512;
  ExpectRefused("another size");
}

TEST_F(RingChannelNonsense, RingBetweenTwoLines) {
  std::atomic<uint64_t>& ring = world_->boards().board(0).mine().peer(1)->ring;
  ring.store(ring.load() + 8);
  (&ring_->capacity)[1] = ring_->capacity;
  ExpectRefused("the ring of rank 0");
}

TEST_F(RingChannelNonsense, CountsOfBytesSentThatCannotBe) {
  // Less than before, more than the ring holds, no whole lines.
  for (const uint64_t sent : {uint64_t{0} - 64, uint64_t{1024 + 64},
                              uint64_t{1} << 40, uint64_t{68}}) {
    auto world = OnHeap(2, 1024);
    ASSERT_TRUE(SendMessage(world->channel(0, 1), 1, 0, 8));
    Board& board = world->boards().board(0);
    reinterpret_cast<RingHeader*>(
        board.InArena(0, board.mine().peer(1)->ring.load(), 1024))
        ->sent.store(sent);
    world_ = std::move(world);
    ExpectRefused("has sent");
  }
}

TEST_F(RingChannelNonsense, MoreTakenThanWasSent) {
  for (const uint64_t taken : {uint64_t{1} << 40, ~uint64_t{0}}) {
    world_ = OnHeap(2, 1024);
    Channel& channel = world_->channel(0, 1);
    ASSERT_TRUE(SendMessage(channel, 1, 0, 8));
    world_->boards().board(1).mine().peer(0)->taken.store(taken);
    ASSERT_EQ(channel.Flush(), Poll::kFailed);
    EXPECT_THAT(std::string(channel.status().message()),
                testing::AllOf(HasSubstr("rank 1 (host test"),
                               HasSubstr("of 64 that were sent")));
    // A sender that waits for room does not wait for ever.
    std::byte* place = nullptr;
    Poll poll = Poll::kReady;
    for (int i = 0; i < 20 && poll == Poll::kReady; ++i) {
      poll = channel.Reserve(100, &place);
      if (poll == Poll::kReady) channel.Commit();
    }
    EXPECT_EQ(poll, Poll::kFailed);
  }
}

// The halves belong to different threads.
TEST(RingChannelTest, ASendThatFailsLeavesTheReceivingHalfAlone) {
  HeapBoard heap(2, kArena, false);
  RingChannel channel(heap.board(0), 1, 8192, [](size_t) {
    return absl::StatusOr<std::byte*>(absl::ResourceExhaustedError("full"));
  });
  std::byte* place = nullptr;
  Bytes message;
  EXPECT_EQ(channel.TryPeek(&message), Poll::kPending);
  EXPECT_EQ(channel.Reserve(8, &place), Poll::kFailed);
  EXPECT_EQ(channel.status(), absl::ResourceExhaustedError("full"));
  EXPECT_EQ(channel.TryPeek(&message), Poll::kPending);
}

}  // namespace
}  // namespace axon
