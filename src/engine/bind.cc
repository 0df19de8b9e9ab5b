// SPDX-License-Identifier: Apache-2.0
#include "engine/bind.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace axon {
namespace {

// Deeper schedules (rings of many ranks) are not overlapped: their slices would
// have to be tiny to fit side by side.
constexpr uint32_t kMaxStages = 4;

// An operation of a schedule, perhaps joined with the send that follows it.
struct Step {
  const Op* op;
  const Op* send = nullptr;  // of op's destination, or op itself if it sends
  uint32_t stage = 0;
  uint32_t position = 0;  // in an iteration
  uint32_t unit = 0;
};

struct RankSteps {
  std::vector<Step> steps;  // in the order of the schedule
  RankShape shape;
};

std::vector<Step> Fuse(const Schedule& schedule) {
  std::vector<Step> steps;
  for (size_t i = 0; i < schedule.ops.size(); ++i) {
    const Op& op = schedule.ops[i];
    Step step{&op};
    if (Sends(op.kind)) {
      step.send = &op;
    } else if (op.kind != OpKind::kReduce && i + 1 < schedule.ops.size()) {
      const Op& next = schedule.ops[i + 1];
      if (Sends(next.kind) && next.source == op.destination &&
          op.destination.count > 0) {
        step.send = &next;
        ++i;
      }
    }
    steps.push_back(step);
  }
  return steps;
}

// A new stage begins where a rank reads something after it has sent something:
// what it sent may travel while the slice before is worked on. A message is
// read in no earlier stage than it is sent in, so that an iteration never waits
// for a later one of a peer. Walks all lists in the order of their messages.
class StageWalk {
 public:
  StageWalk(const std::vector<Schedule>& all, std::vector<RankSteps>& ranks)
      : all_(all), ranks_(ranks), next_(all.size(), 0), at_(all.size()) {}

  void Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t r = 0; r < all_.size(); ++r) {
        while (next_[r] < ranks_[r].steps.size() &&
               Advance(static_cast<int>(r))) {
          moved = true;
        }
      }
    }
    for (size_t r = 0; r < all_.size(); ++r) {
      ranks_[r].shape.stages = at_[r].stage + 1;
    }
  }

 private:
  struct At {
    uint32_t stage = 0;
    bool sent = false;  // in this stage
  };

  // The rank's next step; false while a message is missing.
  bool Advance(int r) {
    Step& step = ranks_[r].steps[next_[r]];
    At& at = at_[r];
    if (Receives(step.op->kind)) {
      uint32_t stage = at.stage + (at.sent ? 1 : 0);
      const absl::Span<const int16_t> peers = all_[r].Peers(*step.op);
      for (int16_t from : peers) {
        if (wire_[{from, r}].empty()) return false;
      }
      for (int16_t from : peers) {
        stage = std::max(stage, wire_[{from, r}].front());
        wire_[{from, r}].pop_front();
      }
      if (stage != at.stage) at = {stage, false};
    }
    step.stage = at.stage;
    if (step.send != nullptr) {
      at.sent = true;
      for (int16_t to : all_[r].Peers(*step.send)) {
        wire_[{r, to}].push_back(at.stage);
      }
    }
    ++next_[r];
    return true;
  }

  const std::vector<Schedule>& all_;
  std::vector<RankSteps>& ranks_;
  std::vector<size_t> next_;
  std::vector<At> at_;
  std::map<std::pair<int, int>, std::deque<uint32_t>> wire_;
};

RankSteps Shape(const Schedule& schedule) {
  RankSteps rank;
  rank.steps = Fuse(schedule);
  // Stages are ascending in a schedule, so its order is an iteration's order.
  bool reading = false;
  for (Step& step : rank.steps) {
    step.position = rank.shape.ops++;
    reading = reading || Receives(step.op->kind);
    if (step.send != nullptr) {
      // What only this rank needs may wait until its line is posted.
      if (!reading) rank.shape.prologue = rank.shape.ops;
      step.unit = rank.shape.units;
      rank.shape.units += step.send->source.count;
    }
  }
  return rank;
}

struct Sent {
  int rank;
  const Step* step;
};
using Wire = std::map<std::pair<int, int>, std::deque<Sent>>;

