// SPDX-License-Identifier: Apache-2.0
#include "schedule/check.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "schedule/collective.h"
#include "schedule/expression.h"
#include "schedule/memory.h"
#include "schedule/sound.h"
#include "schedule/text.h"
#include "schedule/traffic.h"
#include "schedule/walk.h"

namespace axon {
namespace {

struct Rank {
  int call = 0;
  bool entered = false;
  size_t op = 0;
  Memory memory;
};

using Values = std::vector<Expressions::Id>;

// What one rank adds to a reduction, and its place in the order of terms.
struct Term {
  int order = 0;
  Values values;
};

class World {
 public:
  World(absl::Span<const Call> calls, const CheckOptions& options)
      : calls_(calls),
        options_(options),
        n_(static_cast<int>(calls[0].schedules.size())),
        ranks_(n_),
        traffic_(n_, static_cast<int>(calls.size()), options),
        agreed_(calls.size()) {
    for (const Call& call : calls) {
      int pieces = 1;
      for (int r = 0; r < n_; ++r) {
        pieces =
            std::max(pieces, InBlocks(call.collective, {n_, r, call.root}) *
                                 call.schedules[r].cuts);
      }
      expressions_.emplace_back(n_, pieces);
    }
  }

  absl::Status Run() {
    Walk(n_, [this](int r) { return Step(r); });
    RETURN_IF_ERROR(status_);
    for (int r = 0; r < n_; ++r) {
      if (!Done(r) && !AtEnd(r)) return Error(r, "waits for ever");
    }
    // All that is left is the flush of what nobody reads.
    if (const auto ends = traffic_.Unread()) {
      return absl::FailedPreconditionError(
          absl::StrCat("a message from rank ", ends->first, " to rank ",
                       ends->second, " is never read"));
    }
    return absl::OkStatus();
  }

 private:
  const Call& CallOf(int r) const { return calls_[ranks_[r].call]; }
  const Schedule& ScheduleOf(int r) const { return CallOf(r).schedules[r]; }
  Expressions& ExpressionsOf(int r) { return expressions_[ranks_[r].call]; }
  bool Done(int r) const {
    return ranks_[r].call == static_cast<int>(calls_.size());
  }
  bool AtEnd(int r) const { return ranks_[r].op == ScheduleOf(r).ops.size(); }

  absl::Status Error(int r, absl::string_view what) const {
    const Rank& rank = ranks_[r];
    std::string where = absl::StrCat("rank ", r);
    if (calls_.size() > 1) absl::StrAppend(&where, " call ", rank.call);
    if (AtEnd(r)) {
      absl::StrAppend(&where, " at its end");
    } else {
      const Schedule& schedule = ScheduleOf(r);
      absl::StrAppend(&where, " operation ", rank.op, " (",
                      OpText(schedule, schedule.ops[rank.op]), ")");
    }
    return absl::FailedPreconditionError(absl::StrCat(where, ": ", what));
  }
  // Keeps the first error and stops the walk.
  bool Fail(int r, absl::string_view what) {
    if (status_.ok()) status_ = Error(r, what);
    return false;
  }

  bool Step(int r) {
    if (!status_.ok() || Done(r)) return false;
    Rank& rank = ranks_[r];
    if (!rank.entered) {
      Enter(r);
      return true;
    }
    if (AtEnd(r)) return Leave(r);
    const Schedule& schedule = ScheduleOf(r);
    const Op& op = schedule.ops[rank.op];
    if (const char* flaw =
            Flaw(CallOf(r).collective, r, n_, schedule, op, rank.memory)) {
      return Fail(r, flaw);
    }
    if (!Do(r, schedule, op)) return false;
    ++rank.op;
    return true;
  }

  void Enter(int r) {
    Rank& rank = ranks_[r];
    rank.entered = true;
    rank.op = 0;
    traffic_.Enter(r, rank.call);
    rank.memory = Memory(CallOf(r).collective, {n_, r, CallOf(r).root},
                         ScheduleOf(r), options_.in_place, ExpressionsOf(r));
  }

