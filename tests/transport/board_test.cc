// SPDX-License-Identifier: Apache-2.0
#include "transport/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tests/support/arena_board.h"
#include "tests/support/heap_board.h"
#include "tests/support/processes.h"
#include "tests/support/threads.h"

namespace axon {
namespace {

using ::testing::AllOf;

using ::testing::HasSubstr;

constexpr size_t kArena = size_t{1} << 20;

std::string Text(const absl::Status& status) {
  return std::string(status.message());
}

TEST(BoardReferences, LeadPeersToTheSameMemory) {
  ArenaBoard arenas(2, kArena);
  std::byte* p = *arenas.arena(0).Allocate(100);
  p[99] = std::byte{42};
  const Ref ref = arenas.board(0).RefOf(p, 100);
  ASSERT_NE(ref, 0u);
  std::byte* seen = arenas.board(1).Address(0, ref, 100);
  ASSERT_NE(seen, nullptr);
  EXPECT_NE(seen, p) << "it is mapped elsewhere";
  EXPECT_EQ(seen[99], std::byte{42});
}

TEST(BoardReferences, ArenaEndsAreIn) {
  ArenaBoard arenas(2, kArena);
  const Board& board = arenas.board(0);
  const std::byte* base = arenas.arena(0).base();
  EXPECT_NE(board.RefOf(base, kArena), 0u);
  EXPECT_NE(board.RefOf(base + kArena, 0), 0u);
  EXPECT_EQ(board.RefOf(base + 1, kArena), 0u);
  EXPECT_EQ(board.RefOf(base + kArena, 1), 0u);
  EXPECT_EQ(board.RefOf(base, ~size_t{0}), 0u);
}

TEST(BoardReferences, PrivateMemoryHasNone) {
  ArenaBoard arenas(2, kArena);
  const std::vector<std::byte> mine(100);
  EXPECT_EQ(arenas.board(0).RefOf(mine.data(), mine.size()), 0u);
  EXPECT_EQ(arenas.board(0).RefOf(nullptr, 0), 0u);
  EXPECT_EQ(arenas.board(0).RefOf(arenas.arena(1).base(), 8), 0u)
      << "another rank's arena is not mine to give";
}

TEST(BoardReferences, AreNotTrusted) {
  ArenaBoard arenas(2, kArena);
  const Board& board = arenas.board(1);
  const Ref last = arenas.board(0).RefOf(arenas.arena(0).base() + kArena, 0);
  EXPECT_NE(board.Address(0, last, 0), nullptr);
  EXPECT_EQ(board.Address(0, last, 1), nullptr);
  EXPECT_EQ(board.Address(0, last + 4, 0), nullptr) << "one byte further";
  const Ref first = arenas.board(0).RefOf(arenas.arena(0).base(), 0);
  EXPECT_NE(board.Address(0, first, kArena), nullptr);
  EXPECT_EQ(board.Address(0, first, kArena + 1), nullptr);
  EXPECT_EQ(board.Address(0, first, ~size_t{0}), nullptr);
  EXPECT_EQ(board.Address(0, 0, 0), nullptr);
  EXPECT_EQ(board.Address(0, ~Ref{0}, 0), nullptr);
  // The tag of an address of this process, from a rank of another one.
  int here = 0;
  EXPECT_EQ(board.Address(0, reinterpret_cast<uintptr_t>(&here) << 2 | 2, 4),
            nullptr);
  EXPECT_EQ(board.InArena(0, kArena, 1), nullptr);
  EXPECT_EQ(board.InArena(0, ~uint64_t{0}, 1), nullptr);
  EXPECT_NE(board.InArena(0, kArena - 1, 1), nullptr);
}

TEST(BoardReferences, RanksOfOneProcessShareAll) {
  HeapBoard heap(2, kArena, /*shared=*/true);
  EXPECT_TRUE(heap.board(0).one_process());
  std::vector<std::byte> mine(100);
  const Ref ref = heap.board(0).RefOf(mine.data(), mine.size());
  ASSERT_NE(ref, 0u);
  EXPECT_EQ(heap.board(1).Address(0, ref, mine.size()), mine.data());
}

TEST(BoardFailure, ReachesEveryRankAndNamesTheFinder) {
  HeapBoard heap(3, kArena, false);
  for (int r = 0; r < 3; ++r) {
    EXPECT_FALSE(heap.board(r).failed());
    EXPECT_TRUE(heap.board(r).failure().ok());
  }
  heap.board(1).Fail(absl::DeadlineExceededError("rank 2 is missing"));
  for (int r = 0; r < 3; ++r) {
    EXPECT_TRUE(heap.board(r).failed());
    const absl::Status failure = heap.board(r).failure();
    EXPECT_EQ(failure.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(Text(failure), HasSubstr("rank 2 is missing"));
    if (r != 1) {
      EXPECT_THAT(Text(failure), HasSubstr("found by rank 1 (host test, pid "));
    }
  }
}

TEST(BoardFailure, TheFirstOneIsKept) {
  HeapBoard heap(2, kArena, false);
  heap.board(0).Fail(absl::InternalError("the first"));
  heap.board(0).Fail(absl::AbortedError("the second"));
  heap.board(1).Fail(absl::AbortedError("the third"));
  for (int r = 0; r < 2; ++r) {
    EXPECT_THAT(Text(heap.board(r).failure()), HasSubstr("the first"));
  }
}

// Who is told may give its buffers up; nobody may believe at that time that
// all is well and return what it has read of them.
TEST(BoardFailure, IsSeenByAllAtOneMoment) {
  constexpr int kRanks = 64;
  for (int round = 0; round < 50; ++round) {
    HeapBoard heap(kRanks, 1 << 15, false);
    bool all = true;
    RunRanks(2, [&](int thread) {
      if (thread == 0) {
        heap.board(kRanks - 1).Fail(absl::InternalError("over"));
        return;
      }
      const auto any = [&] {
        for (int r = 0; r < kRanks; ++r) {
          if (heap.board(r).failed()) return true;
        }
        return false;
      };
      while (!any()) std::this_thread::yield();
      for (int r = 0; r < kRanks; ++r) all = all && heap.board(r).failed();
    });
    ASSERT_TRUE(all) << "in round " << round;
  }
}

TEST(BoardFailure, ALongTextIsCutNotSpilt) {
  HeapBoard heap(2, kArena, false);
  heap.board(0).Fail(absl::InternalError(std::string(5000, 'x')));
  EXPECT_EQ(Text(heap.board(0).failure()),
            std::string(sizeof(Block::failure_text) - 1, 'x'));
  EXPECT_EQ(heap.board(0).mine().name[0], 0) << "wrote past the text";
}

TEST(BoardFailure, ASleeperIsWoken) {
  HeapBoard heap(2, kArena, false);
  Doorbell& doorbell = *heap.board(1).member(1).doorbell;
  int64_t slept_ns = 0;
  RunRanks(2, [&](int me) {
    if (me == 0) {
      while (doorbell.sleepers.load() == 0) std::this_thread::yield();
      heap.board(0).Fail(absl::InternalError("over"));
      return;
    }
    const int64_t begin = NowNs();
    while (!heap.board(1).failed() && slept_ns < 20'000'000'000) {
      SleepOn(doorbell, doorbell.rings.load(), 20'000'000);
      slept_ns = NowNs() - begin;
    }
  });
  EXPECT_LT(slept_ns, 20'000'000'000);
}

// All ranks, and two threads of each, fail at once: each rank has one whole
// text, the first that reached it, and keeps it.
TEST(BoardFailure, RacingErrorsDoNotMix) {
  for (int round = 0; round < 50; ++round) {
    HeapBoard heap(3, kArena, false);
    std::vector<std::string> first(6), later(6);
    RunRanks(6, [&](int thread) {
      Board& board = heap.board(thread / 2);
      board.Fail(absl::InternalError(
          std::string(200, static_cast<char>('a' + thread))));
      first[static_cast<size_t>(thread)] = Text(board.failure());
    });
    for (size_t t = 0; t < 6; ++t) {
      later[t] = Text(heap.board(static_cast<int>(t) / 2).failure());
      ASSERT_GE(later[t].size(), 200u);
      ASSERT_EQ(later[t].substr(0, 200), std::string(200, later[t][0]));
      ASSERT_EQ(first[t], later[t]);
    }
  }
}

TEST(BoardFailure, NonsenseFromAPeerIsAnError) {
  HeapBoard heap(2, kArena, false);
  heap.board(0).mine().failed_by.store(77);
  EXPECT_EQ(heap.board(0).failure().code(), absl::StatusCode::kUnavailable);
  // A failure that says that all is well.
  HeapBoard well(2, kArena, false);
  well.board(0).Fail(absl::InternalError("x"));
  well.board(0).mine().failure_code.store(0);
  EXPECT_EQ(well.board(1).failure().code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(Text(well.board(1).failure()), HasSubstr("found by rank 0"));
  // A text without an end.
  HeapBoard other(2, kArena, false);
  other.board(0).Fail(absl::InternalError("x"));
  std::memset(other.board(0).mine().failure_text, 'y',
              sizeof(Block::failure_text));
  EXPECT_THAT(Text(other.board(1).failure()),
              AllOf(HasSubstr(std::string(sizeof(Block::failure_text), 'y')),
                    HasSubstr("found by rank 0")));
}

TEST(BoardTest, LeavingIsSeenByAll) {
  constexpr int kRanks = 70;  // more than one word
  HeapBoard heap(kRanks, kArena, false);
  heap.board(3).Leave();
  heap.board(65).Leave();
  for (int r = 0; r < kRanks; ++r) {
    for (int q = 0; q < kRanks; ++q) {
      ASSERT_EQ(heap.board(r).HasLeft(q), q == 3 || q == 65) << r << " " << q;
    }
  }
}

TEST(BoardTest, OnlyWhoAskedIsRungAndOnce) {
  constexpr int kRanks = 70;
  HeapBoard heap(kRanks, kArena, false);
  const auto rings = [&](int r) {
    return heap.board(r).member(r).doorbell->rings.load();
  };
  heap.board(0).Published();
  heap.board(5).AskToWake(0);
  heap.board(69).AskToWake(0);
  heap.board(6).AskToWake(1);
  heap.board(0).Published();
  heap.board(0).Published();
  for (int r = 0; r < kRanks; ++r) {
    ASSERT_EQ(rings(r), r == 5 || r == 69 ? 1u : 0u) << r;
  }
}

TEST(BoardTest, AskingForRanksThatAreNotIsHarmless) {
  HeapBoard heap(3, kArena, false);
  heap.board(0).mine().sleepers[0].store(~uint64_t{0});
  heap.board(0).Published();
  EXPECT_EQ(heap.board(0).mine().sleepers[0].load(), 0u);
  EXPECT_EQ(heap.board(2).member(2).doorbell->rings.load(), 1u);
}

TEST(BoardTest, DescribesARank) {
  HeapBoard heap(2, kArena, false);
  EXPECT_THAT(heap.board(0).Describe(1),
              AllOf(HasSubstr("rank 1 (host test, pid ")));
}

// Ranks publish counts in turn, and whoever waits asks to be woken and sleeps
// long: a lost wake-up shows as a sleep that lasted to its end.
std::string PublishInTurns(Board& board, uint32_t rounds) {
  constexpr int64_t kLongUs = 20'000'000;
  const int me = board.me(), peer = 1 - me;
  Doorbell& doorbell = *board.member(me).doorbell;
  for (uint32_t i = 1; i <= rounds; ++i) {
    const auto reached = [&] {
      return Reached(board.block(peer).progress.load(std::memory_order_acquire),
                     Count(1, me == 0 ? i - 1 : i));
    };
    while (!reached()) {
      const uint32_t seen = doorbell.rings.load();
      board.AskToWake(peer);
      if (!HeavyFence()) return "no heavy fence";
      if (reached()) break;
      const int64_t begin = NowNs();
      SleepOn(doorbell, seen, kLongUs);
      if (NowNs() - begin >= kLongUs * 1000) {
        return absl::StrCat("rank ", me, " was not woken in round ", i);
      }
    }
    board.mine().progress.store(Count(1, i), std::memory_order_release);
    board.Published();
  }
  return "fine";
}

constexpr uint32_t kTurns = 10'000;

bool HasHeavyFence() {
  RegisterForHeavyFence();
  return HeavyFence();
}

TEST(BoardWakeUps, NoneIsLostAmongThreads) {
  if (!HasHeavyFence()) GTEST_SKIP() << "this kernel has no global membarrier";
  HeapBoard heap(2, kArena, false);
  std::vector<std::string> texts(2);
  RunRanks(2, [&](int me) {
    texts[static_cast<size_t>(me)] = PublishInTurns(heap.board(me), kTurns);
  });
  EXPECT_THAT(texts, testing::Each("fine"));
}

TEST(BoardWakeUps, NoneIsLostAmongProcesses) {
  if (!HasHeavyFence()) GTEST_SKIP() << "this kernel has no global membarrier";
  ArenaBoard arenas(2, kArena);
  const auto texts = RunProcesses(2, 60'000, [&](int me) {
    RegisterForHeavyFence();
    return PublishInTurns(arenas.board(me), kTurns);
  });
  EXPECT_THAT(texts, testing::Each("fine"));
}

}  // namespace
}  // namespace axon
