// SPDX-License-Identifier: Apache-2.0
#include "schedule/cost.h"

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "schedule/algorithms.h"
#include "schedule/check.h"
#include "schedule/text.h"

namespace axon {
namespace {

double Predict(Collective collective, absl::string_view name, int ranks,
               double bytes, const CostModel& model) {
  const Algorithm* row = FindAlgorithm(collective, name);
  if (row == nullptr) return NAN;
  return PredictSeconds(MakeCall(*row, ranks, 0).schedules, bytes, model);
}

double Written(absl::string_view text, double bytes, const CostModel& model) {
  const auto schedules = ParseSchedules(text);
  return schedules.ok() ? PredictSeconds(*schedules, bytes, model) : NAN;
}

constexpr absl::string_view kOneMessage =
    "rank 0 cuts 2 scratch 0\nsend 1 in[0:1]\n"
    "rank 1 cuts 2 scratch 0\nrecv_reduce 0 in[0:1] -> out[0:1]\n";

TEST(CostTest, AddsUpOneMessage) {
  CostModel model{.links = {{}}};
  EXPECT_EQ(Written(kOneMessage, 8, model), 0);
  model.links[0].latency = 1000;
  EXPECT_DOUBLE_EQ(Written(kOneMessage, 8, model), 1000);
  model.links[0].seconds_per_byte = 100;  // half of the 8 bytes: 4
  EXPECT_DOUBLE_EQ(Written(kOneMessage, 8, model), 1400);
  model.links[0].sender_seconds_per_byte = 1;
  EXPECT_DOUBLE_EQ(Written(kOneMessage, 8, model), 1404);
  model.links[0].receiver_seconds_per_byte = 2;
  EXPECT_DOUBLE_EQ(Written(kOneMessage, 8, model), 1412);
  model.reduce_seconds_per_byte = 3;
  EXPECT_DOUBLE_EQ(Written(kOneMessage, 8, model), 1424);
  model.seconds_per_op = 0.5;  // the receiver's; the sender's is hidden
  EXPECT_DOUBLE_EQ(Written(kOneMessage, 8, model), 1424.5);
}

TEST(CostTest, LinksHaveClasses) {
  CostModel model{.links = {{.latency = 1}, {.latency = 7}},
                  .link_class = {0, 1, 0, 0}};
  EXPECT_DOUBLE_EQ(Written(kOneMessage, 8, model), 7);
  model.link_class = {0, 0, 1, 0};
  EXPECT_DOUBLE_EQ(Written(kOneMessage, 8, model), 1);
  model.link_class = {0, 2, 0, 0};
  EXPECT_TRUE(std::isinf(Written(kOneMessage, 8, model)));
}

TEST(CostTest, WhatNeverEndsCostsInfinity) {
  EXPECT_TRUE(std::isinf(Written(
      "rank 0 cuts 1 scratch 0\nrecv 1 -> out[0:1]\nrank 1 cuts 1 scratch 0\n",
      8, {.links = {{}}})));
  EXPECT_TRUE(std::isinf(Written("rank 0 cuts 1 scratch 0\nsend 5 in[0:1]\n", 8,
                                 {.links = {{}}})));
}

// Tiny vectors: steps count. A tree has log2 of them twice, one-shot one, mesh
// two, the ring 2 (p - 1).
TEST(CostTest, LatencyCountsSteps) {
  const CostModel model{.links = {{.latency = 1}}};
  const auto steps = [&](Collective collective, absl::string_view name) {
    return Predict(collective, name, 8, 0, model);
  };
  EXPECT_DOUBLE_EQ(steps(Collective::kAllReduce, "one_shot"), 1);
  EXPECT_DOUBLE_EQ(steps(Collective::kAllReduce, "mesh"), 2);
  EXPECT_DOUBLE_EQ(steps(Collective::kAllReduce, "recursive_doubling"), 3);
  EXPECT_DOUBLE_EQ(steps(Collective::kAllReduce, "halving_doubling"), 6);
  EXPECT_DOUBLE_EQ(steps(Collective::kAllReduce, "tree"), 6);
  EXPECT_DOUBLE_EQ(steps(Collective::kAllReduce, "ring"), 14);
  EXPECT_DOUBLE_EQ(steps(Collective::kAllGather, "ring"), 7);
  EXPECT_DOUBLE_EQ(steps(Collective::kAllGather, "bruck"), 3);
  EXPECT_DOUBLE_EQ(steps(Collective::kAlltoAll, "bruck"), 3);
  EXPECT_DOUBLE_EQ(steps(Collective::kBroadcast, "tree"), 3);
  EXPECT_DOUBLE_EQ(steps(Collective::kGather, "binomial"), 3);
  EXPECT_DOUBLE_EQ(steps(Collective::kBarrier, "dissemination"), 3);
}

// Large vectors: bytes count. 2 (p - 1) / p of the vector for the ring, mesh
// and halving-doubling, all of it p - 1 times for one-shot.
TEST(CostTest, BandwidthCountsBytes) {
  const CostModel model{.links = {{.seconds_per_byte = 1}}};
  const double bytes = 8e6;
  const auto volume = [&](absl::string_view name) {
    return Predict(Collective::kAllReduce, name, 8, bytes, model) / bytes;
  };
  EXPECT_DOUBLE_EQ(volume("ring"), 2 * 7 / 8.0);
  EXPECT_DOUBLE_EQ(volume("mesh"), 2 * 7 / 8.0);
  EXPECT_DOUBLE_EQ(volume("halving_doubling"), 2 * 7 / 8.0);
  EXPECT_DOUBLE_EQ(volume("one_shot"), 7);
  EXPECT_DOUBLE_EQ(volume("recursive_doubling"), 3);
}

// The shape that selection relies on: one shot, then two, with growing size.
TEST(CostTest, TheBestChangesWithTheSize) {
  const CostModel model{.links = {{.latency = 3e-7,
                                   .sender_seconds_per_byte = 2e-11,
                                   .receiver_seconds_per_byte = 5e-11}},
                        .seconds_per_op = 1e-8,
                        .copy_seconds_per_byte = 5e-11,
                        .reduce_seconds_per_byte = 5e-11};
  const auto time = [&](absl::string_view name, double bytes) {
    return Predict(Collective::kAllReduce, name, 8, bytes, model);
  };
  EXPECT_LT(time("one_shot", 8), time("mesh", 8));
  EXPECT_LT(time("mesh", 8), time("ring", 8));
  EXPECT_LT(time("mesh", 1e6), time("one_shot", 1e6));
  EXPECT_LT(time("ring", 1e6), time("one_shot", 1e6));
}

TEST(CostTest, EveryRowEndsAndGrowsWithTheSize) {
  const CostModel model{.links = {{.latency = 1e-6, .seconds_per_byte = 1e-10}},
                        .seconds_per_op = 1e-8,
                        .copy_seconds_per_byte = 1e-10,
                        .reduce_seconds_per_byte = 1e-10};
  for (const Algorithm& row : Algorithms()) {
    for (int ranks : {2, 4, 16, 64}) {
      const auto call = MakeCall(row, ranks, 0);
      const double small = PredictSeconds(call.schedules, 8, model);
      const double large = PredictSeconds(call.schedules, 8e6, model);
      EXPECT_TRUE(std::isfinite(small));
      if (row.collective == Collective::kBarrier) {
        EXPECT_EQ(small, large);
      } else {
        EXPECT_LT(small, large) << Name(row.collective) << " " << row.name;
      }
    }
  }
}

}  // namespace
}  // namespace axon
