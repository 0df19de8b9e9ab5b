// SPDX-License-Identifier: Apache-2.0
#include "engine/board_run.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace axon {

size_t MaxPieceBytes(const Plan& plan, size_t outbox_size, size_t preferred) {
  const size_t held =
      std::max<size_t>(1, plan.max_units) * (plan.max_stages + 2);
  const size_t most = outbox_size / held / kCacheLine * kCacheLine;
  return std::max(kCacheLine, std::min(preferred, most));
}

bool BoardRun::Stages(const Setup& setup, const Board& board) {
  const bool in = setup.mapped_reads && board.RefOf(setup.call.in, 0) != 0;
  const bool out = setup.mapped_reads && board.RefOf(setup.call.out, 0) != 0;
  return std::any_of(
      setup.plan->ops.begin(), setup.plan->ops.end(), [&](const PlannedOp& op) {
        const Buffer sent = op.kind == OpKind::kSend ||
                                    op.kind == OpKind::kPublish
                                ? op.source.buffer
                                : op.destination.buffer;
        return op.unit >= 0 && !((sent == Buffer::kIn && in) ||
                                 (sent == Buffer::kOut && out));
      });
}

void BoardRun::Start(const Setup& setup, const Signature& signature) {
  setup_ = setup;
  state_ = State::kEnter;
  const Board& board = view_.board();
  in_ref_ = setup.mapped_reads ? board.RefOf(setup.call.in, 0) : 0;
  out_ref_ = setup.mapped_reads ? board.RefOf(setup.call.out, 0) : 0;
  unit_bytes_ = RoundUp(setup.cutting.piece_bytes(), kCacheLine);
  iteration_ = op_ = 0;
  drained_ = 0;
  outbox_slice_ = -1;
  view_.NextCall(signature);
  const RankShape& shape = setup.plan->ranks[setup.plan->me];
  const size_t total =
      setup.outbox_memory == nullptr
          ? 0
          : unit_bytes_ * shape.units * static_cast<size_t>(setup.cutting.slices);
  // My line of kCallLines calls ago must have been read by all; so must what my
  // first slices overwrite.
  after_ = view_.call() - kCallLines;
  lease_ = {};
  if (total > 0) {
    lease_ = outbox_.Take(total, view_.call(), after_);
    after_ = lease_.after;
  }
  constexpr size_t kWalkers = kMaxSources + 2;
  if (sources_.capacity() < kWalkers) {
    sources_.reserve(kWalkers);
    destinations_.reserve(2);
  }
}

Poll BoardRun::Step() {
  Poll poll = Poll::kReady;
  budget_ = kOpsPerStep;
  if (state_ == State::kEnter) {
    poll = Enter();
    if (poll != Poll::kReady) return poll;
    state_ = State::kRun;
  }
  if (state_ == State::kRun) {
    poll = RunOps(iterations(), 0);
    if (poll != Poll::kReady) return poll;
    view_.Finish();
    state_ = State::kDrain;
  }
  if (state_ == State::kDrain) {
    poll = Drain();
    if (poll != Poll::kReady) return poll;
    state_ = State::kDone;
  }
  // What was read may have been given up by a peer that failed meanwhile.
  return view_.board().failed() ? Poll::kFailed : Poll::kReady;
}

Poll BoardRun::Enter() {
  const Poll poll = view_.AwaitFinished(after_);
  if (poll != Poll::kReady) return poll;
  // What needs nobody else goes first, so that one store shows it together with
  // my entry.
  RunOps(0, setup_.plan->ranks[setup_.plan->me].prologue);
  LineBody& body = view_.line();
  body.place.outbox = setup_.outbox_offset;
  body.place.position = lease_.position;
  body.place.in = in_ref_;
  body.place.out = out_ref_;
  body.factor = setup_.call.factor;
  view_.PostLine();
  return Poll::kReady;
}

Poll BoardRun::RunOps(uint32_t until_iteration, uint32_t until_op) {
  const Plan& plan = *setup_.plan;
  const auto ops = static_cast<uint32_t>(plan.ops.size());
  while (iteration_ < until_iteration ||
         (iteration_ == until_iteration && op_ < until_op)) {
    for (; op_ < ops; ++op_) {
      if (iteration_ == until_iteration && op_ >= until_op) return Poll::kReady;
      const PlannedOp& op = plan.ops[op_];
      const int slice = static_cast<int>(iteration_) - static_cast<int>(op.stage);
      if (slice < 0 || slice >= setup_.cutting.slices) continue;
      if (state_ == State::kRun && budget_-- == 0) return Poll::kPending;
      const Poll poll = RunOp(op, slice);
      if (poll != Poll::kReady) return poll;
      took_step_ = true;
      // The line will show what was done before it was posted.
      if (op.counts && state_ == State::kRun) {
        view_.Publish(iteration_ * ops + op_ + 1);
      }
    }
    op_ = 0;
    ++iteration_;
  }
  return Poll::kReady;
}

