// SPDX-License-Identifier: Apache-2.0
// Sends and receives: order, sizes from nothing to many times the channel,
// both directions at once, messages to the own rank, many in flight, streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "axon/axon.h"
#include "tests/api/ranks.h"

namespace axon {
namespace {

// A message that tells who sent it, to whom, and which of theirs it is.
std::vector<int32_t> Letter(int from, int to, int number, size_t count) {
  std::vector<int32_t> letter(count);
  std::iota(letter.begin(), letter.end(),
            ((from * 64 + to) * 512 + number) * 1000);
  return letter;
}

axonResult_t Send(const std::vector<int32_t>& letter, int to, axonComm_t comm,
                  axonStream_t stream = nullptr) {
  return axonSend(letter.data(), letter.size(), axonInt32, to, comm, stream);
}

axonResult_t Receive(std::vector<int32_t>& letter, int from, axonComm_t comm,
                     axonStream_t stream = nullptr) {
  return axonRecv(letter.data(), letter.size(), axonInt32, from, comm, stream);
}

// Fits a channel many times over.
constexpr size_t kLarge = 300'001;

using Start = void (*)(int, const RankBody&);
void AsThreads(int ranks, const RankBody& body) { OnThreads(ranks, body); }
void AsProcesses(int ranks, const RankBody& body) {
  OnProcesses(ranks, {"AXON_CHANNEL_SIZE=16K"}, body);
}

class MessagesTest : public testing::TestWithParam<Start> {};
INSTANTIATE_TEST_SUITE_P(Ranks, MessagesTest,
                         testing::Values(&AsThreads, &AsProcesses),
                         [](const auto& info) {
                           return info.index == 0 ? "threads" : "processes";
                         });

TEST_P(MessagesTest, ArriveInOrder) {
  GetParam()(2, [](axonComm_t comm, int rank) {
    constexpr size_t kCounts[] = {1, 0, 3, 1000, 0, 0, 17, kLarge, 2, 4096};
    for (int n = 0; n < 40; ++n) {
      const size_t count = kCounts[n % 10];
      const std::vector<int32_t> letter = Letter(0, 1, n, count);
      if (rank == 0) {
        ASSERT_AXON_OK(Send(letter, 1, comm));
        continue;
      }
      std::vector<int32_t> got(count, -1);
      ASSERT_AXON_OK(Receive(got, 0, comm));
      ASSERT_EQ(got, letter) << "message " << n;
    }
  });
}

TEST_P(MessagesTest, EmptyOnesMayBeNullAndKeepTheirPlace) {
  GetParam()(2, [](axonComm_t comm, int rank) {
    int32_t value = rank == 0 ? 42 : 0;
    for (int n = 0; n < 100; ++n) {
      if (rank == 0) {
        ASSERT_AXON_OK(axonSend(nullptr, 0, axonInt32, 1, comm, nullptr));
        ASSERT_AXON_OK(axonSend(&value, 1, axonInt32, 1, comm, nullptr));
      } else {
        value = 0;
        ASSERT_AXON_OK(axonRecv(nullptr, 0, axonInt32, 0, comm, nullptr));
        ASSERT_AXON_OK(axonRecv(&value, 1, axonInt32, 0, comm, nullptr));
        ASSERT_EQ(value, 42);
      }
    }
  });
}

// Neither side could finish its send first.
TEST_P(MessagesTest, LargeOnesCrossInAGroup) {
  GetParam()(2, [](axonComm_t comm, int rank) {
    const int peer = 1 - rank;
    for (int n = 0; n < 3; ++n) {
      const std::vector<int32_t> letter = Letter(rank, peer, n, kLarge);
      std::vector<int32_t> got(kLarge);
      ASSERT_AXON_OK(axonGroupStart());
      EXPECT_AXON_OK(Send(letter, peer, comm));
      EXPECT_AXON_OK(Receive(got, peer, comm));
      ASSERT_AXON_OK(axonGroupEnd());
      ASSERT_EQ(got, Letter(peer, rank, n, kLarge));
    }
  });
}

TEST_P(MessagesTest, GoRoundARing) {
  GetParam()(5, [](axonComm_t comm, int rank) {
    const int next = (rank + 1) % 5, before = (rank + 4) % 5;
    for (const size_t count : {size_t{0}, size_t{1}, size_t{20'011}}) {
      // What began at rank r comes back to it after five steps.
      std::vector<int32_t> mine = Letter(rank, rank, 0, count), got(count);
      for (int step = 0; step < 5; ++step) {
        ASSERT_AXON_OK(axonGroupStart());
        EXPECT_AXON_OK(Receive(got, before, comm));
        EXPECT_AXON_OK(Send(mine, next, comm));
        ASSERT_AXON_OK(axonGroupEnd());
        mine = got;
      }
      ASSERT_EQ(mine, Letter(rank, rank, 0, count));
    }
  });
}

TEST_P(MessagesTest, EverybodyToEverybodyInOneGroup) {
  GetParam()(4, [](axonComm_t comm, int rank) {
    constexpr int kEach = 5;
    const auto size = [](int from, int to, int n) {
      return static_cast<size_t>((from * 7 + to * 3 + n) % 5) * 3001;
    };
    std::vector<std::vector<int32_t>> sent, got;
    for (int peer = 0; peer < 4; ++peer) {
      for (int n = 0; n < kEach; ++n) {
        sent.push_back(Letter(rank, peer, n, size(rank, peer, n)));
        got.emplace_back(size(peer, rank, n));
      }
    }
    ASSERT_AXON_OK(axonGroupStart());
    for (int i = 0; i < 4 * kEach; ++i) {
      const auto k = static_cast<size_t>(i);
      EXPECT_AXON_OK(Send(sent[k], i / kEach, comm));
      EXPECT_AXON_OK(Receive(got[k], i / kEach, comm));
    }
    ASSERT_AXON_OK(axonGroupEnd());
    for (int i = 0; i < 4 * kEach; ++i) {
      const int from = i / kEach, n = i % kEach;
      ASSERT_EQ(got[static_cast<size_t>(i)],
                Letter(from, rank, n, size(from, rank, n)))
          << "message " << n << " of " << from;
    }
  });
}

TEST_P(MessagesTest, ToTheOwnRankInAGroup) {
  GetParam()(2, [](axonComm_t comm, int rank) {
    for (const size_t count : {size_t{0}, size_t{5}, kLarge}) {
      const std::vector<int32_t> letter = Letter(rank, rank, 1, count);
      std::vector<int32_t> got(count);
      ASSERT_AXON_OK(axonGroupStart());
      EXPECT_AXON_OK(Receive(got, rank, comm));
      EXPECT_AXON_OK(Send(letter, rank, comm));
      ASSERT_AXON_OK(axonGroupEnd());
      ASSERT_EQ(got, letter);
    }
  });
}

TEST_P(MessagesTest, ManyInFlightOnStreams) {
  GetParam()(3, [](axonComm_t comm, int rank) {
    constexpr int kMany = 200;
    const int next = (rank + 1) % 3, before = (rank + 2) % 3;
    axonStream_t out = nullptr, in = nullptr;
    ASSERT_AXON_OK(axonStreamCreate(&out));
    ASSERT_AXON_OK(axonStreamCreate(&in));
    std::vector<std::vector<int32_t>> sent, got;
    for (int n = 0; n < kMany; ++n) {
      sent.push_back(Letter(rank, next, n, static_cast<size_t>(n * 37 % 700)));
      got.emplace_back(sent.back().size());
    }
    for (auto& letter : sent) ASSERT_AXON_OK(Send(letter, next, comm, out));
    for (auto& letter : got) ASSERT_AXON_OK(Receive(letter, before, comm, in));
    ASSERT_AXON_OK(axonStreamSynchronize(in));
    ASSERT_AXON_OK(axonStreamSynchronize(out));
    for (int n = 0; n < kMany; ++n) {
      const auto& letter = got[static_cast<size_t>(n)];
      ASSERT_EQ(letter, Letter(before, rank, n, letter.size()));
    }
    EXPECT_AXON_OK(axonStreamDestroy(in));
    EXPECT_AXON_OK(axonStreamDestroy(out));
  });
}

// A send that waits on a stream holds up neither receives nor collectives.
TEST_P(MessagesTest, AreNotOrderedAgainstCollectives) {
  GetParam()(2, [](axonComm_t comm, int rank) {
    axonStream_t stream = nullptr;
    ASSERT_AXON_OK(axonStreamCreate(&stream));
    const std::vector<int32_t> letter = Letter(0, 1, 0, kLarge);
    std::vector<int32_t> got(kLarge);
    if (rank == 0) {
      ASSERT_AXON_OK(Send(letter, 1, comm, stream));
    }
    int32_t sum = 1;
    ASSERT_AXON_OK(
        axonAllReduce(&sum, &sum, 1, axonInt32, axonSum, comm, nullptr));
    EXPECT_EQ(sum, 2);
    if (rank == 1) {
      ASSERT_AXON_OK(Receive(got, 0, comm));
      EXPECT_EQ(got, letter);
    }
    EXPECT_AXON_OK(axonStreamDestroy(stream));
  });
}

// A user's message that is under way is not taken for a part of the call.
TEST_P(MessagesTest, AreNotMixedUpWithThoseOfAlltoAllV) {
  GetParam()(2, [](axonComm_t comm, int rank) {
    axonStream_t stream = nullptr;
    ASSERT_AXON_OK(axonStreamCreate(&stream));
    const std::vector<int32_t> letter = Letter(0, 1, 7, 4);
    if (rank == 0) {
      ASSERT_AXON_OK(Send(letter, 1, comm, stream));
    }
    const int64_t counts[] = {4, 4};
    const std::vector<int32_t> in(8, rank);
    std::vector<int32_t> out(8, -1), got(4);
    ASSERT_AXON_OK(axonAlltoAllV(in.data(), counts, nullptr, out.data(), counts,
                                 nullptr, axonInt32, comm, nullptr));
    EXPECT_THAT(out, testing::ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
    if (rank == 1) {
      ASSERT_AXON_OK(Receive(got, 0, comm));
      EXPECT_EQ(got, letter);
    }
    EXPECT_AXON_OK(axonStreamDestroy(stream));
  });
}

TEST(MessageRefusalsTest, NameTheValue) {
  const Comms comms(2);
  int32_t value = 0;
  EXPECT_AXON_ERROR(axonSend(&value, 1, axonInt32, 2, comms[0], nullptr),
                    axonInvalidArgument, "peer 2 is not a rank of 0 to 1");
  EXPECT_AXON_ERROR(axonRecv(&value, 1, axonInt32, -1, comms[0], nullptr),
                    axonInvalidArgument, "peer -1");
  EXPECT_AXON_ERROR(axonSend(&value, 1, axonInt32, 0, comms[0], nullptr),
                    axonInvalidArgument, "own rank needs a group");
  EXPECT_AXON_ERROR(axonSend(nullptr, 1, axonInt32, 1, comms[0], nullptr),
                    axonInvalidArgument, "NULL");
  EXPECT_AXON_ERROR(axonRecv(&value, std::numeric_limits<size_t>::max() / 2,
                             axonInt32, 1, comms[0], nullptr),
                    axonInvalidArgument, "9223372036854775807 elements");
  EXPECT_AXON_ERROR(axonSend(&value, 1, static_cast<axonDataType_t>(12), 1,
                             comms[0], nullptr),
                    axonInvalidArgument, "data type 12");
}

}  // namespace
}  // namespace axon
