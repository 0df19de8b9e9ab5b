// SPDX-License-Identifier: Apache-2.0
// Plans with one fault each: the prover must see every one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/outbox.h"
#include "engine/prove.h"
#include "schedule/collective.h"
#include "schedule/parts.h"

namespace axon {
namespace {

constexpr int kRanks = 5;

BoundCall Bound(Collective collective, const char* name, int ranks = kRanks,
                int slices = 6) {
  const Algorithm* row = FindAlgorithm(collective, name);
  absl::StatusOr<BoundCall> bound = BindAll(MakeCall(*row, ranks, 0), true);
  EXPECT_TRUE(bound.ok()) << bound.status();
  bound->slices = slices;
  bound->unit = kOutboxZones;  // so that the smallest outbox is exact
  return *bound;
}

absl::Status ProveThrice(const BoundCall& call, ProveOptions options = {}) {
  if (options.outbox == 0) options.outbox = SmallestOutbox(call);
  const BoundCall* const calls[] = {&call, &call, &call};
  return Prove(calls, options);
}

// All rows on some numbers of ranks.
void ForEveryRow(const std::function<void(const BoundCall&)>& test) {
  for (const Algorithm& row : Algorithms()) {
    for (const int ranks : {2, 3, 4, 8}) {
      if (!Applies(row, ranks)) continue;
      SCOPED_TRACE(testing::Message() << Name(row.collective) << " " << row.name
                                      << " on " << ranks);
      test(Bound(row.collective, row.name, ranks));
    }
  }
}

// Rows in which nobody learns of others but from those he waits for: where a
// wait is left out, nothing else makes up for it.
void ForDirectRows(const std::function<void(const BoundCall&)>& test) {
  ForEveryRow([&](const BoundCall& call) {
    const Collective collective = call.call.collective;
    for (const char* name : {"mesh", "one_shot"}) {
      const Algorithm* row = FindAlgorithm(collective, name);
      if (row == nullptr || collective == Collective::kBarrier) continue;
      const int ranks = static_cast<int>(call.plans.size());
      if (MakeCall(*row, ranks, 0).schedules == call.call.schedules) test(call);
    }
  });
}

// Lowers a milestone of `plan`'s rank to what it shows before; false if there
// is nothing before.
bool Lower(const Plan& plan, int slices, Milestone* milestone) {
  const auto ops = static_cast<uint32_t>(plan.ops.size());
  for (uint32_t at = milestone->stage * ops + milestone->position; at-- > 0;) {
    const PlannedOp& op = plan.ops[at % ops];
    const int slice = static_cast<int>(at / ops) - static_cast<int>(op.stage);
    if (!op.counts || slice < 0 || slice >= slices) continue;
    *milestone = {at / ops, at % ops};
    return true;
  }
  return false;
}

TEST(ProveMutantsTest, AWaitLoweredByOne) {
  int mutants = 0;
  ForEveryRow([&](const BoundCall& call) {
    ASSERT_EQ(ProveThrice(call), absl::OkStatus());
    for (size_t r = 0; r < call.plans.size(); ++r) {
      for (size_t i = 0; i < call.plans[r].incoming.size(); ++i) {
        BoundCall mutant = call;
        Incoming& in = mutant.plans[r].incoming[i];
        const Plan& sender = call.plans[static_cast<size_t>(in.peer)];
        if (!Lower(sender, call.slices, &in.ready)) continue;
        ++mutants;
        EXPECT_NE(ProveThrice(mutant), absl::OkStatus()) << r << " " << i;
      }
    }
  });
  EXPECT_GT(mutants, 500);
}

TEST(ProveMutantsTest, AWaitForAnotherStage) {
  int mutants = 0;
  ForEveryRow([&](const BoundCall& call) {
    for (size_t r = 0; r < call.plans.size(); ++r) {
      for (size_t i = 0; i < call.plans[r].incoming.size(); ++i) {
        BoundCall mutant = call;
        Milestone& ready = mutant.plans[r].incoming[i].ready;
        if (ready.stage == 0) continue;
        --ready.stage;
        ++mutants;
        EXPECT_NE(ProveThrice(mutant), absl::OkStatus()) << r << " " << i;
      }
    }
  });
  EXPECT_GT(mutants, 50);
}

// Runs `change` on every planned operation for which it returns true.
void ChangeOps(const std::function<bool(PlannedOp&)>& change, int at_least) {
  int mutants = 0;
  ForEveryRow([&](const BoundCall& call) {
    for (size_t r = 0; r < call.plans.size(); ++r) {
      for (size_t i = 0; i < call.plans[r].ops.size(); ++i) {
        BoundCall mutant = call;
        if (!change(mutant.plans[r].ops[i])) continue;
        ++mutants;
        EXPECT_NE(ProveThrice(mutant), absl::OkStatus())
            << "rank " << r << " operation " << i;
      }
    }
  });
  EXPECT_GT(mutants, at_least);
}

TEST(ProveMutantsTest, AnOperationInALaterStage) {
  ChangeOps(
      [](PlannedOp& op) {
        ++op.stage;
        return op.unit >= 0;
      },
      500);
}

TEST(ProveMutantsTest, AMessageInAnothersPlace) {
  ChangeOps(
      [](PlannedOp& op) {
        --op.unit;
        return op.unit >= 0 && SentSpan(op).count > 0;
      },
      200);
}

TEST(ProveMutantsTest, AMessageThatIsNotSent) {
  ChangeOps(
      [](PlannedOp& op) {
        const bool sent = op.unit >= 0;
        op.unit = -1;
        return sent;
      },
      500);
}

TEST(ProveMutantsTest, AnOperationThatIsNotCounted) {
  // Harmless where a later one is counted before anybody has to know; not for
  // the last send of a single slice before its rank waits. In pipelines of one
  // slice every reader needs each count.
  BoundCall call = Bound(Collective::kAllReduce, "mesh", 3, 2);
  for (size_t r = 0; r < call.plans.size(); ++r) {
    BoundCall mutant = call;
    for (PlannedOp& op : mutant.plans[r].ops) op.counts = false;
    EXPECT_NE(ProveThrice(mutant), absl::OkStatus()) << r;
  }
}

// Runs `change` on what every rank believes of each rank.
void ChangeShapes(const std::function<bool(RankShape&)>& change, int at_least) {
  int mutants = 0;
  ForEveryRow([&](const BoundCall& call) {
    for (size_t q = 0; q < call.plans.size(); ++q) {
      BoundCall mutant = call;
      bool changed = false;
      for (Plan& plan : mutant.plans) changed = change(plan.ranks[q]);
      if (!changed) continue;
      ++mutants;
      EXPECT_NE(ProveThrice(mutant), absl::OkStatus()) << "rank " << q;
    }
  });
  EXPECT_GT(mutants, at_least);
}

// Whether somebody waits for a later operation of q's first iteration.
bool WaitsBeyondPrologue(const BoundCall& call, size_t q) {
  for (const Plan& plan : call.plans) {
    for (const Incoming& in : plan.incoming) {
      if (static_cast<size_t>(in.peer) == q && in.ready.stage == 0 &&
          in.ready.position >= plan.ranks[q].prologue) {
        return true;
      }
    }
  }
  return false;
}

TEST(ProveMutantsTest, APrologueThatIsTooLong) {
  int mutants = 0;
  ForEveryRow([&](const BoundCall& call) {
    for (size_t q = 0; q < call.plans.size(); ++q) {
      if (!WaitsBeyondPrologue(call, q)) continue;
      BoundCall mutant = call;
      for (Plan& plan : mutant.plans) {
        plan.ranks[q].prologue = plan.ranks[q].ops;
      }
      ++mutants;
      EXPECT_NE(ProveThrice(mutant), absl::OkStatus()) << "rank " << q;
    }
  });
  EXPECT_GT(mutants, 50);
}

TEST(ProveMutantsTest, SlicesThatOverlap) {
  ChangeShapes([](RankShape& shape) { return shape.units-- > 1; }, 50);
}

TEST(ProveMutantsTest, AnIterationThatIsMissing) {
  ChangeShapes([](RankShape& shape) { return shape.stages-- > 1; }, 50);
}

// Changes what one rank believes of when others have read its messages: the
// peer's plan is the second argument.
void ChangeReaders(const std::function<bool(RankShape&, const Plan&)>& change,
                   bool read_in_place, int at_least) {
  int mutants = 0;
  ForDirectRows([&](BoundCall call) {
    const size_t ranks = call.plans.size();
    if (read_in_place) {
      call.reach.assign(ranks, {true, true});
      call.slices = 1;
    }
    for (size_t r = 0; r < ranks; ++r) {
      for (size_t q = 0; q < ranks; ++q) {
        BoundCall mutant = call;
        RankShape& shape = mutant.plans[r].ranks[q];
        if (!shape.reads_me || !change(shape, call.plans[q])) continue;
        // One call: none after it makes up for it.
        const BoundCall* const calls[] = {&mutant};
        ++mutants;
        EXPECT_NE(Prove(calls, {SmallestOutbox(mutant)}), absl::OkStatus())
            << r << " " << q;
      }
    }
  });
  EXPECT_GT(mutants, at_least);
}

TEST(ProveMutantsTest, AReaderThatIsForgotten) {
  const auto forget = [](RankShape& shape, const Plan&) {
    shape.reads_me = false;
    return true;
  };
  ChangeReaders(forget, /*read_in_place=*/true, 100);
}

TEST(ProveMutantsTest, AReaderThatIsThoughtDoneTooSoon) {
  ChangeReaders(
      [](RankShape& shape, const Plan& reader) {
        return Lower(reader, 1, &shape.last_read);
      },
      /*read_in_place=*/true, 100);
}

TEST(ProveMutantsTest, ASliceThatOverwritesBeforeItIsRead) {
  // Slices that walk round: nobody waits for the readers of the one before.
  BoundCall call = Bound(Collective::kBroadcast, "mesh", 3, 12);
  ASSERT_EQ(ProveThrice(call), absl::OkStatus());
  for (Plan& plan : call.plans) {
    for (RankShape& shape : plan.ranks) shape.reads_me = false;
  }
  EXPECT_NE(ProveThrice(call), absl::OkStatus());
}

TEST(ProveMutantsTest, EnteringACallTooEarly) {
  ForDirectRows([](const BoundCall& call) {
    // Whose second half shows that the first has been read by all.
    if (call.call.collective == Collective::kAllReduce &&
        call.plans[0].max_stages == 3) {
      return;
    }
    EXPECT_NE(ProveThrice(call, {0, kCallLines, /*early=*/1}),
              absl::OkStatus());
  });
}

TEST(ProveMutantsTest, ReusingALineTooEarly) {
  // Calls so small that the outbox has room for all of them; in a rooted call
  // somebody can run ahead.
  ForDirectRows([](BoundCall call) {
    if (!IsRooted(call.call.collective)) return;
    call.slices = 1;
    const std::vector<const BoundCall*> calls(6, &call);
    const size_t outbox = 16 * SmallestOutbox(call);
    EXPECT_EQ(Prove(calls, {outbox, 2}), absl::OkStatus());
    EXPECT_NE(Prove(calls, {outbox, 2, /*early=*/2}), absl::OkStatus());
  });
}

TEST(ProveMutantsTest, LeavingWhilePeersRead) {
  ForEveryRow([](BoundCall call) {
    bool sends_buffers = false;
    for (const PlannedOp& op : call.plans[0].ops) {
      sends_buffers |= op.unit >= 0 && SentSpan(op).count > 0 &&
                       SentSpan(op).buffer != Buffer::kScratch;
    }
    if (!sends_buffers) return;
    call.reach.assign(call.plans.size(), {true, true});
    ProveOptions options;
    EXPECT_EQ(ProveThrice(call, options), absl::OkStatus());
    options.drain = false;
    EXPECT_NE(ProveThrice(call, options), absl::OkStatus());
  });
}

TEST(ProveMutantsTest, InPlaceWhatMustBeCopied) {
  BoundCall call = Bound(Collective::kAllReduce, "one_shot");
  call.reach.assign(kRanks, {true, true});
  EXPECT_EQ(ProveThrice(call), absl::OkStatus());
  call.in_place = true;
  EXPECT_NE(ProveThrice(call), absl::OkStatus());
}

TEST(ProveMutantsTest, ScratchSharedBySlices) {
  // What Bind refuses to do: stages for a schedule that has scratch.
  Call call;
  call.collective = Collective::kAlltoAll;
  for (int me = 0; me < 2; ++me) {
    Schedule& s = call.schedules.emplace_back();
    s.Copy(In(me, 1), Scratch(0, 1));
    s.Send(1 - me, In(1 - me, 1));
    s.Recv(1 - me, Out(1 - me, 1));
    s.Copy(Scratch(0, 1), Out(me, 1));
  }
  absl::StatusOr<BoundCall> mutant = BindAll(call, true);
  ASSERT_TRUE(mutant.ok());
  ASSERT_EQ(mutant->plans[0].max_stages, 2U);
  for (Schedule& s : call.schedules) s.scratch_pieces = 1;
  absl::StatusOr<BoundCall> bound = BindAll(call, true);
  ASSERT_TRUE(bound.ok());
  ASSERT_EQ(bound->plans[0].max_stages, 1U);
  bound->slices = mutant->slices = 3;
  EXPECT_EQ(ProveThrice(*bound), absl::OkStatus());
  for (Plan& plan : mutant->plans) plan.scratch_pieces = 1;
  EXPECT_THAT(ProveThrice(*mutant).message(),
              testing::HasSubstr("reads scratch of another slice"));
}

TEST(ProveMutantsTest, SaysWhatIsWrong) {
  BoundCall call = Bound(Collective::kAllReduce, "mesh", 3);
  --call.plans[1].incoming.back().ready.position;
  EXPECT_EQ(ProveThrice(call).message(),
            "call 0 (all_reduce), rank 1, operation 4 in iteration 2: reads "
            "what rank 0 may not have written yet");
}

}  // namespace
}  // namespace axon
