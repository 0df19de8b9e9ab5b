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
  plan.digest = Digest(signature);
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
  plan.first = from_root ? call.root : 0;
  plan.last = from_root ? call.root + 1 : ranks;
  return plan;
}

void LineRun::Start(const LinePlan& plan, const std::byte* in, std::byte* out,
                    double factor) {
  plan_ = &plan;
  in_ = in;
  out_ = out;
  factor_ = factor;
  state_ = State::kEnter;
  next_ = plan.reads ? plan.first : plan.last;
  view_.NextCall(plan.signature, plan.digest);
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
    Write();
    view_.PostLine();
    state_ = State::kRead;
    took_step_ = true;
  }
  if (state_ == State::kRead) {
    for (; next_ < plan_->last; ++next_) {
      if (next_ == view_.board().me()) {
        blocks_[next_] = in_ + plan_->mine_at;
        continue;
      }
      const Poll poll = view_.AwaitLine(next_, 0);
      if (poll != Poll::kReady) return poll;
      took_step_ = true;
      if (!Take(next_)) return Poll::kFailed;
    }
    if (plan_->block_bytes > 0 && plan_->reads) {
      if (plan_->call.reduce != nullptr) {
        Reduce();
      } else {
        Copy();
      }
    }
    Finish();
    state_ = State::kDone;
  }
  return view_.board().FailedMeanwhile() ? Poll::kFailed : Poll::kReady;
}

void LineRun::Write() {
  if (!plan_->writes) return;
  LineBody& body = view_.line();
  std::byte* to = body.data;
  if (!plan_->inlined) {
    body.place = {plan_->outbox_offset, lease_.position, 0, 0};
    to = plan_->outbox_memory + lease_.position;
  }
  if (plan_->in_bytes > 0) std::memcpy(to, in_, plan_->in_bytes);
  body.factor = factor_;
}

bool LineRun::Take(int q) {
  const LineBody& body = *view_.peer(q).body;
  const std::byte* data = body.data;
  if (!plan_->inlined) {
    const LineBody::Place place = body.place.Read();
    const uint64_t position =
        std::min<uint64_t>(place.position, outbox_.size());
    data = view_.board().InArena(q, place.outbox + position, plan_->in_bytes);
    if (data == nullptr) {
      view_.board().Fail(absl::InternalError(absl::StrFormat(
          "the line of %s names memory where its data cannot lie",
          view_.board().Describe(q))));
      return false;
    }
  }
  blocks_[q] = data + plan_->mine_at;
  return true;
}

void LineRun::Reduce() {
  const CollectiveCall& call = plan_->call;
  const int n = view_.board().ranks(), me = view_.board().me();
  double factors[kMaxLocalRanks];
  if (call.has_factor) {
    for (int q = 0; q < n; ++q) {
      factors[q] = q == me ? factor_ : view_.peer(q).body->factor;
    }
  }
  void* out = out_;
  call.reduce({blocks_, n, &out, 1, call.in_layout.length,
               call.has_factor ? factors : nullptr, call.average ? n : 0});
}

void LineRun::Copy() {
  std::byte* to = out_;
  for (int q = plan_->first; q < plan_->last; ++q) {
    if (to != blocks_[q]) std::memcpy(to, blocks_[q], plan_->block_bytes);
    to += plan_->block_bytes;
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

}  // namespace axon
