// SPDX-License-Identifier: Apache-2.0
#include "engine/prove_pairs.h"

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace axon {
namespace {

// The numbers of the sends from one rank to another, in order.
class Wires {
 public:
  explicit Wires(absl::Span<const Schedule> schedules)
      : ranks_(schedules.size()), wires_(ranks_ * ranks_) {
    for (size_t r = 0; r < ranks_; ++r) {
      int number = 0;
      for (const Op& op : schedules[r].ops) {
        if (!Sends(op.kind)) continue;
        for (int16_t to : schedules[r].Peers(op)) {
          At(r, static_cast<size_t>(to)).numbers.push_back(number);
        }
        ++number;
      }
    }
  }

  // The next send from `from` to `to`; -1 if there is no more.
  int Take(int16_t from, size_t to) {
    Wire& wire = At(static_cast<size_t>(from), to);
    return wire.taken < wire.numbers.size() ? wire.numbers[wire.taken++] : -1;
  }

 private:
  struct Wire {
    std::vector<int> numbers;
    size_t taken = 0;
  };
  Wire& At(size_t from, size_t to) { return wires_[from * ranks_ + to]; }

  size_t ranks_;
  std::vector<Wire> wires_;
};

// Walks one plan beside its schedule.
class RankWalk {
 public:
  RankWalk(const Schedule& schedule, const Plan& plan, size_t me, Wires& wires)
      : schedule_(schedule), plan_(plan), me_(me), wires_(wires) {}

  absl::StatusOr<RankPairs> Run() {
    for (position_ = 0; position_ < plan_.ops.size(); ++position_) {
      RETURN_IF_ERROR(Pair(plan_.ops[position_]));
    }
    if (next_ != schedule_.ops.size()) return Error("leaves out the rest");
    return std::move(pairs_);
  }

 private:
  absl::Status Error(const char* what) const {
    return absl::InternalError(absl::StrFormat(
        "plan of rank %d, operation %d, against operation %d of its schedule: "
        "%s",
        me_, position_, next_, what));
  }

  absl::Status Pair(const PlannedOp& planned) {
    if (next_ == schedule_.ops.size()) return Error("has no counterpart");
    const Op& op = schedule_.ops[next_];
    if (planned.kind != op.kind || !(planned.source == op.source) ||
        !(planned.destination == op.destination) ||
        planned.completes != op.completes) {
      return Error("is another operation");
    }
    // So that a slice's operations run in the order of the schedule.
    if (planned.stage < stage_) return Error("is in a stage before the last");
    stage_ = planned.stage;
    RETURN_IF_ERROR(PairIncoming(planned, op));
    ++next_;
    if (planned.unit < 0) {
      pairs_.send.push_back(-1);
      return Sends(op.kind) ? Error("sends nothing") : absl::OkStatus();
    }
    if (!Sends(op.kind)) {
      // Joined with the send of its result.
      if (next_ == schedule_.ops.size() || !Sends(schedule_.ops[next_].kind) ||
          !(schedule_.ops[next_].source == planned.destination)) {
        return Error("sends what it should not");
      }
      ++next_;
    }
    pairs_.send.push_back(static_cast<int>(pairs_.sent.size()));
    pairs_.sent.push_back(SentSpan(planned));
    return absl::OkStatus();
  }

  absl::Status PairIncoming(const PlannedOp& planned, const Op& op) {
    std::vector<SendName>& expected = pairs_.expected.emplace_back();
    if (Receives(op.kind)) {
      for (int16_t from : schedule_.Peers(op)) {
        expected.push_back({from, wires_.Take(from, me_)});
        if (expected.back().number < 0) return Error("receives in vain");
      }
    }
    if (planned.num_incoming != expected.size() ||
        planned.first_incoming + planned.num_incoming > plan_.incoming.size()) {
      return Error("reads another number of messages");
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      if (plan_.incoming[planned.first_incoming + i].peer != expected[i].rank) {
        return Error("reads from another peer");
      }
    }
    return absl::OkStatus();
  }

  const Schedule& schedule_;
  const Plan& plan_;
  const size_t me_;
  Wires& wires_;
  size_t position_ = 0;  // in the plan
  size_t next_ = 0;      // in the schedule
  uint32_t stage_ = 0;   // of the operation before
  RankPairs pairs_;
};

}  // namespace

absl::StatusOr<std::vector<RankPairs>> PairMessages(
    absl::Span<const Schedule> schedules, absl::Span<const Plan> plans) {
  Wires wires(schedules);
  std::vector<RankPairs> pairs;
  for (size_t r = 0; r < schedules.size(); ++r) {
    ASSIGN_OR_RETURN(pairs.emplace_back(),
                     RankWalk(schedules[r], plans[r], r, wires).Run());
  }
  return pairs;
}

}  // namespace axon
