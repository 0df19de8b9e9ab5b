// SPDX-License-Identifier: Apache-2.0
#include "engine/bind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/check.h"
#include "schedule/parts.h"

namespace axon {
namespace {

using testing::HasSubstr;

Plan PlanOf(const std::vector<Schedule>& all, int me, bool pipelined = true) {
  absl::StatusOr<Plan> plan = Bind(all, me, pipelined);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

Plan TwoShot(int ranks, int me, bool pipelined = true) {
  const Algorithm* mesh = FindAlgorithm(Collective::kAllReduce, "mesh");
  return PlanOf(MakeCall(*mesh, ranks, 0).schedules, me, pipelined);
}

TEST(BindTest, TwoShotOfTwo) {
  const Plan plan = TwoShot(2, 0);
  // Send, reduce and publish in one, receive.
  ASSERT_EQ(plan.ops.size(), 3U);
  EXPECT_EQ(plan.ops[0].kind, OpKind::kSend);
  EXPECT_EQ(plan.ops[1].kind, OpKind::kReduceAll);
  EXPECT_EQ(plan.ops[2].kind, OpKind::kRecv);
  EXPECT_EQ(plan.ops[0].stage, 0U);
  EXPECT_EQ(plan.ops[1].stage, 1U);
  EXPECT_EQ(plan.ops[2].stage, 2U);
  EXPECT_EQ(plan.ops[0].unit, 0);
  EXPECT_EQ(plan.ops[1].unit, 1);
  EXPECT_EQ(plan.ops[2].unit, -1);
  ASSERT_EQ(plan.incoming.size(), 2U);
  EXPECT_EQ(plan.incoming[0].unit, 0U);
  EXPECT_EQ(plan.incoming[1].unit, 1U);
  EXPECT_EQ(plan.incoming[1].source, Out(1, 1));
  const RankShape& shape = plan.ranks[1];
  EXPECT_EQ(shape.ops, 3U);
  EXPECT_EQ(shape.stages, 3U);
  EXPECT_EQ(shape.units, 2U);
  EXPECT_EQ(shape.prologue, 1U);
  EXPECT_TRUE(shape.reads_me);
  EXPECT_EQ(shape.last_read.stage, 2U);
  EXPECT_EQ(shape.last_read.position, 2U);
}

TEST(BindTest, CountsOfTwoShotOfThree) {
  const Plan plan = TwoShot(3, 0);
  ASSERT_EQ(plan.ops.size(), 5U);  // two sends, one reduction, two receives
  EXPECT_EQ(plan.ranks[1].prologue, 2U);
  EXPECT_EQ(plan.ranks[1].units, 3U);
  // Rank 1 sends to 2 first, then to 0: its second operation.
  const Incoming& from_one = plan.incoming[plan.ops[2].first_incoming];
  ASSERT_EQ(from_one.peer, 1);
  EXPECT_EQ(from_one.unit, 1U);
  EXPECT_EQ(from_one.ready.stage, 0U);
  EXPECT_EQ(DoneAt(plan.ranks[1], from_one.ready, 0), 2U);
  EXPECT_EQ(DoneAt(plan.ranks[1], from_one.ready, 4), 4 * 5 + 2U);
  // Its reduced part: the third operation, one iteration later.
  const Incoming& reduced = plan.incoming[plan.ops[3].first_incoming];
  ASSERT_EQ(reduced.peer, 1);
  EXPECT_EQ(DoneAt(plan.ranks[1], reduced.ready, 0), 5 + 3U);
}

TEST(BindTest, WithoutPipelineAllIsInOneStage) {
  const Plan plan = TwoShot(3, 1, /*pipelined=*/false);
  EXPECT_EQ(plan.max_stages, 1U);
  for (const PlannedOp& op : plan.ops) EXPECT_EQ(op.stage, 0U);
  EXPECT_EQ(DoneAt(plan.ranks[0], {0, 2}, 3), 3 * 5 + 3U);
}

TEST(BindTest, DeepSchedulesAreNotPipelined) {
  const Algorithm* ring = FindAlgorithm(Collective::kAllGather, "ring");
  EXPECT_GT(PlanOf(MakeCall(*ring, 3, 0).schedules, 0).max_stages, 1U);
  EXPECT_EQ(PlanOf(MakeCall(*ring, 12, 0).schedules, 0).max_stages, 1U);
}

TEST(BindTest, AMessageIsNeverReadInAnEarlierStageThanItIsSentIn) {
  for (const Algorithm& row : Algorithms()) {
    for (const int ranks : {2, 3, 4, 5, 8}) {
      if (!Applies(row, ranks)) continue;
      const Call call = MakeCall(row, ranks, ranks - 1);
      for (int me = 0; me < ranks; ++me) {
        const Plan plan = PlanOf(call.schedules, me);
        uint32_t stage = 0;
        for (const PlannedOp& op : plan.ops) {
          EXPECT_GE(op.stage, stage);
          stage = op.stage;
          for (uint32_t i = 0; i < op.num_incoming; ++i) {
            EXPECT_LE(plan.incoming[op.first_incoming + i].ready.stage, stage);
          }
        }
        EXPECT_EQ(plan.ranks[static_cast<size_t>(me)].stages, stage + 1);
      }
    }
  }
}

TEST(BindTest, AllRanksAgreeOnShapes) {
  const Algorithm* tree = FindAlgorithm(Collective::kAllReduce, "tree");
  const Call call = MakeCall(*tree, 7, 0);
  const Plan first = PlanOf(call.schedules, 0);
  for (int me = 1; me < 7; ++me) {
    const Plan plan = PlanOf(call.schedules, me);
    EXPECT_EQ(plan.max_units, first.max_units);
    EXPECT_EQ(plan.max_stages, first.max_stages);
    for (size_t r = 0; r < 7; ++r) {
      EXPECT_EQ(plan.ranks[r].ops, first.ranks[r].ops);
      EXPECT_EQ(plan.ranks[r].stages, first.ranks[r].stages);
      EXPECT_EQ(plan.ranks[r].units, first.ranks[r].units);
      EXPECT_EQ(plan.ranks[r].prologue, first.ranks[r].prologue);
    }
  }
}

TEST(BindTest, WhatIsSentWhereItWasMadeIsOneOperation) {
  Schedule sender, receiver;
  sender.Copy(In(0, 1), Out(0, 1));
  sender.Send(1, Out(0, 1));
  sender.Copy(In(0, 1), Out(0, 1));
  sender.Send(1, In(0, 1));  // not what was copied to
  for (int i = 0; i < 2; ++i) receiver.Recv(0, Out(0, 1));
  const Plan plan = PlanOf({sender, receiver}, 0);
  ASSERT_EQ(plan.ops.size(), 3U);
  EXPECT_EQ(plan.ops[0].kind, OpKind::kCopy);
  EXPECT_EQ(plan.ops[0].unit, 0);
  EXPECT_TRUE(plan.ops[0].counts);
  EXPECT_EQ(plan.ops[1].unit, -1);
  EXPECT_FALSE(plan.ops[1].counts);
  EXPECT_EQ(plan.ops[2].kind, OpKind::kSend);
  EXPECT_EQ(plan.ops[2].unit, 1);
}

TEST(BindTest, ScratchIsNotPipelined) {
  Schedule a, b;
  a.Send(1, In(0, 1));
  a.Recv(1, Out(0, 1));
  b.Recv(0, Scratch(0, 1));
  b.Send(0, Scratch(0, 1));
  b.scratch_pieces = 1;
  EXPECT_EQ(PlanOf({a, b}, 0).max_stages, 1U);
}

TEST(BindTest, RefusesWhatDoesNotMatch) {
  Schedule sends, receives_twice;
  sends.Send(1, In(0, 1));
  receives_twice.Recv(0, Out(0, 1));
  receives_twice.Recv(0, Out(0, 1));
  const auto plan = Bind({sends, receives_twice}, 0, false);
  EXPECT_THAT(plan.status().message(),
              HasSubstr("rank 1 operation 1 receives from 0, which sends "
                        "nothing more"));
}

TEST(BindTest, RefusesScratchWhereBlocksAreCut) {
  Schedule s;
  s.cuts = 2;
  s.scratch_pieces = 1;
  EXPECT_THAT(Bind({s}, 0, true).status().message(),
              HasSubstr("scratch needs blocks of one piece"));
}

}  // namespace
}  // namespace axon
