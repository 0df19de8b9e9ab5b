// SPDX-License-Identifier: Apache-2.0
// The short way of blocking calls: what is left of a call whose shape has been
// seen before, and that nothing stands in front of.
#include <sched.h>

#include <algorithm>

#include "base/cpu.h"
#include "comm/communicator.h"

namespace axon {
namespace {

// Looks at the peers so often before the waiting proper begins: ranks that call
// together are within a microsecond of each other, or wait for a processor.
constexpr int kSpins = 64;
constexpr int kYields = 16;

// The type of the run is known: no virtual calls.
template <typename Run>
Poll StepShortly(Run& run, Poll poll, int spins) {
  for (int i = 0; i < spins && poll == Poll::kPending; ++i) {
    CpuPause();
    poll = run.Run::Step();
  }
  const int yields = spins > 0 ? 0 : kYields;
  for (int i = 0; i < yields && poll == Poll::kPending; ++i) {
    sched_yield();
    poll = run.Run::Step();
  }
  return poll;
}

}  // namespace

Poll Communicator::RunBoardQuickly(Recipe& recipe, const void* in, void* out) {
  const absl::Status status =
      SetBuffers(recipe, static_cast<const std::byte*>(in),
                 static_cast<std::byte*>(out), 1);
  if (!status.ok()) {
    // The others may have what this rank lacks: they must not wait for it.
    board_->Fail(status);
    return Poll::kFailed;
  }
  board_run_.Start(recipe.setup);
  return board_run_.BoardRun::Step();
}

Communicator::Started Communicator::StepQuickly(const Recipe& recipe,
                                                Poll poll) {
  const int spins = std::min(wait_policy_.spins, kSpins);
  on_lines_ = recipe.on_lines;
  Work* work = nullptr;
  if (on_lines_) {
    poll = StepShortly(line_run_, poll, spins);
    work = &line_run_;
  } else {
    poll = StepShortly(board_run_, poll, spins);
    work = &board_run_;
  }
  if (poll == Poll::kReady) return {};
  return {work, collectives_.Take()};
}

}  // namespace axon
