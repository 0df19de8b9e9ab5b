// SPDX-License-Identifier: Apache-2.0
// Groups: nesting, several communicators and ranks by one thread, creation,
// errors, streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "axon/axon.h"
#include "tests/api/ranks.h"
#include "tests/support/threads.h"

namespace axon {
namespace {

axonResult_t Sum(int32_t& value, axonComm_t comm,
                 axonStream_t stream = nullptr) {
  return axonAllReduce(&value, &value, 1, axonInt32, axonSum, comm, stream);
}

TEST(GroupTest, OneThreadDrivesAllRanks) {
  for (const int ranks : {1, 2, 5}) {
    const Comms comms(ranks);
    for (const size_t count : {size_t{1}, size_t{100'003}}) {
      std::vector<std::vector<int32_t>> values(static_cast<size_t>(ranks),
                                               std::vector<int32_t>(count, 3));
      ASSERT_AXON_OK(axonGroupStart());
      for (int r = 0; r < ranks; ++r) {
        int32_t* data = values[static_cast<size_t>(r)].data();
        EXPECT_AXON_OK(axonAllReduce(data, data, count, axonInt32, axonSum,
                                     comms[r], nullptr));
      }
      ASSERT_AXON_OK(axonGroupEnd());
      for (const auto& value : values) {
        EXPECT_THAT(value, testing::Each(3 * ranks));
      }
    }
  }
}

TEST(GroupTest, CallsOfACommunicatorKeepTheirOrder) {
  OnThreads(3, [](axonComm_t comm, int rank) {
    int32_t value = rank + 1;
    ASSERT_AXON_OK(axonGroupStart());
    EXPECT_AXON_OK(Sum(value, comm));  // 6
    EXPECT_AXON_OK(axonBarrier(comm, nullptr));
    EXPECT_AXON_OK(Sum(value, comm));  // 18
    EXPECT_AXON_OK(axonBcast(&value, 1, axonInt32, 1, comm, nullptr));
    EXPECT_AXON_OK(axonAllReduce(&value, &value, 1, axonInt32, axonProd, comm,
                                 nullptr));  // 18^3
    ASSERT_AXON_OK(axonGroupEnd());
    EXPECT_EQ(value, 18 * 18 * 18);
  });
}

TEST(GroupTest, OnlyTheOutermostEndLaunches) {
  const Comms comms(2);
  int32_t a = 1, b = 2;
  ASSERT_AXON_OK(axonGroupStart());
  ASSERT_AXON_OK(axonGroupStart());
  EXPECT_AXON_OK(Sum(a, comms[0]));
  // Were it launched here, it would wait for rank 1 for ever.
  ASSERT_AXON_OK(axonGroupEnd());
  EXPECT_EQ(a, 1);
  ASSERT_AXON_OK(axonGroupStart());
  EXPECT_AXON_OK(Sum(b, comms[1]));
  ASSERT_AXON_OK(axonGroupEnd());
  EXPECT_EQ(b, 2);
  ASSERT_AXON_OK(axonGroupEnd());
  EXPECT_EQ(a, 3);
  EXPECT_EQ(b, 3);
}

TEST(GroupTest, SeveralCommunicatorsInAnyOrder) {
  const Comms first(3), second(3);
  std::vector<int32_t> a = {1, 2, 3}, b = {10, 20, 30};
  ASSERT_AXON_OK(axonGroupStart());
  for (int r = 0; r < 3; ++r) {
    const auto k = static_cast<size_t>(r);
    // Ranks call them in different orders.
    if (r == 1) {
      EXPECT_AXON_OK(Sum(b[k], second[r]));
    }
    EXPECT_AXON_OK(Sum(a[k], first[r]));
    if (r != 1) {
      EXPECT_AXON_OK(Sum(b[k], second[r]));
    }
  }
  ASSERT_AXON_OK(axonGroupEnd());
  EXPECT_THAT(a, testing::Each(6));
  EXPECT_THAT(b, testing::Each(60));
}

TEST(GroupTest, MixesMessagesAndCollectives) {
  OnThreads(2, [](axonComm_t comm, int rank) {
    int32_t sum = rank, mine = rank + 5, got = 0;
    ASSERT_AXON_OK(axonGroupStart());
    // One rank receives before, the other after the collective.
    if (rank == 0) {
      EXPECT_AXON_OK(axonRecv(&got, 1, axonInt32, 1, comm, nullptr));
    }
    EXPECT_AXON_OK(axonSend(&mine, 1, axonInt32, 1 - rank, comm, nullptr));
    EXPECT_AXON_OK(Sum(sum, comm));
    if (rank == 1) {
      EXPECT_AXON_OK(axonRecv(&got, 1, axonInt32, 0, comm, nullptr));
    }
    ASSERT_AXON_OK(axonGroupEnd());
    EXPECT_EQ(sum, 1);
    EXPECT_EQ(got, 6 - rank);
  });
}

// AlltoAllV sends what the call before it has made, also where the group has
// messages of the user before both.
TEST(GroupTest, AlltoAllVKeepsItsPlaceAmongCollectives) {
  OnThreads(2, [](axonComm_t comm, int rank) {
    axonStream_t streams[2] = {};
    ASSERT_AXON_OK(axonStreamCreate(&streams[1]));
    for (axonStream_t stream : streams) {
      std::vector<int32_t> sums(60'000, rank + 1), got(60'000);
      int32_t mine = rank, peers = -1;
      const int64_t counts[] = {30'000, 30'000};
      ASSERT_AXON_OK(axonGroupStart());
      EXPECT_AXON_OK(axonSend(&mine, 1, axonInt32, 1 - rank, comm, stream));
      EXPECT_AXON_OK(axonAllReduce(sums.data(), sums.data(), sums.size(),
                                   axonInt32, axonSum, comm, stream));
      EXPECT_AXON_OK(axonAlltoAllV(sums.data(), counts, nullptr, got.data(),
                                   counts, nullptr, axonInt32, comm, stream));
      EXPECT_AXON_OK(axonAllReduce(got.data(), got.data(), got.size(),
                                   axonInt32, axonSum, comm, stream));
      EXPECT_AXON_OK(axonRecv(&peers, 1, axonInt32, 1 - rank, comm, stream));
      ASSERT_AXON_OK(axonGroupEnd());
      if (stream != nullptr) {
        EXPECT_AXON_OK(axonStreamSynchronize(stream));
      }
      EXPECT_THAT(got, testing::Each(6));
      EXPECT_EQ(peers, 1 - rank);
    }
    EXPECT_AXON_OK(axonStreamDestroy(streams[1]));
  });
}

TEST(GroupTest, WithAStreamEndDoesNotWait) {
  const Comms comms(2);
  axonStream_t streams[2];
  int32_t values[] = {1, 2};
  for (auto& stream : streams) ASSERT_AXON_OK(axonStreamCreate(&stream));
  for (int r = 0; r < 2; ++r) {
    ASSERT_AXON_OK(axonGroupStart());
    EXPECT_AXON_OK(Sum(values[r], comms[r], streams[r]));
    // Rank 0's End must return before rank 1 has called.
    ASSERT_AXON_OK(axonGroupEnd());
  }
  for (auto& stream : streams) {
    EXPECT_AXON_OK(axonStreamSynchronize(stream));
    EXPECT_AXON_OK(axonStreamDestroy(stream));
  }
  EXPECT_THAT(values, testing::Each(3));
}

TEST(GroupTest, ARefusedCallIsDroppedAlone) {
  OnThreads(2, [](axonComm_t comm, int) {
    int32_t value = 1;
    ASSERT_AXON_OK(axonGroupStart());
    EXPECT_AXON_ERROR(axonBcast(&value, 1, axonInt32, 9, comm, nullptr),
                      axonInvalidArgument, "root 9");
    EXPECT_AXON_OK(Sum(value, comm));
    EXPECT_AXON_OK(axonGroupEnd());
    EXPECT_EQ(value, 2);
  });
}

TEST(GroupTest, EmptyOnesDoNothing) {
  ASSERT_AXON_OK(axonGroupStart());
  EXPECT_AXON_OK(axonGroupEnd());
  EXPECT_AXON_ERROR(axonGroupEnd(), axonInvalidUsage,
                    "axonGroupEnd without axonGroupStart");
}

// A group is of its thread.
TEST(GroupTest, OtherThreadsAreNotConcerned) {
  const Comms comms(2);
  ASSERT_AXON_OK(axonGroupStart());
  RunRanks(2, [&](int rank) {
    int32_t value = 1;
    EXPECT_AXON_OK(Sum(value, comms[rank]));
    EXPECT_EQ(value, 2);
    EXPECT_AXON_ERROR(axonGroupEnd(), axonInvalidUsage, "without");
  });
  EXPECT_AXON_OK(axonGroupEnd());
}

TEST(GroupTest, CreatesSeveralRanksByOneThread) {
  axonUniqueId id;
  ASSERT_AXON_OK(axonGetUniqueId(&id));
  axonComm_t comms[3];
  ASSERT_AXON_OK(axonGroupStart());
  for (int r = 2; r >= 0; --r) {
    EXPECT_AXON_OK(axonCommInitRank(&comms[r], 3, id, r));
  }
  ASSERT_AXON_OK(axonGroupEnd());
  int32_t values[] = {1, 2, 3};
  ASSERT_AXON_OK(axonGroupStart());
  for (int r = 0; r < 3; ++r) {
    int rank = -1;
    EXPECT_AXON_OK(axonCommUserRank(comms[r], &rank));
    EXPECT_EQ(rank, r);
    EXPECT_AXON_OK(Sum(values[r], comms[r]));
  }
  ASSERT_AXON_OK(axonGroupEnd());
  EXPECT_THAT(values, testing::Each(6));
  for (axonComm_t comm : comms) EXPECT_AXON_OK(axonCommDestroy(comm));
}

TEST(GroupTest, InitAllWorksInsideAGroup) {
  axonComm_t comms[2] = {}, others[2] = {};
  ASSERT_AXON_OK(axonGroupStart());
  EXPECT_AXON_OK(axonCommInitAll(comms, 2, nullptr));
  EXPECT_AXON_OK(axonCommInitAll(others, 2, nullptr));
  ASSERT_AXON_OK(axonGroupEnd());
  for (axonComm_t comm : {comms[0], comms[1], others[0], others[1]}) {
    ASSERT_NE(comm, nullptr);
    EXPECT_AXON_OK(axonCommDestroy(comm));
  }
}

TEST(GroupTest, CreationDoesNotMixWithCalls) {
  const Comms comms(1);
  axonUniqueId id;
  ASSERT_AXON_OK(axonGetUniqueId(&id));
  axonComm_t made = nullptr;
  int32_t value = 1;
  ASSERT_AXON_OK(axonGroupStart());
  EXPECT_AXON_OK(Sum(value, comms[0]));
  EXPECT_AXON_ERROR(axonCommInitRank(&made, 1, id, 0), axonInvalidUsage,
                    "not both");
  EXPECT_AXON_OK(axonGroupEnd());
  ASSERT_AXON_OK(axonGroupStart());
  EXPECT_AXON_OK(axonCommInitRank(&made, 1, id, 0));
  EXPECT_AXON_ERROR(Sum(value, comms[0]), axonInvalidUsage, "not both");
  EXPECT_AXON_ERROR(axonSend(&value, 1, axonInt32, 0, comms[0], nullptr),
                    axonInvalidUsage, "not both");
  EXPECT_AXON_OK(axonGroupEnd());
  ASSERT_NE(made, nullptr);
  // What was refused left no gap in the order of calls.
  EXPECT_AXON_OK(Sum(value, comms[0]));
  EXPECT_AXON_OK(axonCommDestroy(made));
}

// Its calls had their places: nobody waits behind them.
TEST(GroupTest, AThreadThatEndsWithAnOpenOneFailsTheCommunicator) {
  const Comms comms(2);
  int32_t value = 1;
  std::thread([&] {
    EXPECT_AXON_OK(axonGroupStart());
    EXPECT_AXON_OK(Sum(value, comms[0]));
    EXPECT_AXON_OK(axonSend(&value, 1, axonInt32, 1, comms[0], nullptr));
  }).join();
  EXPECT_AXON_ERROR(Sum(value, comms[0]), axonInvalidUsage, "open group");
  EXPECT_AXON_ERROR(axonSend(&value, 1, axonInt32, 1, comms[0], nullptr),
                    axonInvalidUsage, "call axonGroupEnd before");
  EXPECT_AXON_ERROR(Sum(value, comms[1]), axonInvalidUsage, "rank 0");
}

// Both the queued and the new one end.
TEST(GroupTest, AThreadThatEndsWithAnOpenOneEndsQueuedCalls) {
  const Comms comms(2);
  axonStream_t stream = nullptr;
  ASSERT_AXON_OK(axonStreamCreate(&stream));
  int32_t value = 1, queued = 1;
  std::thread([&] {
    EXPECT_AXON_OK(axonGroupStart());
    EXPECT_AXON_OK(Sum(value, comms[0]));
    // A stream's call behind it, by another thread in the same order.
    std::thread([&] { EXPECT_AXON_OK(Sum(queued, comms[0], stream)); }).join();
  }).join();
  EXPECT_AXON_ERROR(axonStreamDestroy(stream), axonInvalidUsage, "open group");
}

TEST(GroupTest, NothingIsFreedThatItsCallsNeed) {
  const Comms comms(1);
  axonStream_t stream = nullptr;
  ASSERT_AXON_OK(axonStreamCreate(&stream));
  int32_t value = 7;
  ASSERT_AXON_OK(axonGroupStart());
  EXPECT_AXON_OK(Sum(value, comms[0], stream));
  EXPECT_AXON_ERROR(axonCommDestroy(comms[0]), axonInvalidUsage, "group");
  EXPECT_AXON_ERROR(axonCommFinalize(comms[0]), axonInvalidUsage, "group");
  EXPECT_AXON_ERROR(axonStreamDestroy(stream), axonInvalidUsage, "group");
  axonComm_t split = nullptr;
  EXPECT_AXON_ERROR(axonCommSplit(comms[0], 0, 0, &split, nullptr),
                    axonInvalidUsage, "or makes calls, not both");
  EXPECT_AXON_OK(axonGroupEnd());
  ASSERT_AXON_OK(axonGroupStart());
  ASSERT_AXON_OK(axonCommSplit(comms[0], 0, 0, &split, nullptr));
  EXPECT_AXON_ERROR(axonCommDestroy(comms[0]), axonInvalidUsage, "group");
  EXPECT_AXON_ERROR(Sum(value, comms[0]), axonInvalidUsage,
                    "or makes calls, not both");
  EXPECT_EQ(split, nullptr);
  EXPECT_AXON_OK(axonGroupEnd());
  EXPECT_AXON_OK(axonCommDestroy(split));
  EXPECT_AXON_OK(axonStreamSynchronize(stream));
  EXPECT_EQ(value, 7);
  EXPECT_AXON_OK(axonStreamDestroy(stream));
}

}  // namespace
}  // namespace axon