Poll BoardRun::RunOp(const PlannedOp& op, int slice) {
  Poll poll = AwaitIncoming(op, slice);
  if (poll != Poll::kReady) return poll;
  if (op.unit >= 0) {
    poll = AwaitOutbox(slice);
    if (poll != Poll::kReady) return poll;
  }
  switch (op.kind) {
    case OpKind::kSend:
    case OpKind::kPublish:
    case OpKind::kRecv:
      Move(op, slice);
      break;
    case OpKind::kCopy:
      // A copy that completes a reduction of one rank does its arithmetic.
      if (op.completes && setup_.call.reduce != nullptr) {
        Combine(op, slice);
      } else {
        Move(op, slice);
      }
      break;
    case OpKind::kRecvReduce:
    case OpKind::kReduceAll:
    case OpKind::kReduce:
      Combine(op, slice);
      break;
  }
  return Poll::kReady;
}

Poll BoardRun::AwaitIncoming(const PlannedOp& op, int slice) {
  for (uint32_t i = 0; i < op.num_incoming; ++i) {
    const Incoming& in = setup_.plan->incoming[op.first_incoming + i];
    const RankShape& shape = setup_.plan->ranks[in.peer];
    Poll poll = view_.AwaitLine(in.peer, shape.prologue);
    if (poll != Poll::kReady) return poll;
    poll = view_.AwaitDone(in.peer, DoneAt(in.peer, in.ready, slice));
    if (poll != Poll::kReady) return poll;
  }
  return Poll::kReady;
}

Poll BoardRun::AwaitOutbox(int slice) {
  if (slice <= outbox_slice_ || setup_.outbox_memory == nullptr) {
    return Poll::kReady;
  }
  const RankShape& mine = setup_.plan->ranks[setup_.plan->me];
  const size_t slice_bytes = mine.units * unit_bytes_;
  if (slice_bytes == 0) return Poll::kReady;
  const int held = static_cast<int>(outbox_.size() / slice_bytes);
  // A call that walks round overwrites what it wrote `held` slices ago.
  if (slice >= held) {
    for (int q = 0; q < view_.board().ranks(); ++q) {
      const RankShape& shape = setup_.plan->ranks[q];
      if (!shape.reads_me) continue;
      const Poll poll =
          view_.AwaitDone(q, DoneAt(q, shape.last_read, slice - held));
      if (poll != Poll::kReady) return poll;
    }
  }
  outbox_slice_ = slice;
  return Poll::kReady;
}

Poll BoardRun::Drain() {
  if (in_ref_ == 0 && out_ref_ == 0) return Poll::kReady;
  // Peers read my buffers where they lie: they are mine again when all have.
  for (; drained_ < view_.board().ranks(); ++drained_) {
    const RankShape& shape = setup_.plan->ranks[drained_];
    if (!shape.reads_me) continue;
    const Poll poll = view_.AwaitDone(
        drained_,
        DoneAt(drained_, shape.last_read, setup_.cutting.slices - 1));
    if (poll != Poll::kReady) return poll;
  }
  return Poll::kReady;
}

uint64_t BoardRun::SlicePosition(int rank, uint64_t position, int slice) const {
  const size_t bytes = setup_.plan->ranks[rank].units * unit_bytes_;
  const auto s = static_cast<uint64_t>(slice);
  const size_t total = bytes * static_cast<size_t>(setup_.cutting.slices);
  if (total <= outbox_.size()) return position + s * bytes;
  return s % (outbox_.size() / bytes) * bytes;
}

Walker BoardRun::Mine(Span span, int slice) const {
  if (span.buffer == Buffer::kScratch) {
    // A piece of scratch holds what a block has in this slice (Bind sees to it
    // that blocks are not cut further).
    const size_t count =
        SegmentOf({setup_.call.in_layout.length}, setup_.cutting, 0, slice, 0, 1)
            .count;
    return Walker::Packed(
        setup_.scratch + span.first * count * setup_.cutting.element_size,
        span.count * count);
  }
  const bool in = span.buffer == Buffer::kIn;
  return Walker(in ? setup_.call.in : setup_.call.out,
                in ? setup_.call.in_layout : setup_.call.out_layout,
                setup_.cutting, span, slice);
}

Walker BoardRun::Box(const PlannedOp& op, int slice) const {
  return Walker::Packed(
      setup_.outbox_memory +
      SlicePosition(setup_.plan->me, lease_.position, slice) +
      static_cast<size_t>(op.unit) * unit_bytes_);
}

