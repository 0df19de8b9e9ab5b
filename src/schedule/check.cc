// SPDX-License-Identifier: Apache-2.0
#include "schedule/check.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "schedule/collective.h"
#include "schedule/expression.h"
#include "schedule/memory.h"
#include "schedule/text.h"
#include "schedule/walk.h"

namespace axon {
namespace {

// Events of a rank are numbered from 1 over the whole sequence: entering a call
// and each operation are one. clock[q] = k: q's events up to k are known done.
using Clock = std::vector<int>;

void Merge(const Clock& from, Clock* into) {
  for (size_t i = 0; i < into->size(); ++i) {
    (*into)[i] = std::max((*into)[i], from[i]);
  }
}

struct Reader {
  int rank = 0;
  int event = 0;  // of the reader; 0 until it has read
};

struct Message {
  int call = 0;
  std::vector<Expressions::Id> values;
  Clock clock;  // the sender's, once it was sent
  std::vector<Reader> readers;
};

// What is on the wire: which message, and which of its readers this is.
struct Delivery {
  int message = 0;
  int reader = 0;
};

struct Rank {
  int call = 0;
  bool entered = false;
  size_t op = 0;
  Clock clock;
  Memory memory;
  std::vector<std::vector<int>> sent;         // messages, by call
  std::vector<std::optional<Clock>> entries;  // clock on entering, by call
};

class World {
 public:
  World(absl::Span<const Call> calls, const CheckOptions& options)
      : calls_(calls),
        options_(options),
        n_(static_cast<int>(calls[0].schedules.size())),
        ranks_(n_),
        wire_(n_) {
    for (const Call& call : calls) {
      int pieces = 1;
      for (int r = 0; r < n_; ++r) {
        pieces =
            std::max(pieces, InBlocks(call.collective, {n_, r, call.root}) *
                                 call.schedules[r].cuts);
      }
      expressions_.emplace_back(n_, pieces);
      agreed_.emplace_back();
    }
    for (Rank& rank : ranks_) {
      rank.clock.assign(n_, 0);
      rank.sent.resize(calls.size());
      rank.entries.resize(calls.size());
    }
  }

  absl::Status Run() {
    Walk(n_, [this](int r) { return Step(r); });
    RETURN_IF_ERROR(status_);
    RETURN_IF_ERROR(EveryMessageIsRead());
    for (int r = 0; r < n_; ++r) {
      if (ranks_[r].call < static_cast<int>(calls_.size())) {
        return Error(r, "waits for ever");
      }
    }
    return absl::OkStatus();
  }

 private:
  const Schedule& ScheduleOf(int r) const {
    return calls_[ranks_[r].call].schedules[r];
  }
  Expressions& Values(int r) { return expressions_[ranks_[r].call]; }

  absl::Status Error(int r, absl::string_view what) const {
    const Rank& rank = ranks_[r];
    std::string where = absl::StrCat("rank ", r);
    if (calls_.size() > 1) absl::StrAppend(&where, " call ", rank.call);
    const Schedule& schedule = ScheduleOf(r);
    if (rank.op < schedule.ops.size()) {
      absl::StrAppend(&where, " operation ", rank.op, " (",
                      OpText(schedule, schedule.ops[rank.op]), ")");
    } else {
      absl::StrAppend(&where, " at its end");
    }
    return absl::FailedPreconditionError(absl::StrCat(where, ": ", what));
  }
  // Keeps the first error and stops the walk.
  bool Fail(int r, absl::string_view what) {
    if (status_.ok()) status_ = Error(r, what);
    return false;
  }

  bool Step(int r) {
    Rank& rank = ranks_[r];
    if (!status_.ok() || rank.call == static_cast<int>(calls_.size())) {
      return false;
    }
    if (!rank.entered) {
      Enter(r);
      return true;
    }
    const Schedule& schedule = ScheduleOf(r);
    if (rank.op == schedule.ops.size()) return Leave(r);
    const Op& op = schedule.ops[rank.op];
    if (!Sound(r, schedule, op) || !Do(r, schedule, op)) return false;
    ++rank.op;
    return true;
  }

  void Enter(int r) {
    Rank& rank = ranks_[r];
    const Call& call = calls_[rank.call];
    rank.entered = true;
    rank.op = 0;
    ++rank.clock[r];
    rank.entries[rank.call] = rank.clock;
    rank.memory = Memory(call.collective, {n_, r, call.root}, ScheduleOf(r),
                         options_.in_place, Values(r));
  }

