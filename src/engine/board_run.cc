// SPDX-License-Identifier: Apache-2.0
#include "engine/board_run.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace axon {

size_t MaxPieceBytes(const Plan& plan, size_t outbox_size, size_t preferred) {
  const size_t most =
      outbox_size / OutboxPieces(plan) / kCacheLine * kCacheLine;
  return std::max(kCacheLine, std::min(preferred, most));
}

// What peers read where it lies. Whose first byte lies in the arena lies there
// altogether; private memory may begin where the arena ends.
Ref BoardRun::MappedRef(const Setup& setup, const Board& board,
                        const std::byte* buffer) {
  return setup.mapped_reads ? board.RefOf(buffer, 1) : 0;
}

bool BoardRun::Stages(const Setup& setup, const Board& board) {
  return axon::Stages(*setup.plan, MappedRef(setup, board, setup.call.in) != 0,
                      MappedRef(setup, board, setup.call.out) != 0);
}

void BoardRun::Start(const Setup& setup) {
  setup_ = setup;
  state_ = State::kEnter;
  const Board& board = view_.board();
  in_ref_ = MappedRef(setup, board, setup.call.in);
  out_ref_ = MappedRef(setup, board, setup.call.out);
  unit_bytes_ = RoundUp(setup.cutting.piece_bytes(), kCacheLine);
  iteration_ = op_ = 0;
  drained_ = 0;
  outbox_slice_ = -1;
  view_.NextCall(setup.signature);
  const size_t total =
      setup.outbox_memory == nullptr ? 0 : SlicesOf(setup.plan->me).total();
  // My line of kCallLines calls ago must have been read by all; so must what my
  // first slices overwrite.
  const uint64_t line_before =
      std::max<uint64_t>(view_.calls(), kCallLines) - kCallLines;
  lease_ = {0, line_before};
  if (total > 0) lease_ = outbox_.Take(total, view_.calls(), line_before);
  pass_.Reserve(kMaxLocalRanks + 2, 2);
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
  return view_.board().FailedMeanwhile() ? Poll::kFailed : Poll::kReady;
}

Poll BoardRun::Enter() {
  const Poll poll = view_.AwaitFinished(static_cast<uint32_t>(lease_.after));
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
      const int slice =
          static_cast<int>(iteration_) - static_cast<int>(op.stage);
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
    if (!Believe(in)) {
      view_.board().Fail(absl::InternalError(absl::StrFormat(
          "the line of %s names memory where its data cannot lie",
          view_.board().Describe(in.peer))));
      return Poll::kFailed;
    }
    poll = view_.AwaitDone(in.peer, DoneBy(in.peer, in.ready, slice));
    if (poll != Poll::kReady) return poll;
  }
  return Poll::kReady;
}

bool BoardRun::Believe(const Incoming& in) {
  Told& told = told_[in.peer];
  if (told.call != view_.calls()) {
    told = {view_.calls(), view_.peer(in.peer).body->place.Read()};
  }
  const LineBody::Place& place = told.place;
  const Board& board = view_.board();
  if (const Ref ref = RefOf(place, in.source.buffer); ref != 0) {
    // Mapped buffers have blocks of equal length.
    if (setup_.call.in_layout.lengths != nullptr ||
        setup_.call.out_layout.lengths != nullptr) {
      return false;
    }
    const size_t blocks =
        CeilDiv(static_cast<size_t>(in.source.first) + in.source.count,
                static_cast<size_t>(setup_.cutting.cuts));
    const size_t length = in.source.buffer == Buffer::kIn
                              ? setup_.call.in_layout.length
                              : setup_.call.out_layout.length;
    return board.Address(in.peer, ref,
                         blocks * length * setup_.cutting.element_size) !=
           nullptr;
  }
  if (in.source.count == 0) return true;
  const size_t total = SlicesOf(in.peer).total();
  return board.InArena(in.peer, place.outbox, outbox_.size()) != nullptr &&
         (total > outbox_.size() || place.position <= outbox_.size() - total);
}

Poll BoardRun::AwaitOutbox(int slice) {
  if (slice <= outbox_slice_ || setup_.outbox_memory == nullptr) {
    return Poll::kReady;
  }
  const SlicesIn slices = SlicesOf(setup_.plan->me);
  if (slices.slice_bytes == 0) return Poll::kReady;
  const int held = slices.held();
  // A call that walks round overwrites what it wrote `held` slices ago.
  if (slice >= held) {
    for (int q = 0; q < view_.board().ranks(); ++q) {
      const RankShape& shape = setup_.plan->ranks[q];
      if (!shape.reads_me) continue;
      const Poll poll =
          view_.AwaitDone(q, DoneBy(q, shape.last_read, slice - held));
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
        drained_, DoneBy(drained_, shape.last_read, setup_.cutting.slices - 1));
    if (poll != Poll::kReady) return poll;
  }
  return Poll::kReady;
}

Walker BoardRun::Box(const PlannedOp& op, int slice) const {
  return Walker::Packed(
      setup_.outbox_memory +
      SlicesOf(setup_.plan->me).PositionOf(slice, lease_.position) +
      static_cast<size_t>(op.unit) * unit_bytes_);
}

Walker BoardRun::Message(const Incoming& in, int slice) const {
  const LineBody::Place& place = told_[in.peer].place;
  const Board& board = view_.board();
  if (const Ref ref = RefOf(place, in.source.buffer); ref != 0) {
    return Walker(board.Address(in.peer, ref, 0),
                  in.source.buffer == Buffer::kIn ? setup_.call.in_layout
                                                  : setup_.call.out_layout,
                  setup_.cutting, in.source, slice);
  }
  return Walker::Packed(board.InArena(
      in.peer,
      place.outbox + SlicesOf(in.peer).PositionOf(slice, place.position) +
          in.unit * unit_bytes_,
      in.source.count * unit_bytes_));
}

void BoardRun::AddDestinations(const PlannedOp& op, int slice) {
  if (!Sends(op.kind)) pass_.AddDestination(Mine(op.destination, slice));
  if (op.unit >= 0 && !ReadInPlace(SentSpan(op).buffer)) {
    pass_.AddDestination(Box(op, slice));
  }
}

void BoardRun::Move(const PlannedOp& op, int slice) {
  pass_.Clear();
  AddDestinations(op, slice);
  if (!pass_.has_destination()) return;
  pass_.AddSource(op.num_incoming > 0
                      ? Message(setup_.plan->incoming[op.first_incoming], slice)
                      : Mine(op.source, slice));
  // The bounded walker of the two says how much there is.
  pass_.Copy(Mine(SentSpan(op), slice), setup_.cutting.element_size);
}

void BoardRun::AddSources(const PlannedOp& op, int slice) {
  const Incoming* incoming = setup_.plan->incoming.data() + op.first_incoming;
  if (op.kind == OpKind::kReduce) pass_.AddSource(Mine(op.destination, slice));
  pass_.AddReduction(
      op.kind == OpKind::kReduceAll, setup_.plan->me, Mine(op.source, slice),
      setup_.call.factor, op.num_incoming,
      [&](size_t i) { return incoming[i].peer; },
      [&](size_t i) {
        pass_.AddSource(Message(incoming[i], slice),
                        view_.peer(incoming[i].peer).body->factor);
      });
}

void BoardRun::Combine(const PlannedOp& op, int slice) {
  pass_.Clear();
  AddSources(op, slice);
  AddDestinations(op, slice);
  const bool divides = setup_.call.average && op.completes;
  pass_.Combine(Mine(op.destination, slice), setup_.call,
                divides ? view_.board().ranks() : 0);
}

}  // namespace axon
