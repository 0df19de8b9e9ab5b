// SPDX-License-Identifier: Apache-2.0
// Communicators made from parts of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "axon/axon.h"
#include "tests/api/ranks.h"
#include "tests/support/threads.h"

namespace axon {
namespace {

TEST(SplitTest, ColorsAndKeysDecide) {
  OnThreads(6, [](axonComm_t comm, int rank) {
    axonComm_t part = nullptr;
    // Odd and even, in reverse order.
    ASSERT_AXON_OK(axonCommSplit(comm, rank % 2, -rank, &part, nullptr));
    EXPECT_EQ(SizeOf(part), 3);
    EXPECT_EQ(RankOf(part), 2 - rank / 2);
    EXPECT_EQ(SumOf(rank, part), rank % 2 == 0 ? 6 : 9);
    // Equal keys: in the order of the parent.
    axonComm_t again = nullptr;
    ASSERT_AXON_OK(axonCommSplit(comm, 0, 7, &again, nullptr));
    EXPECT_EQ(RankOf(again), rank);
    // Both and the parent work side by side.
    EXPECT_EQ(SumOf(1, again), 6);
    EXPECT_EQ(SumOf(1, comm), 6);
    EXPECT_EQ(SumOf(1, part), 3);
    EXPECT_AXON_OK(axonCommDestroy(again));
    EXPECT_AXON_OK(axonCommDestroy(part));
  });
}

// All ranks by one thread, each twice: splits of one parent follow each other.
TEST(SplitTest, InAGroupOneThreadSplitsAllItsRanks) {
  const Comms comms(4);
  std::vector<axonComm_t> halves(4), pairs(4);
  ASSERT_AXON_OK(axonGroupStart());
  for (int rank = 0; rank < 4; ++rank) {
    const auto r = static_cast<size_t>(rank);
    ASSERT_AXON_OK(
        axonCommSplit(comms[rank], rank / 2, 0, &halves[r], nullptr));
    ASSERT_AXON_OK(axonCommSplit(comms[rank], rank % 2, 0, &pairs[r], nullptr));
    EXPECT_EQ(halves[r], nullptr);
  }
  ASSERT_AXON_OK(axonGroupEnd());
  for (const auto& [parts, sums] :
       {std::pair(halves, std::vector<int>{1, 1, 5, 5}),
        std::pair(pairs, std::vector<int>{2, 4, 2, 4})}) {
    std::vector<int32_t> values = {0, 1, 2, 3};
    ASSERT_AXON_OK(axonGroupStart());
    for (size_t r = 0; r < 4; ++r) {
      ASSERT_AXON_OK(axonAllReduce(&values[r], &values[r], 1, axonInt32,
                                   axonSum, parts[r], nullptr));
    }
    ASSERT_AXON_OK(axonGroupEnd());
    EXPECT_EQ(values, sums);
    for (axonComm_t part : parts) EXPECT_AXON_OK(axonCommDestroy(part));
  }
}

TEST(SplitTest, InAGroupItsErrorsAreTold) {
  const Comms comms(2);
  axonComm_t parts[2] = {};
  ASSERT_AXON_OK(axonGroupStart());
  ASSERT_AXON_OK(axonSetCallTimeout(200));
  ASSERT_AXON_OK(axonCommSplit(comms[0], 0, 0, &parts[0], nullptr));
  EXPECT_AXON_ERROR(axonGroupEnd(), axonTimeout, "rank 1");
  EXPECT_THAT(axonGetLastError(comms[0]), testing::HasSubstr("rank 1"));
  EXPECT_EQ(parts[0], nullptr);
}

TEST(SplitTest, NoColorGivesNone) {
  OnThreads(3, [](axonComm_t comm, int rank) {
    auto* part = reinterpret_cast<axonComm_t>(8);
    const int color = rank == 1 ? AXON_SPLIT_NOCOLOR : 4;
    ASSERT_AXON_OK(axonCommSplit(comm, color, 0, &part, nullptr));
    if (rank == 1) {
      EXPECT_TRUE(part == AXON_COMM_NULL);
      return;
    }
    EXPECT_EQ(SumOf(rank, part), 2);
    EXPECT_AXON_OK(axonCommDestroy(part));
  });
}

TEST(SplitTest, SplitsCanBeSplitAndOutliveTheirParent) {
  OnThreads(4, [](axonComm_t comm, int rank) {
    axonComm_t half = nullptr, single = nullptr;
    ASSERT_AXON_OK(axonCommSplit(comm, rank / 2, rank, &half, nullptr));
    ASSERT_AXON_OK(axonCommSplit(half, rank, 0, &single, nullptr));
    EXPECT_AXON_OK(axonCommDestroy(half));
    EXPECT_EQ(SizeOf(single), 1);
    EXPECT_EQ(SumOf(rank, single), rank);
    EXPECT_AXON_OK(axonCommDestroy(single));
  });
}

TEST(SplitTest, InheritsOrTakesAConfig) {
  OnThreads(2, [](axonComm_t comm, int) {
    axonConfig_t config = AXON_CONFIG_INITIALIZER;
    config.commName = "half";
    axonComm_t named = nullptr;
    ASSERT_AXON_OK(axonCommSplit(comm, 0, 0, &named, &config));
    EXPECT_THAT(Dump(named), testing::HasSubstr("communicator 'half'"));
    EXPECT_AXON_OK(axonCommDestroy(named));
  });
}

// The parent fails while some ranks have come out of the split and some have
// not: those that have are told.
TEST(SplitTest, WhoCouldNotCompleteItIsToldToWhoHas) {
  constexpr int kRanks = 6;
  int partial = 0;
  for (int round = 0; round < 100 && partial < 5; ++round) {
    std::vector<axonComm_t> comms(kRanks), parts(kRanks);
    ASSERT_AXON_OK(axonCommInitAll(comms.data(), kRanks, nullptr));
    std::vector<axonResult_t> split(kRanks), summed(kRanks, axonSuccess);
    std::vector<std::string> texts(kRanks);
    RunRanks(kRanks, [&](int rank) {
      const auto r = static_cast<size_t>(rank);
      axonCommSetTimeout(comms[r], 20'000);
      // Rank 0 has no part in the others' communicator.
      split[r] =
          axonCommSplit(comms[r], rank == 0 ? 0 : 1, 0, &parts[r], nullptr);
      if (rank == 0) axonCommAbort(std::exchange(comms[0], nullptr));
    });
    const auto failed =
        std::count_if(split.begin() + 1, split.end(),
                      [](axonResult_t r) { return r != axonSuccess; });
    if (failed > 0 && failed < kRanks - 1) ++partial;
    RunRanks(kRanks, [&](int rank) {
      const auto r = static_cast<size_t>(rank);
      if (rank == 0 || split[r] != axonSuccess) return;
      int32_t value = 1;
      summed[r] = axonAllReduce(&value, &value, 1, axonInt32, axonSum, parts[r],
                                nullptr);
      texts[r] = axonGetLastError(parts[r]);
    });
    for (size_t r = 1; r < kRanks && failed > 0; ++r) {
      if (split[r] != axonSuccess) continue;
      EXPECT_EQ(summed[r], axonRemoteError) << texts[r];
      EXPECT_THAT(texts[r], testing::HasSubstr("could not complete its"));
    }
    for (size_t r = 0; r < kRanks; ++r) {
      EXPECT_AXON_OK(axonCommDestroy(parts[r]));
      EXPECT_AXON_OK(axonCommDestroy(comms[r]));
    }
  }
}

// 0 is none: not the parent's, which would pass.
TEST(SplitTest, TakesACallTimeoutOfNone) {
  OnThreads(2, [](axonComm_t comm, int rank) {
    ASSERT_AXON_OK(axonCommSetTimeout(comm, 50));
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ASSERT_AXON_OK(axonSetCallTimeout(0));
    axonComm_t split = nullptr;
    ASSERT_AXON_OK(axonCommSplit(comm, 0, 0, &split, nullptr));
    ASSERT_AXON_OK(axonCommDestroy(split));
  });
}

TEST(SplitTest, WrongArgumentsAreRefusedAlone) {
  const Comms comms(1);
  axonComm_t part = nullptr;
  EXPECT_AXON_ERROR(axonCommSplit(comms[0], -2, 0, &part, nullptr),
                    axonInvalidArgument, "color -2");
  EXPECT_AXON_ERROR(axonCommSplit(comms[0], 0, 0, nullptr, nullptr),
                    axonInvalidArgument, "newcomm is NULL");
  EXPECT_EQ(SumOf(3, comms[0]), 3);
}

}  // namespace
}  // namespace axon