  bool Do(int r, const Schedule& schedule, const Op& op) {
    const absl::Span<const int16_t> peers = schedule.Peers(op);
    switch (op.kind) {
      case OpKind::kSend:
      case OpKind::kPublish:
        return Send(r, peers, op.source);
      case OpKind::kRecv:
      case OpKind::kRecvReduce:
      case OpKind::kReduceAll:
        return Receive(r, peers, op);
      case OpKind::kCopy:
        traffic_.Advance(r);
        return Copy(r, op);
      case OpKind::kReduce:
        traffic_.Advance(r);
        return Reduce(r, op,
                      {{0, Read(r, op.destination)}, {1, Read(r, op.source)}});
    }
    return Fail(r, "is of no known kind");
  }

  Values Read(int r, Span span) {
    Values values;
    values.reserve(span.count);
    for (const Cell& cell : ranks_[r].memory.At(span)) {
      values.push_back(cell.value);
    }
    return values;
  }

  bool Send(int r, absl::Span<const int16_t> peers, Span source) {
    Rank& rank = ranks_[r];
    if (!traffic_.CanSend(r, rank.call, peers)) return false;
    if (!traffic_.HasSent(r, rank.call)) {
      if (const int reader = traffic_.TakeSlot(r, rank.call); reader >= 0) {
        return Fail(r, absl::StrCat("reuses a slot of its outbox while rank ",
                                    reader, " may still read it"));
      }
    }
    Values values = Read(r, source);
    if (std::count(values.begin(), values.end(), Expressions::kUndefined) > 0) {
      return Fail(r, "sends an undefined piece");
    }
    const int id = traffic_.Send(r, rank.call, peers, std::move(values));
    if (options_.sending == Sending::kByReference) {
      for (Cell& cell : rank.memory.At(source)) cell.sent.push_back(id);
    }
    return true;
  }

  // Takes one message from each peer, or waits for all of them.
  bool Receive(int r, absl::Span<const int16_t> peers, const Op& op) {
    if (!traffic_.CanReceive(r, peers)) return false;
    traffic_.Advance(r);
    std::vector<Term> terms;
    for (int peer : peers) {
      const Message& message = traffic_.Receive(r, peer);
      if (message.call != ranks_[r].call) {
        return Fail(r, absl::StrCat("reads a message that rank ", peer,
                                    " sent in another call"));
      }
      if (message.values.size() != op.destination.count) {
        return Fail(r, absl::StrCat("takes ", op.destination.count,
                                    " pieces where rank ", peer, " sends ",
                                    message.values.size()));
      }
      terms.push_back({peer, message.values});
    }
    if (op.kind == OpKind::kRecv) return Write(r, op, terms[0].values);
    // Mine comes first, but for kReduceAll, which goes by rank.
    const int order = op.kind == OpKind::kReduceAll ? r : -1;
    terms.push_back({order, Read(r, op.source)});
    return Reduce(r, op, std::move(terms));
  }

  // Combines the terms in ascending order into the destination.
  bool Reduce(int r, const Op& op, std::vector<Term> terms) {
    std::sort(terms.begin(), terms.end(),
              [](const Term& a, const Term& b) { return a.order < b.order; });
    Values values(op.destination.count);
    Values piece(terms.size());
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t t = 0; t < terms.size(); ++t) piece[t] = terms[t].values[i];
      const absl::StatusOr<Expressions::Id> sum = ExpressionsOf(r).Sum(piece);
      if (!sum.ok()) return Fail(r, sum.status().message());
      values[i] = *sum;
    }
    return Write(r, op, std::move(values));
  }

  bool Copy(int r, const Op& op) {
    const absl::Span<Cell> from = ranks_[r].memory.At(op.source);
    const absl::Span<Cell> to = ranks_[r].memory.At(op.destination);
    Values values = Read(r, op.source);
    if (std::count(values.begin(), values.end(), Expressions::kUndefined) > 0) {
      return Fail(r, "copies an undefined piece");
    }
    if (from.data() == to.data()) {
      // In place there is nothing to do, unless an average is divided.
      return !op.completes || Write(r, op, std::move(values));
    }
    if (std::max(from.begin(), to.begin()) < std::min(from.end(), to.end())) {
      return Fail(r, "copies between overlapping spans");
    }
    return Write(r, op, std::move(values));
  }

