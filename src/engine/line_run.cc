// SPDX-License-Identifier: Apache-2.0
#include "engine/line_run.h"

#include <cstring>

namespace axon {
namespace {

// One block a rank lies in the input: the others are for other ranks.
bool InHasBlocks(Collective collective) {
  return collective == Collective::kReduceScatter ||
         collective == Collective::kAlltoAll ||
         collective == Collective::kScatter;
}

}  // namespace

void LineRun::Start(const CollectiveCall& call, const Signature& signature) {
  call_ = call;
  state_ = State::kEnter;
  next_ = 0;
  block_bytes_ = call.in_layout.length * call.element_size();
  view_.NextCall(signature);
}

bool LineRun::Contributes(int rank) const {
  const bool from_root = call_.collective == Collective::kBroadcast ||
                         call_.collective == Collective::kScatter;
  return !from_root || rank == call_.root;
}

bool LineRun::Reads() const {
  const bool to_root = call_.collective == Collective::kReduce ||
                       call_.collective == Collective::kGather;
  return !to_root || view_.board().me() == call_.root;
}

Poll LineRun::Step() {
  if (state_ == State::kEnter) {
    // My line of kCallLines calls ago must have been read by all.
    const Poll poll = view_.AwaitFinished(view_.call() - kCallLines);
    if (poll != Poll::kReady) return poll;
    Write();
    view_.PostLine();
    state_ = State::kRead;
    took_step_ = true;
  }
  if (state_ == State::kRead) {
    for (; Reads() && next_ < view_.board().ranks(); ++next_) {
      if (next_ == view_.board().me() || !Contributes(next_)) continue;
      const Poll poll = view_.AwaitLine(next_, 0);
      if (poll != Poll::kReady) return poll;
      took_step_ = true;
    }
    Finish();
    state_ = State::kDone;
  }
  return view_.board().failed() ? Poll::kFailed : Poll::kReady;
}

void LineRun::Write() {
  if (!Contributes(view_.board().me())) return;
  const size_t blocks = InHasBlocks(call_.collective)
                            ? static_cast<size_t>(view_.board().ranks())
                            : 1;
  LineBody& body = view_.line();
  if (block_bytes_ > 0) {
    std::memcpy(body.data, call_.in, blocks * block_bytes_);
  }
  body.factor = call_.factor;
}

const std::byte* LineRun::BlockOf(int q) const {
  const int me = view_.board().me();
  const LineBody& body = q == me ? view_.line() : *view_.peer(q).body;
  const bool blocks = InHasBlocks(call_.collective);
  return body.data + (blocks ? static_cast<size_t>(me) * block_bytes_ : 0);
}

void LineRun::Finish() {
  const int n = view_.board().ranks();
  if (Reads() && block_bytes_ > 0) {
    if (call_.reduce != nullptr) {
      const void* sources[kMaxLocalRanks];
      double factors[kMaxLocalRanks];
      for (int q = 0; q < n; ++q) {
        sources[q] = BlockOf(q);
        if (call_.has_factor) {
          factors[q] = q == view_.board().me() ? call_.factor
                                               : view_.peer(q).body->factor;
        }
      }
      void* out = call_.out;
      call_.reduce({sources, n, &out, 1, call_.in_layout.length,
                    call_.has_factor ? factors : nullptr,
                    call_.average ? n : 0});
    } else if (call_.collective == Collective::kBroadcast ||
               call_.collective == Collective::kScatter) {
      std::memcpy(call_.out, BlockOf(call_.root), block_bytes_);
    } else {
      for (int q = 0; q < n; ++q) {
        std::memcpy(call_.out + static_cast<size_t>(q) * block_bytes_,
                    BlockOf(q), block_bytes_);
      }
    }
  }
  // Who has read everyone has seen everyone enter. Who has not tells the others
  // that it needs nothing of this call any more.
  bool all = Reads();
  for (int q = 0; q < n; ++q) all = all && Contributes(q);
  if (all) {
    view_.AllEntered();
  } else {
    view_.Finish();
  }
}

}  // namespace axon