  // What can be said of an operation without running it.
  bool Sound(int r, const Schedule& schedule, const Op& op) {
    Memory& memory = ranks_[r].memory;
    const bool listed =
        op.kind == OpKind::kPublish || op.kind == OpKind::kReduceAll;
    if (listed &&
        (op.peer < 0 || op.peer >= static_cast<int>(schedule.lists.size()))) {
      return Fail(r, "has no list of peers");
    }
    const absl::Span<const int16_t> peers = schedule.Peers(op);
    if (listed && peers.empty()) return Fail(r, "has an empty list of peers");
    for (size_t i = 0; i < peers.size(); ++i) {
      if (peers[i] < 0 || peers[i] >= n_ || peers[i] == r) {
        return Fail(r, absl::StrCat("has peer ", peers[i], " of ", n_,
                                    " ranks, itself excepted"));
      }
      if (i > 0 && peers[i] <= peers[i - 1]) {
        return Fail(r, "has a list of peers that does not ascend");
      }
    }
    if (!memory.Contains(op.source) || !memory.Contains(op.destination)) {
      return Fail(r, "names pieces out of range");
    }
    const bool both = op.kind != OpKind::kSend && op.kind != OpKind::kPublish &&
                      op.kind != OpKind::kRecv;
    if (both && op.source.count != op.destination.count) {
      return Fail(r, "has a source and a destination of different sizes");
    }
    if (op.destination.count > 0 && op.destination.buffer == Buffer::kIn) {
      return Fail(r, "writes `in`");
    }
    if (op.completes && (!both || op.destination.count == 0 ||
                         !IsReduction(calls_[ranks_[r].call].collective))) {
      return Fail(r, "completes nothing");
    }
    return true;
  }

  bool Do(int r, const Schedule& schedule, const Op& op) {
    Rank& rank = ranks_[r];
    std::vector<Expressions::Id> source = Read(r, op.source);
    switch (op.kind) {
      case OpKind::kSend:
      case OpKind::kPublish:
        return Send(r, schedule.Peers(op), op.source, std::move(source));
      case OpKind::kRecv:
      case OpKind::kRecvReduce:
      case OpKind::kReduceAll: {
        std::vector<Terms> terms;
        if (!Receive(r, schedule.Peers(op), op.destination.count, &terms)) {
          return false;
        }
        if (op.kind == OpKind::kRecv) {
          return Write(r, op, terms[0].values);
        }
        // Mine first, but for kReduceAll, which goes by rank.
        terms.push_back({op.kind == OpKind::kReduceAll ? r : -1, source});
        return Reduce(r, op, std::move(terms));
      }
      case OpKind::kCopy:
        ++rank.clock[r];
        return Write(r, op, std::move(source));
      case OpKind::kReduce: {
        ++rank.clock[r];
        return Reduce(r, op, {{0, Read(r, op.destination)}, {1, source}});
      }
    }
    return Fail(r, "is of no known kind");
  }

  std::vector<Expressions::Id> Read(int r, Span span) {
    std::vector<Expressions::Id> values;
    values.reserve(span.count);
    for (const Cell& cell : ranks_[r].memory.At(span)) {
      values.push_back(cell.value);
    }
    return values;
  }

  bool Send(int r, absl::Span<const int16_t> peers, Span source,
            std::vector<Expressions::Id> values) {
    Rank& rank = ranks_[r];
    const auto credits = static_cast<size_t>(options_.credits);
    for (int peer : peers) {
      if (credits > 0 && wire_.InFlight(r, peer) >= credits) return false;
    }
    std::vector<int>& sent = rank.sent[rank.call];
    if (sent.empty() && !TakeSlot(r)) return false;
    for (Expressions::Id value : values) {
      if (value == Expressions::kUndefined) {
        return Fail(r, "sends an undefined piece");
      }
    }
    ++rank.clock[r];
    const int id = static_cast<int>(messages_.size());
    Message message{rank.call, std::move(values), rank.clock, {}};
    for (int peer : peers) {
      wire_.Push(r, peer, {id, static_cast<int>(message.readers.size())});
      message.readers.push_back({peer});
    }
    messages_.push_back(std::move(message));
    sent.push_back(id);
    if (options_.sending == Sending::kByReference) {
      for (Cell& cell : rank.memory.At(source)) cell.sent.push_back(id);
    }
    return true;
  }