Wire CollectSends(const std::vector<Schedule>& all,
                  const std::vector<RankSteps>& ranks) {
  Wire wire;
  for (int r = 0; r < static_cast<int>(all.size()); ++r) {
    for (const Step& step : ranks[r].steps) {
      if (step.send == nullptr) continue;
      for (int16_t to : all[r].Peers(*step.send)) {
        wire[{r, to}].push_back({r, &step});
      }
    }
  }
  return wire;
}

bool Later(const Milestone& a, uint32_t ops, const Milestone& b) {
  return a.stage * ops + a.position > b.stage * ops + b.position;
}

// Takes the messages of rank r's step off the wire; appends to `out` if given.
absl::Status Receive(const Schedule& schedule, int r, const Step& step,
                     Wire& wire, std::vector<RankShape>& shapes, int me,
                     std::vector<Incoming>* out) {
  for (int16_t from : schedule.Peers(*step.op)) {
    auto& queue = wire[{from, r}];
    if (queue.empty()) {
      return absl::InternalError(absl::StrFormat(
          "schedules do not match: rank %d operation %u receives from %d, "
          "which sends nothing more",
          r, step.position, from));
    }
    const Sent sent = queue.front();
    queue.pop_front();
    if (sent.rank == me) {
      RankShape& shape = shapes[r];
      const Milestone read{step.stage, step.position};
      if (!shape.reads_me || Later(read, shape.ops, shape.last_read)) {
        shape.last_read = read;
      }
      shape.reads_me = true;
    }
    if (out != nullptr) {
      out->push_back({from,
                      sent.step->send->source,
                      sent.step->unit,
                      {sent.step->stage, sent.step->position}});
    }
  }
  return absl::OkStatus();
}

PlannedOp MakeOp(const Step& step) {
  PlannedOp op;
  op.kind = step.op->kind;
  op.completes = step.op->completes;
  op.source = step.op->source;
  op.destination = step.op->destination;
  op.stage = step.stage;
  if (step.send != nullptr) op.unit = static_cast<int32_t>(step.unit);
  op.counts = step.send != nullptr || Receives(step.op->kind);
  return op;
}

}  // namespace

absl::StatusOr<Plan> Bind(const std::vector<Schedule>& all, int me,
                          bool pipelined) {
  Plan plan;
  plan.me = me;
  const int n = static_cast<int>(all.size());
  std::vector<RankSteps> ranks;
  for (const Schedule& schedule : all) {
    // Scratch is reused by every slice.
    if (schedule.scratch_pieces > 0) pipelined = false;
  }
  for (const Schedule& schedule : all) {
    ranks.push_back(Shape(schedule));
  }
  if (pipelined) StageWalk(all, ranks).Run();
  for (const RankSteps& rank : ranks) {
    plan.max_stages = std::max(plan.max_stages, rank.shape.stages);
  }
  if (pipelined && plan.max_stages > kMaxStages) return Bind(all, me, false);
  for (const RankSteps& rank : ranks) {
    plan.ranks.push_back(rank.shape);
    plan.max_units = std::max(plan.max_units, rank.shape.units);
  }
  plan.cuts = all[me].cuts;
  if (all[me].scratch_pieces > 0 && plan.cuts != 1) {
    return absl::InternalError(absl::StrFormat(
        "rank %d: scratch needs blocks of one piece, not %d", me, plan.cuts));
  }
  plan.scratch_pieces = all[me].scratch_pieces;
  Wire wire = CollectSends(all, ranks);
  for (int r = 0; r < n; ++r) {
    for (const Step& step : ranks[r].steps) {
      const auto first = static_cast<uint32_t>(plan.incoming.size());
      if (Receives(step.op->kind)) {
        RETURN_IF_ERROR(Receive(all[r], r, step, wire, plan.ranks, me,
                                r == me ? &plan.incoming : nullptr));
      }
      if (r != me) continue;
      PlannedOp op = MakeOp(step);
      op.first_incoming = first;
      op.num_incoming = static_cast<uint32_t>(plan.incoming.size()) - first;
      plan.ops.push_back(op);
    }
  }
  return plan;
}

}  // namespace axon
