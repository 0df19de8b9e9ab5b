// SPDX-License-Identifier: Apache-2.0
#include "comm/plan_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/collective.h"

namespace axon {
namespace {

using testing::HasSubstr;

PlanCache Cache(int ranks, bool check = false, const char* algo = "") {
  absl::StatusOr<Overrides> overrides = Overrides::Parse(algo);
  EXPECT_TRUE(overrides.ok()) << overrides.status();
  return {0, ranks, check,
          Selector(ranks, *overrides, Selector::SharedMemoryModel())};
}

TEST(PlanCacheTest, OnePlanForEverySizeOfAClass) {
  PlanCache cache = Cache(4);
  const auto a = cache.Find({Collective::kAllReduce, 1000, false}, 0);
  const auto b = cache.Find({Collective::kAllReduce, 600, false}, 0);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->plan, b->plan);
  EXPECT_EQ(a->algorithm, b->algorithm);
  EXPECT_EQ(a->plan->me, 0);
  EXPECT_EQ(a->plan->ranks.size(), 4U);
}

TEST(PlanCacheTest, ChoosesBySize) {
  PlanCache cache = Cache(4);
  const auto small = cache.Find({Collective::kAllReduce, 8, false}, 0);
  const auto large = cache.Find({Collective::kAllReduce, 64 << 20, false}, 0);
  ASSERT_TRUE(small.ok() && large.ok());
  EXPECT_NE(small->algorithm, large->algorithm);
}

TEST(PlanCacheTest, AllRanksChooseAlike) {
  for (size_t bytes = 0; bytes < (size_t{1} << 30); bytes = bytes * 3 + 1) {
    const Demand demand{Collective::kAllReduce, bytes, false};
    PlanCache first = Cache(5);
    PlanCache other{
        3, 5, false,
        Selector(5, *Overrides::Parse(""), Selector::SharedMemoryModel())};
    ASSERT_EQ(first.Find(demand, 0)->algorithm,
              other.Find(demand, 0)->algorithm);
  }
}

TEST(PlanCacheTest, EveryRootHasItsPlan) {
  PlanCache cache = Cache(3);
  const Demand demand{Collective::kBroadcast, 100, false};
  const Plan* const zero = cache.Find(demand, 0)->plan;
  const Plan* const two = cache.Find(demand, 2)->plan;
  EXPECT_NE(zero, two);
  EXPECT_TRUE(zero->ops[0].num_incoming == 0);
  EXPECT_TRUE(two->ops[0].num_incoming > 0);
  EXPECT_EQ(cache.Find(demand, 0)->plan, zero);
}

TEST(PlanCacheTest, PlansOfOneRowAreShared) {
  PlanCache cache = Cache(3);
  const Algorithm* mesh = FindAlgorithm(Collective::kAlltoAll, "mesh");
  const auto once = cache.MakePlan(*mesh, 0);
  const auto again = cache.MakePlan(*mesh, 0);
  ASSERT_TRUE(once.ok() && again.ok());
  EXPECT_EQ(*once, *again);
}

TEST(PlanCacheTest, EverythingIsProved) {
  for (const int ranks : {1, 2, 3, 8}) {
    PlanCache cache = Cache(ranks, /*check=*/true);
    for (const Algorithm& row : Algorithms()) {
      if (!Applies(row, ranks)) continue;
      EXPECT_EQ(cache.MakePlan(row, ranks - 1).status(), absl::OkStatus())
          << Name(row.collective) << " " << row.name;
    }
  }
}

// A row whose ranks all wait for each other: it must not come to be run.
Schedule Deadlock(const Group& group) {
  Schedule s;
  const int peer = 1 - group.ranks[static_cast<size_t>(group.me)];
  s.Recv(peer, {Buffer::kOut, 0, 1});
  s.Send(peer, {Buffer::kIn, 0, 1});
  return s;
}

TEST(PlanCacheTest, WhatCannotBeProvedIsRefused) {
  const Algorithm row{"deadlock", Collective::kAllReduce, Deadlock, true,
                      false};
  PlanCache cache = Cache(2, /*check=*/true);
  EXPECT_FALSE(cache.MakePlan(row, 0).ok());
}

TEST(PlanCacheTest, SaysWhatLeavesNothing) {
  PlanCache cache = Cache(4, false, "allreduce:ring");
  const auto found = cache.Find({Collective::kAllReduce, 100, true}, 0);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.status().message(), HasSubstr("AXON_ALGO=allreduce:ring"));
  EXPECT_THAT(found.status().message(), HasSubstr("in rank order"));
}

}  // namespace
}  // namespace axon
