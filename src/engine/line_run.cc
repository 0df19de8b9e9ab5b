// SPDX-License-Identifier: Apache-2.0
#include "engine/line_run.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"

namespace axon {
namespace {

// One block a rank lies in the input: the others are for other ranks.
bool InHasBlocks(Collective collective) {
  return collective == Collective::kReduceScatter ||
         collective == Collective::kAlltoAll ||
         collective == Collective::kScatter;
}

bool FromRoot(Collective collective) {
  return collective == Collective::kBroadcast ||
         collective == Collective::kScatter;
}

bool ToRoot(Collective collective) {
  return collective == Collective::kReduce || collective == Collective::kGather;
}

// memcpy, but of few bytes in two moves that may overlap: a call of memcpy
// takes longer than showing them.
void CopyInput(std::byte* to, const std::byte* from, size_t bytes) {
  uint64_t head, tail;
  if (bytes >= sizeof(head) && bytes <= 2 * sizeof(head)) [[likely]] {
    const size_t tail_at = bytes - sizeof(tail);
    std::memcpy(&head, from, sizeof(head));
    std::memcpy(&tail, from + tail_at, sizeof(tail));
    std::memcpy(to, &head, sizeof(head));
    std::memcpy(to + tail_at, &tail, sizeof(tail));
  } else if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace

size_t LineRun::InBytes(Collective collective, int ranks, size_t block_bytes) {
  return block_bytes *
         (InHasBlocks(collective) ? static_cast<size_t>(ranks) : 1);
}

LinePlan LineRun::Compile(const CollectiveCall& call,
                          const Signature& signature, int ranks, int me) {
  LinePlan plan;
  plan.call = call;
  plan.signature = signature;
  plan.block_bytes = call.in_layout.length * call.element_size();
  plan.in_bytes = InBytes(call.collective, ranks, plan.block_bytes);
  if (InHasBlocks(call.collective)) {
    plan.mine_at = static_cast<size_t>(me) * plan.block_bytes;
  }
  plan.inlined = plan.in_bytes <= kInlineBytes;
  const bool from_root = FromRoot(call.collective);
  const bool to_root = ToRoot(call.collective);
  plan.writes = !from_root || me == call.root;
  plan.reads = !to_root || me == call.root;
  plan.all_enter = !from_root && plan.reads;
  plan.at_once = plan.inlined && plan.all_enter;
  plan.first = from_root ? call.root : 0;
  plan.last = from_root ? call.root + 1 : ranks;
  return plan;
}

LineRun::LineRun(BoardView& view, Outbox& outbox)
    : view_(view),
      outbox_(outbox),
      reduction_{blocks_, view.board().ranks(), &out_, 1, 0} {}

// In a call of some hundred instructions, half of them would go into keeping
// what is known until the next step, and into calling functions.
[[gnu::flatten]] Poll LineRun::Run(const LinePlan& plan, const std::byte* in,
                                   std::byte* out) {
  if (!plan.at_once) [[unlikely]] {
    Start(plan, in, out);
    return LineRun::Step();
  }
  BoardView& view = view_;
  view.NextCall(plan.signature);
  const uint64_t line_before = view.calls() - kCallLines;
  if (view.AwaitFinished(static_cast<uint32_t>(line_before)) != Poll::kReady) {
    lease_ = {0, line_before};
    return GoOn(plan, in, out, State::kEnter, 0);
  }
  CopyInput(view.line().data, in, plan.in_bytes);
  view.PostLine();
  const int me = view.board().me(), last = plan.last;
  const size_t mine_at = plan.mine_at;
  for (int q = 0; q < last; ++q) {
    if (q == me) {
      blocks_[q] = in + mine_at;
      continue;
    }
    const LineBody* const body = view.Entered(q, 0);
    if (body == nullptr) {
      took_step_ = true;
      return GoOn(plan, in, out, State::kRead, q);
    }
    blocks_[q] = body->data + mine_at;
  }
  out_ = out;
  Combine(plan);
  view.AllEntered();
  return view.board().FailedMeanwhile() ? Poll::kFailed : Poll::kReady;
}

[[gnu::noinline]] Poll LineRun::GoOn(const LinePlan& plan, const std::byte* in,
                                     std::byte* out, State state, int next) {
  Keep(plan, in, out, state, next);
  return LineRun::Step();
}

void LineRun::Keep(const LinePlan& plan, const std::byte* in, std::byte* out,
                   State state, int next) {
  plan_ = &plan;
  in_ = in;
  out_ = out;
  factor_ = 1;
  state_ = state;
  next_ = next;
}

void LineRun::Write() {
  LineBody& body = view_.line();
  std::byte* to = body.data;
  if (!plan_->inlined) {
    body.place = {plan_->outbox_offset, lease_.position, 0, 0};
    to = plan_->outbox_memory + lease_.position;
  }
  CopyInput(to, in_, plan_->in_bytes);
  body.factor = factor_;
}

Poll LineRun::Read() {
  const int last = plan_->last, me = view_.board().me();
  for (; next_ < last; ++next_) {
    const int q = next_;
    if (q == me) {
      blocks_[q] = in_ + plan_->mine_at;
      continue;
    }
    const Poll poll = view_.AwaitLine(q, 0);
    if (poll != Poll::kReady) return poll;
    took_step_ = true;
    if (plan_->inlined) {
      blocks_[q] = view_.peer(q).body->data + plan_->mine_at;
    } else if (!TakeStaged(q)) {
      return Poll::kFailed;
    }
  }
  return Poll::kReady;
}

void LineRun::Reduce(const CollectiveCall& call) {
  if (call.has_factor) return ReduceScaled(call);
  reduction_.count = call.in_layout.length;
  if (call.average) reduction_.divisor = reduction_.num_sources;
  call.reduce(reduction_);
}

void LineRun::Combine(const LinePlan& plan) {
  if (plan.block_bytes == 0) return;
  if (plan.call.reduce != nullptr) {
    Reduce(plan.call);
  } else {
    Copy(plan);
  }
}

void LineRun::Finish() {
  // Who has read everyone has seen everyone enter.
  if (plan_->all_enter) view_.AllEntered();
  // The others see that I need nothing of this call any more when I enter the
  // next; but my next may wait for them to have left this one, if its place in
  // the outbox is this one's, and if I do not read everyone I may not come so
  // far.
  if (!plan_->all_enter || !plan_->inlined) view_.Finish();
}

void LineRun::Start(const LinePlan& plan, const std::byte* in, std::byte* out,
                    double factor) {
  Keep(plan, in, out, State::kEnter, plan.reads ? plan.first : plan.last);
  factor_ = factor;
  view_.NextCall(plan.signature);
  // My line of kCallLines calls ago must have been read by all; so must what I
  // overwrite in the outbox.
  const uint64_t line_before =
      std::max<uint64_t>(view_.calls(), kCallLines) - kCallLines;
  lease_ = {0, line_before};
  if (plan.writes && !plan.inlined) {
    lease_ = outbox_.Take(RoundUp(plan.in_bytes, kCacheLine), view_.calls(),
                          line_before);
  }
}

Poll LineRun::Step() {
  if (state_ == State::kEnter) {
    const Poll poll = view_.AwaitFinished(static_cast<uint32_t>(lease_.after));
    if (poll != Poll::kReady) return poll;
    if (plan_->writes) Write();
    view_.PostLine();
    state_ = State::kRead;
    took_step_ = true;
  }
  if (state_ == State::kRead) {
    const Poll poll = Read();
    if (poll != Poll::kReady) return poll;
    if (plan_->reads) Combine(*plan_);
    Finish();
    state_ = State::kDone;
  }
  return view_.board().FailedMeanwhile() ? Poll::kFailed : Poll::kReady;
}

[[gnu::noinline]] bool LineRun::TakeStaged(int q) {
  const LineBody::Place place = view_.peer(q).body->place.Read();
  const uint64_t position = std::min<uint64_t>(place.position, outbox_.size());
  const std::byte* const data =
      view_.board().InArena(q, place.outbox + position, plan_->in_bytes);
  if (data == nullptr) {
    view_.board().Fail(absl::InternalError(
        absl::StrFormat("the line of %s names memory where its data cannot lie",
                        view_.board().Describe(q))));
    return false;
  }
  blocks_[q] = data + plan_->mine_at;
  return true;
}

[[gnu::noinline]] void LineRun::ReduceScaled(const CollectiveCall& call) {
  const int me = view_.board().me();
  double factors[kMaxLocalRanks];
  for (int q = 0; q < reduction_.num_sources; ++q) {
    factors[q] = q == me ? factor_ : view_.peer(q).body->factor;
  }
  ReduceArgs args = reduction_;
  args.count = call.in_layout.length;
  args.factors = factors;
  call.reduce(args);
}

[[gnu::noinline]] void LineRun::Copy(const LinePlan& plan) {
  auto* to = static_cast<std::byte*>(out_);
  for (int q = plan.first; q < plan.last; ++q) {
    if (to != blocks_[q]) std::memcpy(to, blocks_[q], plan.block_bytes);
    to += plan.block_bytes;
  }
}

}  // namespace axon