  // Before the first write of a run into its slot: waits for the readers of the
  // run that was there, then sees whether that was enough.
  bool TakeSlot(int r) {
    Rank& rank = ranks_[r];
    const int before = rank.call - options_.slots;
    if (options_.sending != Sending::kCopied || options_.slots == 0 ||
        before < 0) {
      return true;
    }
    const int awaited = before + 1 - options_.early;
    if (awaited >= 0) {
      for (int id : rank.sent[before]) {
        for (const Reader& reader : messages_[id].readers) {
          if (!ranks_[reader.rank].entries[awaited]) return false;
        }
      }
      for (int id : rank.sent[before]) {
        for (const Reader& reader : messages_[id].readers) {
          Merge(*ranks_[reader.rank].entries[awaited], &rank.clock);
        }
      }
    }
    for (int id : rank.sent[before]) {
      if (const int reader = MayStillRead(rank, id); reader >= 0) {
        return Fail(
            r, absl::StrCat("reuses the slot of call ", before, " while rank ",
                            reader, " may still read it"));
      }
    }
    return true;
  }

  // A rank that is not known to be done with a message, or -1.
  int MayStillRead(const Rank& rank, int id) const {
    for (const Reader& reader : messages_[id].readers) {
      if (reader.event == 0 || reader.event > rank.clock[reader.rank]) {
        return reader.rank;
      }
    }
    return -1;
  }

  struct Terms {
    int order = 0;
    std::vector<Expressions::Id> values;
  };

  // Takes one message from each peer, or waits for all of them.
  bool Receive(int r, absl::Span<const int16_t> peers, int count,
               std::vector<Terms>* terms) {
    for (int peer : peers) {
      if (wire_.InFlight(peer, r) == 0) return false;
    }
    Rank& rank = ranks_[r];
    ++rank.clock[r];
    for (int peer : peers) {
      const Delivery delivery = wire_.Front(peer, r);
      wire_.Pop(peer, r);
      Message& message = messages_[delivery.message];
      if (message.call != rank.call) {
        return Fail(r, absl::StrCat("reads a message that rank ", peer,
                                    " sent in call ", message.call));
      }
      if (static_cast<int>(message.values.size()) != count) {
        return Fail(r, absl::StrCat("takes ", count, " pieces where rank ",
                                    peer, " sends ", message.values.size()));
      }
      message.readers[delivery.reader].event = rank.clock[r];
      Merge(message.clock, &rank.clock);
      terms->push_back({peer, message.values});
    }
    return true;
  }

  // Combines the terms in ascending order into the destination.
  bool Reduce(int r, const Op& op, std::vector<Terms> terms) {
    std::sort(terms.begin(), terms.end(),
              [](const Terms& a, const Terms& b) { return a.order < b.order; });
    std::vector<Expressions::Id> values(op.destination.count);
    std::vector<Expressions::Id> piece(terms.size());
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t t = 0; t < terms.size(); ++t) piece[t] = terms[t].values[i];
      const absl::StatusOr<Expressions::Id> sum = Values(r).Sum(piece);
      if (!sum.ok()) return Fail(r, sum.status().message());
      values[i] = *sum;
    }
    return Write(r, op, std::move(values));
  }

  bool Write(int r, const Op& op, std::vector<Expressions::Id> values) {
    Rank& rank = ranks_[r];
    const absl::Span<Cell> cells = rank.memory.At(op.destination);
    if (op.kind == OpKind::kCopy && !cells.empty()) {
      const absl::Span<Cell> from = rank.memory.At(op.source);
      if (from.data() == cells.data() && !op.completes) return true;
      if (from.data() != cells.data() &&
          std::max(from.begin(), cells.begin()) <
              std::min(from.end(), cells.end())) {
        return Fail(r, "copies between overlapping spans");
      }
    }
    for (size_t i = 0; i < cells.size(); ++i) {
      for (int id : cells[i].sent) {
        if (const int reader = MayStillRead(rank, id); reader >= 0) {
          return Fail(r, absl::StrCat("overwrites what rank ", reader,
                                      " may still read"));
        }
      }
      cells[i].sent.clear();
      if (values[i] == Expressions::kUndefined) {
        return Fail(r, "copies an undefined piece");
      }
      if (op.completes) {
        const absl::StatusOr<Expressions::Id> whole =
            Values(r).Finish(values[i]);
        if (!whole.ok()) return Fail(r, whole.status().message());
        values[i] = *whole;
      }
      cells[i].value = values[i];
    }
    return true;
  }

  // The end of a list: the flush, then the statement of the collective.
  bool Leave(int r) {
    Rank& rank = ranks_[r];
    if (options_.sending == Sending::kByReference) {
      if (options_.flush && !Flush(r)) return false;
      for (int id : rank.sent[rank.call]) {
        if (const int reader = MayStillRead(rank, id); reader >= 0) {
          return Fail(r, absl::StrCat("returns while rank ", reader,
                                      " may still read its buffers"));
        }
      }
    }
    if (!HoldsWhatItMust(r)) return false;
    ++rank.call;
    rank.entered = false;
    return true;
  }