  bool Write(int r, const Op& op, Values values) {
    const absl::Span<Cell> cells = ranks_[r].memory.At(op.destination);
    for (size_t i = 0; i < cells.size(); ++i) {
      for (int id : cells[i].sent) {
        if (const int reader = traffic_.MayStillRead(r, id); reader >= 0) {
          return Fail(r, absl::StrCat("overwrites what rank ", reader,
                                      " may still read"));
        }
      }
      cells[i].sent.clear();
      cells[i].value = values[i];
      if (!op.completes) continue;
      const absl::StatusOr<Expressions::Id> whole =
          ExpressionsOf(r).Finish(values[i]);
      if (!whole.ok()) return Fail(r, whole.status().message());
      cells[i].value = *whole;
    }
    return true;
  }

  // The end of a list: the flush, then the statement of the collective.
  bool Leave(int r) {
    Rank& rank = ranks_[r];
    if (options_.sending == Sending::kByReference) {
      if (options_.flush && !traffic_.Flush(r, rank.call)) return false;
      if (const int reader = traffic_.MayStillReadOf(r, rank.call);
          reader >= 0) {
        return Fail(r, absl::StrCat("returns while rank ", reader,
                                    " may still read its buffers"));
      }
    }
    if (CallOf(r).collective == Collective::kBarrier) {
      if (const int late = traffic_.MayBeMissing(r, rank.call); late >= 0) {
        return Fail(r, absl::StrCat("leaves the barrier though rank ", late,
                                    " may not have come"));
      }
    }
    if (!HoldsWhatItMust(r)) return false;
    ++rank.call;
    rank.entered = false;
    rank.op = 0;
    return true;
  }

  bool HoldsWhatItMust(int r) {
    const Call& call = CallOf(r);
    const Place place{n_, r, call.root};
    const int cuts = ScheduleOf(r).cuts;
    const int size = OutBlocks(call.collective, place) * cuts;
    Values values = Read(r, {Buffer::kOut, 0, static_cast<uint16_t>(size)});
    for (int i = 0; i < size; ++i) {
      Statement must = Holds(call.collective, place, i / cuts);
      const int piece = must.source_block * cuts + i % cuts;
      if (!IsRight(r, values[i], must.source, piece)) {
        return Fail(r, absl::StrCat(
                           "out[", i, "] is ", ExpressionsOf(r).Text(values[i]),
                           ", not piece ", piece, " of ",
                           must.source == kAllRanks
                               ? call.rank_order ? "all in rank order, finished"
                                                 : "all, finished"
                               : absl::StrCat("rank ", must.source)));
      }
    }
    if (call.collective != Collective::kAllReduce) return true;
    Values& agreed = agreed_[ranks_[r].call];
    if (agreed.empty()) agreed = values;
    return agreed == values ||
           Fail(r, "has summed in another order than the first to be done");
  }

  bool IsRight(int r, Expressions::Id value, int source, int piece) {
    const Expressions& expressions = ExpressionsOf(r);
    if (source != kAllRanks) {
      return value == expressions.Contribution(source, piece);
    }
    return expressions.FinishedPiece(value) == piece &&
           (!CallOf(r).rank_order || expressions.InRankOrder(value));
  }

  const absl::Span<const Call> calls_;
  const CheckOptions options_;
  const int n_;
  std::vector<Rank> ranks_;
  Traffic traffic_;
  std::vector<Expressions> expressions_;  // by call
  std::vector<Values> agreed_;            // by call: the first result
  absl::Status status_;
};

}  // namespace

absl::Status CheckSequence(absl::Span<const Call> calls,
                           const CheckOptions& options) {
  if (calls.empty()) return absl::OkStatus();
  for (const Call& call : calls) {
    RETURN_IF_ERROR(Sound(call, calls[0].schedules.size()));
  }
  return World(calls, options).Run();
}

absl::Status Check(const Call& call, const CheckOptions& options) {
  return CheckSequence(absl::MakeConstSpan(&call, 1), options);
}

Call MakeCall(const Algorithm& algorithm, int ranks, int root,
              absl::Span<const int> order) {
  Call call{algorithm.collective, root, algorithm.rank_order, {}};
  Group group = Group::World(ranks, 0);
  if (!order.empty()) group.ranks.assign(order.begin(), order.end());
  const auto index = [&](int rank) {
    return static_cast<int>(
        std::find(group.ranks.begin(), group.ranks.end(), rank) -
        group.ranks.begin());
  };
  group.root = index(root);
  for (int rank = 0; rank < ranks; ++rank) {
    group.me = index(rank);
    call.schedules.push_back(algorithm.generate(group));
  }
  return call;
}

}  // namespace axon
