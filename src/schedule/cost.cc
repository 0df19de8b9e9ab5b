// SPDX-License-Identifier: Apache-2.0
#include "schedule/cost.h"

#include <algorithm>
#include <limits>

#include "schedule/walk.h"

namespace axon {
namespace {

struct Message {
  double visible = 0;  // when its first byte has arrived
  double wire = 0;     // from the first to the last
  double reading = 0;  // how long the receiver is busy
};

struct RankTime {
  size_t op = 0;
  double now = 0;
  double out_free = 0;  // when the sending side of its link is free
  double in_free = 0;   // and the receiving side
};

class Prediction {
 public:
  Prediction(const std::vector<Schedule>& schedules, double block_bytes,
             const CostModel& model)
      : schedules_(schedules),
        block_bytes_(block_bytes),
        model_(model),
        ranks_(schedules.size()),
        wire_(static_cast<int>(schedules.size())) {}

  double Seconds() {
    Walk(static_cast<int>(ranks_.size()), [this](int r) { return Step(r); });
    double last = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].op < schedules_[r].ops.size()) {
        return std::numeric_limits<double>::infinity();
      }
      last = std::max({last, ranks_[r].now, ranks_[r].out_free});
    }
    return last;
  }

 private:
  bool Step(int r) {
    RankTime& rank = ranks_[r];
    const Schedule& schedule = schedules_[r];
    if (rank.op == schedule.ops.size()) return false;
    const Op& op = schedule.ops[rank.op];
    for (int peer : schedule.Peers(op)) {
      if (!Exists(r, peer)) return false;
    }
    const double piece = block_bytes_ / schedule.cuts;
    switch (op.kind) {
      case OpKind::kSend:
      case OpKind::kPublish:
        Send(r, schedule.Peers(op), op.source.count * piece);
        break;
      case OpKind::kRecv:
      case OpKind::kRecvReduce:
      case OpKind::kReduceAll:
        if (!Receive(r, schedule.Peers(op))) return false;
        if (op.kind != OpKind::kRecv) {
          rank.now += model_.reduce_seconds_per_byte * piece *
                      op.destination.count * schedule.Peers(op).size();
        }
        break;
      case OpKind::kCopy:
        rank.now += model_.copy_seconds_per_byte * piece * op.source.count;
        break;
      case OpKind::kReduce:
        rank.now += model_.reduce_seconds_per_byte * piece * op.source.count;
        break;
    }
    rank.now += model_.seconds_per_op;
    ++rank.op;
    return true;
  }

  // One write, whoever reads it; the slowest class of the readers counts.
  void Send(int r, absl::Span<const int16_t> peers, double bytes) {
    RankTime& rank = ranks_[r];
    const double start = std::max(rank.now, rank.out_free);
    double wire = 0;
    double busy = 0;
    for (int peer : peers) {
      const LinkCost& link = Link(r, peer);
      wire = std::max(wire, bytes * link.seconds_per_byte);
      busy = std::max(busy, bytes * link.sender_seconds_per_byte);
    }
    rank.now += busy;
    rank.out_free = start + std::max(wire, busy);
    for (int peer : peers) {
      const LinkCost& link = Link(r, peer);
      wire_.Push(r, peer,
                 {start + busy + link.latency, bytes * link.seconds_per_byte,
                  bytes * link.receiver_seconds_per_byte});
    }
  }

  bool Receive(int r, absl::Span<const int16_t> peers) {
    for (int peer : peers) {
      if (wire_.InFlight(peer, r) == 0) return false;
    }
    std::vector<Message> messages;
    for (int peer : peers) {
      messages.push_back(wire_.Front(peer, r));
      wire_.Pop(peer, r);
    }
    // The link takes them as they come, whatever the order of their use.
    std::sort(messages.begin(), messages.end(),
              [](const Message& a, const Message& b) {
                return a.visible < b.visible;
              });
    RankTime& rank = ranks_[r];
    for (const Message& message : messages) {
      rank.in_free = std::max(rank.in_free, message.visible) + message.wire;
      rank.now = std::max(rank.now, rank.in_free) + message.reading;
    }
    return true;
  }

  bool Exists(int from, int to) const {
    return to >= 0 && to < static_cast<int>(ranks_.size()) &&
           Class(from, to) < model_.links.size();
  }
  size_t Class(int from, int to) const {
    const size_t at = from * ranks_.size() + to;
    return at < model_.link_class.size() ? model_.link_class[at] : 0;
  }
  const LinkCost& Link(int from, int to) const {
    return model_.links[Class(from, to)];
  }

  const std::vector<Schedule>& schedules_;
  const double block_bytes_;
  const CostModel& model_;
  std::vector<RankTime> ranks_;
  Wire<Message> wire_;
};

}  // namespace

double PredictSeconds(const std::vector<Schedule>& schedules,
                      double block_bytes, const CostModel& model) {
  return Prediction(schedules, block_bytes, model).Seconds();
}

}  // namespace axon