Walker BoardRun::Message(const Incoming& in, int slice) const {
  const auto& place = view_.peer(in.peer).body->place;
  const Board& board = view_.board();
  const Ref ref = in.source.buffer == Buffer::kIn    ? place.in
                  : in.source.buffer == Buffer::kOut ? place.out
                                                     : 0;
  if (ref != 0) {
    return Walker(board.Address(in.peer, ref, 0),
                  in.source.buffer == Buffer::kIn ? setup_.call.in_layout
                                                  : setup_.call.out_layout,
                  setup_.cutting, in.source, slice);
  }
  return Walker::Packed(board.InArena(
      in.peer,
      place.outbox + SlicePosition(in.peer, place.position, slice) +
          in.unit * unit_bytes_,
      in.source.count * unit_bytes_));
}

int BoardRun::CollectDestinations(const PlannedOp& op, int slice) {
  destinations_.clear();
  const bool sends = op.kind == OpKind::kSend || op.kind == OpKind::kPublish;
  if (!sends) destinations_.push_back(Mine(op.destination, slice));
  const Buffer sent = sends ? op.source.buffer : op.destination.buffer;
  if (op.unit >= 0 && !ReadInPlace(sent)) {
    destinations_.push_back(Box(op, slice));
  }
  return static_cast<int>(destinations_.size());
}

void BoardRun::Move(const PlannedOp& op, int slice) {
  const int m = CollectDestinations(op, slice);
  if (m == 0) return;
  Walker source =
      op.num_incoming > 0
          ? Message(setup_.plan->incoming[op.first_incoming], slice)
          : Mine(op.source, slice);
  // The bounded walker of the two says how much there is.
  const bool sends = op.kind == OpKind::kSend || op.kind == OpKind::kPublish;
  Walker bound = Mine(sends ? op.source : op.destination, slice);
  const size_t size = setup_.cutting.element_size;
  while (!bound.done()) {
    size_t n = std::min(bound.left(), source.left());
    for (int i = 0; i < m; ++i) n = std::min(n, destinations_[i].left());
    if (n == 0) break;
    for (int i = 0; i < m; ++i) {
      auto* to = const_cast<std::byte*>(destinations_[i].at());
      if (to != source.at()) CopyBytes(to, source.at(), n * size);
      destinations_[i].Skip(n, size);
    }
    source.Skip(n, size);
    bound.Skip(n, size);
  }
}

int BoardRun::CollectSources(const PlannedOp& op, int slice, double* factors) {
  sources_.clear();
  const bool all = op.kind == OpKind::kReduceAll;
  const auto add = [&](const Walker& walker, double factor) {
    factors[sources_.size()] = factor;
    sources_.push_back(walker);
  };
  const int me = setup_.plan->me;
  // In rank order where all come together; else mine first.
  bool mine_in = false;
  if (op.kind == OpKind::kReduce) {
    add(Mine(op.destination, slice), 1);
  }
  for (uint32_t i = 0; i < op.num_incoming; ++i) {
    const Incoming& in = setup_.plan->incoming[op.first_incoming + i];
    if (!mine_in && (!all || in.peer > me)) {
      add(Mine(op.source, slice), setup_.call.factor);
      mine_in = true;
    }
    add(Message(in, slice), view_.peer(in.peer).body->factor);
  }
  if (!mine_in) add(Mine(op.source, slice), setup_.call.factor);
  return static_cast<int>(sources_.size());
}

void BoardRun::Combine(const PlannedOp& op, int slice) {
  double factors[kMaxSources + 2];
  const int n = CollectSources(op, slice, factors);
  const int m = CollectDestinations(op, slice);
  const size_t size = setup_.cutting.element_size;
  Walker bound = Mine(op.destination, slice);
  const void* from[kMaxSources + 2];
  void* to[2];
  ReduceArgs args{from, n, to, m, 0};
  if (setup_.call.has_factor) args.factors = factors;
  if (setup_.call.average && op.completes) args.divisor = view_.board().ranks();
  while (!bound.done()) {
    size_t count = bound.left();
    for (int i = 0; i < n; ++i) {
      count = std::min(count, sources_[i].left());
      from[i] = sources_[i].at();
    }
    for (int i = 0; i < m; ++i) {
      count = std::min(count, destinations_[i].left());
      to[i] = const_cast<std::byte*>(destinations_[i].at());
    }
    if (count == 0) break;
    args.count = count;
    setup_.call.reduce(args);
    for (int i = 0; i < n; ++i) sources_[i].Skip(count, size);
    for (int i = 0; i < m; ++i) destinations_[i].Skip(count, size);
    bound.Skip(count, size);
  }
}

}  // namespace axon
