// SPDX-License-Identifier: Apache-2.0
#include "engine/channel_run.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"

namespace axon {
namespace {

bool Reduces(OpKind kind) {
  return kind == OpKind::kReduce || kind == OpKind::kRecvReduce ||
         kind == OpKind::kReduceAll;
}

// Before the elements of every message: the sender's factor, if the call has
// one.
size_t HeadBytes(const CollectiveCall& call) {
  return call.has_factor ? sizeof(double) : 0;
}

}  // namespace

size_t MaxPieceBytes(absl::Span<const Schedule> all, const CollectiveCall& call,
                     size_t max_message) {
  size_t pieces = 1;
  for (const Schedule& schedule : all) {
    for (const Op& op : schedule.ops) {
      if (Sends(op.kind)) pieces = std::max<size_t>(pieces, op.source.count);
    }
  }
  const size_t head = HeadBytes(call);
  if (max_message < head) return 0;
  return (max_message - head) / pieces / kCacheLine * kCacheLine;
}

void ChannelRun::Start(const Setup& setup) {
  setup_ = setup;
  status_ = absl::OkStatus();
  slice_ = 0;
  op_ = 0;
  sent_ = reserved_ = 0;
  incoming_.clear();
  incoming_.reserve(channels_.size());
  pass_.Reserve(channels_.size() + 1, channels_.size() + 1);
}

Poll ChannelRun::Step() {
  if (!status_.ok()) return Poll::kFailed;
  const std::vector<Op>& ops = setup_.schedule->ops;
  int budget = kOpsPerStep;
  for (; slice_ < setup_.cutting.slices; ++slice_, op_ = 0) {
    while (op_ < ops.size()) {
      if (budget-- == 0) return Poll::kPending;
      const Poll poll = RunOp(ops[op_]);
      if (poll != Poll::kReady) return poll;
    }
  }
  return Poll::kReady;
}

Poll ChannelRun::RunOp(const Op& op) {
  if (Sends(op.kind)) return RunSend(op);
  if (Receives(op.kind)) {
    const Poll poll = AwaitIncoming(op);
    if (poll != Poll::kReady) return poll;
  }
  pass_.Clear();
  pass_.AddDestination(Mine(op.destination));
  const Op* send = SendOfResult(op);
  if (send != nullptr && ReserveMessages(*send) == Poll::kFailed) {
    return Poll::kFailed;
  }
  Write(op);
  if (Receives(op.kind)) {
    for (int16_t peer : setup_.schedule->Peers(op)) channels_[peer]->Pop();
    incoming_.clear();
  }
  ++op_;
  if (send != nullptr) {
    CommitMessages(*send);
    // Else the send goes on as an operation of its own.
    if (sent_ == setup_.schedule->Peers(*send).size()) {
      sent_ = 0;
      ++op_;
    }
  }
  took_step_ = true;
  return Poll::kReady;
}

Poll ChannelRun::RunSend(const Op& op) {
  while (sent_ < setup_.schedule->Peers(op).size()) {
    pass_.Clear();
    if (ReserveMessages(op) == Poll::kFailed) return Poll::kFailed;
    if (reserved_ == sent_) return Poll::kPending;
    pass_.AddSource(Mine(op.source));
    pass_.Copy(Mine(op.source), setup_.cutting.element_size);
    CommitMessages(op);
    took_step_ = true;
  }
  sent_ = 0;
  ++op_;
  return Poll::kReady;
}

Poll ChannelRun::AwaitIncoming(const Op& op) {
  const absl::Span<const int16_t> peers = setup_.schedule->Peers(op);
  const size_t expected = HeadBytes(setup_.call) + BytesOf(op.destination);
  while (incoming_.size() < peers.size()) {
    const int peer = peers[incoming_.size()];
    Bytes message;
    const Poll poll = channels_[peer]->TryPeek(&message);
    if (poll == Poll::kFailed) return Fail(peer, "receive from");
    if (poll == Poll::kPending) return poll;
    if (message.size() != expected) {
      status_ = absl::InternalError(absl::StrFormat(
          "rank %d sent a message of %u bytes where rank %d awaits %u (%s)",
          peer, message.size(), me_, expected, Describe()));
      return Poll::kFailed;
    }
    incoming_.push_back(message);
    took_step_ = true;
  }
  return Poll::kReady;
}

const Op* ChannelRun::SendOfResult(const Op& op) const {
  const std::vector<Op>& ops = setup_.schedule->ops;
  if (op_ + 1 == ops.size()) return nullptr;
  const Op& next = ops[op_ + 1];
  const bool result = Sends(next.kind) && next.source == op.destination &&
                      op.destination.count > 0;
  return result ? &next : nullptr;
}

Poll ChannelRun::ReserveMessages(const Op& send) {
  const absl::Span<const int16_t> peers = setup_.schedule->Peers(send);
  const size_t head = HeadBytes(setup_.call);
  const size_t size = head + BytesOf(send.source);
  for (reserved_ = sent_; reserved_ < peers.size(); ++reserved_) {
    std::byte* message = nullptr;
    const int peer = peers[reserved_];
    const Poll poll = channels_[peer]->Reserve(size, &message);
    if (poll == Poll::kFailed) return Fail(peer, "send to");
    if (poll == Poll::kPending) break;
    if (head > 0) std::memcpy(message, &setup_.call.factor, head);
    pass_.AddDestination(Walker::Packed(message + head));
  }
  return Poll::kReady;
}

void ChannelRun::CommitMessages(const Op& send) {
  const absl::Span<const int16_t> peers = setup_.schedule->Peers(send);
  for (; sent_ < reserved_; ++sent_) channels_[peers[sent_]]->Commit();
}

void ChannelRun::Write(const Op& op) {
  const size_t head = HeadBytes(setup_.call);
  const absl::Span<const int16_t> peers = setup_.schedule->Peers(op);
  const auto add_message = [&](size_t i) {
    double factor = 1;
    if (head > 0) std::memcpy(&factor, incoming_[i].data(), head);
    pass_.AddSource(Walker::Packed(incoming_[i].data() + head), factor);
  };
  const bool finishes_one_rank =
      op.kind == OpKind::kCopy && op.completes && setup_.call.reduce != nullptr;
  if (!Reduces(op.kind) && !finishes_one_rank) {
    if (op.kind == OpKind::kRecv) {
      add_message(0);
    } else {
      pass_.AddSource(Mine(op.source));
    }
    pass_.Copy(Mine(op.destination), setup_.cutting.element_size);
    return;
  }
  if (op.kind == OpKind::kReduce) pass_.AddSource(Mine(op.destination));
  pass_.AddReduction(
      op.kind == OpKind::kReduceAll, me_, Mine(op.source), setup_.call.factor,
      incoming_.size(), [&](size_t i) { return peers[i]; }, add_message);
  const bool divides = setup_.call.average && op.completes;
  pass_.Combine(Mine(op.destination), setup_.call,
                divides ? static_cast<int>(channels_.size()) : 0);
}

Poll ChannelRun::Fail(int peer, const char* doing) {
  const absl::Status why = channels_[peer]->status();
  status_ = absl::Status(
      why.ok() ? absl::StatusCode::kUnavailable : why.code(),
      absl::StrFormat("rank %d cannot %s rank %d (%s): %s", me_, doing, peer,
                      Describe(), std::string(why.message())));
  return Poll::kFailed;
}

size_t ChannelRun::BytesOf(Span span) const {
  size_t elements = 0;
  for (Walker walker = Mine(span); !walker.done();) {
    elements += walker.left();
    walker.Skip(walker.left(), setup_.cutting.element_size);
  }
  return elements * setup_.cutting.element_size;
}

std::string ChannelRun::Describe() const {
  return absl::StrFormat("slice %d of %d, operation %u of %u", slice_ + 1,
                         setup_.cutting.slices, op_ + 1,
                         setup_.schedule->ops.size());
}

}  // namespace axon