  bool Flush(int r) {
    Rank& rank = ranks_[r];
    for (int id : rank.sent[rank.call]) {
      for (const Reader& reader : messages_[id].readers) {
        if (reader.event == 0) return false;
      }
    }
    for (int id : rank.sent[rank.call]) {
      for (const Reader& reader : messages_[id].readers) {
        int& known = rank.clock[reader.rank];
        known = std::max(known, reader.event);
      }
    }
    return true;
  }

  bool HoldsWhatItMust(int r) {
    Rank& rank = ranks_[r];
    const Call& call = calls_[rank.call];
    const Place place{n_, r, call.root};
    const int cuts = ScheduleOf(r).cuts;
    if (call.collective == Collective::kBarrier) return AllHaveCome(r);
    const int blocks = OutBlocks(call.collective, place);
    const Span out{Buffer::kOut, 0, static_cast<uint16_t>(blocks * cuts)};
    const std::vector<Expressions::Id> values = Read(r, out);
    for (size_t i = 0; i < values.size(); ++i) {
      const Statement must =
          Holds(call.collective, place, static_cast<int>(i) / cuts);
      const int piece = must.source_block * cuts + static_cast<int>(i) % cuts;
      const bool right =
          must.source == kAllRanks
              ? Values(r).FinishedPiece(values[i]) == piece
              : values[i] == Values(r).Contribution(must.source, piece);
      if (!right) {
        return Fail(r,
                    absl::StrCat("out[", i, "] is ", Values(r).Text(values[i]),
                                 ", not piece ", piece, " of ",
                                 must.source == kAllRanks
                                     ? std::string("all, finished")
                                     : absl::StrCat("rank ", must.source)));
      }
      if (must.source == kAllRanks && call.rank_order &&
          !Values(r).InRankOrder(values[i])) {
        return Fail(r, absl::StrCat("out[", i, "] is not in rank order: ",
                                    Values(r).Text(values[i])));
      }
    }
    if (call.collective != Collective::kAllReduce) return true;
    std::vector<Expressions::Id>& agreed = agreed_[rank.call];
    if (agreed.empty()) agreed = values;
    return agreed == values ||
           Fail(r, "sums in another order than the first rank that was done");
  }

  bool AllHaveCome(int r) {
    Rank& rank = ranks_[r];
    for (int q = 0; q < n_; ++q) {
      const std::optional<Clock>& entry = ranks_[q].entries[rank.call];
      if (!entry || (*entry)[q] > rank.clock[q]) {
        return Fail(r, absl::StrCat("leaves the barrier though rank ", q,
                                    " may not have come"));
      }
    }
    return true;
  }

  absl::Status EveryMessageIsRead() const {
    for (int r = 0; r < n_; ++r) {
      const bool done = ranks_[r].call == static_cast<int>(calls_.size());
      if (!done &&
          (ranks_[r].op < ScheduleOf(r).ops.size() || !ranks_[r].entered)) {
        return absl::OkStatus();  // some wait: that is the error to tell
      }
    }
    for (int from = 0; from < n_; ++from) {
      for (int to = 0; to < n_; ++to) {
        if (wire_.InFlight(from, to) > 0) {
          return absl::FailedPreconditionError(absl::StrCat(
              "a message from rank ", from, " to rank ", to, " is never read"));
        }
      }
    }
    return absl::OkStatus();
  }

  const absl::Span<const Call> calls_;
  const CheckOptions options_;
  const int n_;
  std::vector<Rank> ranks_;
  Wire<Delivery> wire_;
  std::vector<Message> messages_;
  std::vector<Expressions> expressions_;              // by call
  std::vector<std::vector<Expressions::Id>> agreed_;  // by call
  absl::Status status_;
};

}  // namespace

absl::Status CheckSequence(absl::Span<const Call> calls,
                           const CheckOptions& options) {
  for (const Call& call : calls) {
    if (call.schedules.empty() ||
        call.schedules.size() != calls[0].schedules.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a call has schedules for ", call.schedules.size(),
                       " ranks and another for ", calls[0].schedules.size()));
    }
    if (call.root < 0 || call.root >= static_cast<int>(call.schedules.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "root ", call.root, " is none of ", call.schedules.size(), " ranks"));
    }
    for (const Schedule& schedule : call.schedules) {
      if (schedule.cuts == 0 || schedule.cuts != call.schedules[0].cuts) {
        return absl::InvalidArgumentError(
            absl::StrCat("ranks cut blocks into ", schedule.cuts, " and ",
                         call.schedules[0].cuts, " pieces"));
      }
    }
  }
  return calls.empty() ? absl::OkStatus() : World(calls, options).Run();
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
