// SPDX-License-Identifier: Apache-2.0
#include "select/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace axon {
namespace {

using testing::HasSubstr;
using enum Collective;

Selector Make(int ranks, const char* algo = "") {
  return {ranks, *Overrides::Parse(algo), Selector::SharedMemoryModel()};
}

TEST(SelectorTest, SomethingForEveryCollectiveSizeAndRankCount) {
  for (int c = 0; c < kNumCollectives; ++c) {
    for (const int ranks : {1, 2, 3, 7, 8, 16}) {
      for (const size_t bytes : {size_t{0}, size_t{8}, size_t{1} << 24}) {
        for (const bool order : {false, true}) {
          const Demand demand{static_cast<Collective>(c), bytes, order};
          const auto chosen = Make(ranks).Choose(demand);
          ASSERT_TRUE(chosen.ok()) << chosen.status();
          EXPECT_EQ((*chosen)->collective, demand.collective);
          EXPECT_TRUE(Applies(**chosen, ranks));
          EXPECT_TRUE(!order || (*chosen)->rank_order);
        }
      }
    }
  }
}

TEST(SelectorTest, BestFirst) {
  const auto candidates = Make(8).Candidates({kAllReduce, 1 << 20, false});
  ASSERT_GT(candidates.size(), 3U);
  for (size_t i = 1; i < candidates.size(); ++i) {
    EXPECT_LE(candidates[i - 1].seconds, candidates[i].seconds);
  }
  EXPECT_EQ(*Make(8).Choose({kAllReduce, 1 << 20, false}),
            candidates[0].algorithm);
}

TEST(SelectorTest, FewStepsForSmallAndFewBytesForLargeVectors) {
  EXPECT_STREQ((*Make(4).Choose({kAllReduce, 64, false}))->name, "one_shot");
  EXPECT_STRNE((*Make(4).Choose({kAllReduce, 64 << 20, false}))->name,
               "one_shot");
}

TEST(SelectorTest, PowersOfTwoOnly) {
  const auto has = [](int ranks) {
    for (const Candidate& c : Make(ranks).Candidates({kAllGather, 8, false})) {
      if (std::string(c.algorithm->name) == "recursive_doubling") return true;
    }
    return false;
  };
  EXPECT_TRUE(has(4));
  EXPECT_FALSE(has(6));
}

TEST(SelectorTest, TheUsersWordCounts) {
  EXPECT_STREQ((*Make(4, "ring").Choose({kAllReduce, 8, false}))->name, "ring");
  const auto none =
      Make(4, "allreduce:^one_shot,mesh").Choose({kAllReduce, 8, true});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(none.status().message(),
              HasSubstr("all_reduce on 4 ranks that combines in rank order"));
}

}  // namespace
}  // namespace axon
