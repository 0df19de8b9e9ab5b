// SPDX-License-Identifier: Apache-2.0
// How ranks move and wait, as BoardRun, BoardView and Outbox do it.
#include "engine/prove.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/bytes.h"
#include "base/status.h"
#include "engine/bind.h"
#include "engine/prove_world.h"
#include "schedule/collective.h"
#include "schedule/walk.h"

namespace axon {

absl::Status Proof::Run() {
  for (const BoundCall* call : calls_) {
    RETURN_IF_ERROR(AddFacts(*call));
  }
  Walk(static_cast<int>(n_), [this](int r) {
    return status_.ok() && ranks_[r].call < calls_.size() && Step(r);
  });
  RETURN_IF_ERROR(status_);
  for (size_t r = 0; r < n_; ++r) {
    if (ranks_[r].call < calls_.size()) Fail(r, "waits for ever");
  }
  return status_;
}

absl::Status Proof::AddFacts(const BoundCall& call) {
  CallFacts facts;
  ASSIGN_OR_RETURN(facts.pairs, PairMessages(call.call.schedules, call.plans));
  const auto slices = static_cast<size_t>(call.slices);
  for (size_t r = 0; r < n_; ++r) {
    facts.messages.emplace_back(facts.pairs[r].sent.size() * slices);
    const Place place{static_cast<int>(n_), static_cast<int>(r),
                      call.call.root};
    const int blocks = InBlocks(call.call.collective, place) +
                       OutBlocks(call.call.collective, place);
    facts.memory.emplace_back(static_cast<size_t>(blocks) *
                              call.call.schedules[r].cuts * slices);
  }
  facts.lease.resize(n_);
  facts_.push_back(std::move(facts));
  return absl::OkStatus();
}

bool Proof::Fail(size_t r, absl::string_view what) {
  if (!status_.ok()) return false;
  const ProofRank& rank = ranks_[r];
  status_ = absl::InternalError(
      absl::StrFormat("call %d (%s), rank %d, operation %u in iteration %u: %s",
                      rank.call, Name(CallOf(r).call.collective), r, rank.op,
                      rank.iteration, std::string(what)));
  return false;
}

bool Proof::Step(size_t r) {
  ProofRank& rank = ranks_[r];
  switch (rank.state) {
    case RankState::kBegin:
      Begin(r);
      rank.state = RankState::kEnter;
      return true;
    case RankState::kEnter:
      if (!Enter(r)) return false;
      rank.state = RankState::kRun;
      return true;
    case RankState::kRun:
      if (rank.iteration < Iterations(r)) return RunNext(r);
      rank.progress.Store(Count(Number(r) + 1, 0), rank.clock);
      rank.state = RankState::kDrain;
      return true;
    case RankState::kDrain:
      break;
  }
  return Drain(r) && Leave(r);
}

void Proof::Begin(size_t r) {
  ProofRank& rank = ranks_[r];
  rank.iteration = rank.op = 0;
  rank.done = 0;
  rank.outbox_slice = -1;
  rank.scratch.assign(static_cast<size_t>(PlanOf(r).scratch_pieces), -1);
  const uint64_t number = Number(r);
  const uint64_t before =
      std::max<uint64_t>(number, options_.lines) - options_.lines;
  rank.lease = {0, before};
  const Reach reach = ReachOf(rank.call, r);
  const size_t total = SlicesOf(r, r).total();
  if (Stages(PlanOf(r), reach.in, reach.out) && total > 0) {
    rank.lease = rank.outbox.Take(total, number, before);
  }
  rank.lease.after -= std::min<uint64_t>(rank.lease.after, options_.early);
}

bool Proof::Enter(size_t r) {
  ProofRank& rank = ranks_[r];
  if (!AwaitFinished(r, rank.lease.after)) return false;
  while (rank.iteration == 0 && rank.op < ShapeOf(r, r).prologue) {
    if (PlanOf(r).ops[rank.op].num_incoming > 0) {
      return Fail(r, "reads before it shows that it has entered");
    }
    if (!RunNext(r)) return Fail(r, "waits before it has entered");
  }
  const uint32_t number = Number(r);
  ++rank.clock[r];
  Cell& line = rank.lines[number % options_.lines];
  if (const int reader = line.Write(number, rank.clock); reader >= 0) {
    return Fail(
        r, absl::StrCat("reuses a line that rank ", reader, " may still read"));
  }
  FactsOf(r).lease[r] = rank.lease.position;
  rank.posted.push_back(rank.clock);
  return true;
}

bool Proof::AwaitFinished(size_t r, uint64_t call) {
  ProofRank& rank = ranks_[r];
  if (rank.floor >= call) return true;
  for (size_t q = 0; q < n_; ++q) {
    if (q != r &&
        !AwaitCount(r, q, Count(static_cast<uint32_t>(call) + 1, 0))) {
      return false;
    }
  }
  rank.floor = call;
  return true;
}

bool Proof::AwaitCount(size_t r, size_t q, uint64_t target) {
  ProofRank& rank = ranks_[r];
  if (Reached(rank.peer_count[q], target)) return true;
  const auto* store = ranks_[q].progress.FirstToReach(target);
  if (store == nullptr) return false;
  Join(rank.clock, store->second);
  rank.peer_count[q] = store->first;
  return true;
}

bool Proof::AwaitLine(size_t r, size_t q) {
  ProofRank& rank = ranks_[r];
  const uint32_t number = Number(r);
  if (rank.peer_line[q] == number) return true;
  if (ranks_[q].posted.size() <= rank.call) return false;
  Join(rank.clock, ranks_[q].posted[rank.call]);
  rank.peer_line[q] = number;
  rank.peer_count[q] =
      std::max(rank.peer_count[q], Count(number, ShapeOf(r, q).prologue));
  return true;
}

bool Proof::RunNext(size_t r) {
  ProofRank& rank = ranks_[r];
  const Plan& plan = PlanOf(r);
  if (rank.op == plan.ops.size()) {
    rank.op = 0;
    ++rank.iteration;
    return true;
  }
  const PlannedOp& op = plan.ops[rank.op];
  const int slice =
      static_cast<int>(rank.iteration) - static_cast<int>(op.stage);
  if (slice >= 0 && slice < CallOf(r).slices) {
    if (!AwaitIncoming(r, op, slice) ||
        (op.unit >= 0 && !AwaitOutbox(r, slice)) || !Do(r, op, slice)) {
      return false;
    }
    ++rank.done;
    if (op.counts && rank.state == RankState::kRun) {
      const auto ops = static_cast<uint32_t>(plan.ops.size());
      rank.progress.Store(Count(Number(r), rank.iteration * ops + rank.op + 1),
                          rank.clock);
    }
  }
  ++rank.op;
  return true;
}

bool Proof::AwaitIncoming(size_t r, const PlannedOp& op, int slice) {
  for (uint32_t i = 0; i < op.num_incoming; ++i) {
    const Incoming& in = PlanOf(r).incoming[op.first_incoming + i];
    const auto q = static_cast<size_t>(in.peer);
    if (!AwaitLine(r, q) || !AwaitDone(r, q, in.ready, slice)) return false;
  }
  return true;
}

bool Proof::AwaitOutbox(size_t r, int slice) {
  ProofRank& rank = ranks_[r];
  const Reach reach = ReachOf(rank.call, r);
  const SlicesIn slices = SlicesOf(r, r);
  if (slice <= rank.outbox_slice || slices.slice_bytes == 0 ||
      !Stages(PlanOf(r), reach.in, reach.out)) {
    return true;
  }
  if (slices.slice_bytes > slices.outbox) {
    return Fail(r, "has a slice larger than its outbox");
  }
  if (slice >= slices.held() && !AwaitReaders(r, slice - slices.held())) {
    return false;
  }
  rank.outbox_slice = slice;
  return true;
}

bool Proof::AwaitReaders(size_t r, int slice) {
  for (size_t q = 0; q < n_; ++q) {
    const RankShape& shape = ShapeOf(r, q);
    if (shape.reads_me && !AwaitDone(r, q, shape.last_read, slice)) {
      return false;
    }
  }
  return true;
}

bool Proof::Drain(size_t r) {
  const Reach reach = ReachOf(ranks_[r].call, r);
  return !options_.drain || (!reach.in && !reach.out) ||
         AwaitReaders(r, CallOf(r).slices - 1);
}

bool Proof::Leave(size_t r) {
  ProofRank& rank = ranks_[r];
  if (rank.done !=
      PlanOf(r).ops.size() * static_cast<size_t>(CallOf(r).slices)) {
    return Fail(r, "leaves a call with operations undone");
  }
  for (Cell& cell : FactsOf(r).memory[r]) {
    if (!Write(r, cell)) return false;
  }
  ++rank.call;
  rank.state = RankState::kBegin;
  return true;
}
absl::StatusOr<BoundCall> BindAll(Call call, bool pipelined) {
  BoundCall bound;
  for (size_t r = 0; r < call.schedules.size(); ++r) {
    ASSIGN_OR_RETURN(bound.plans.emplace_back(),
                     Bind(call.schedules, static_cast<int>(r), pipelined));
  }
  bound.call = std::move(call);
  return bound;
}

size_t SmallestOutbox(const BoundCall& call) {
  return RoundUp(OutboxPieces(call.plans[0]) * call.unit, kOutboxZones);
}

absl::Status Prove(absl::Span<const BoundCall* const> calls,
                   const ProveOptions& options) {
  return Proof(calls, options).Run();
}

}  // namespace axon
