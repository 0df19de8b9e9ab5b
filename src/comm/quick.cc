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

// The type of the run is known: no virtual calls. `spins` may be 0.
template <typename Run>
Poll StepShortly(Run& run, int spins) {
  Poll poll = run.Run::Step();
  for (int i = 0; i < spins && poll == Poll::kPending; ++i) {
    CpuPause();
    poll = run.Run::Step();
  }
  if (spins > 0) return poll;
  for (int i = 0; i < kYields && poll == Poll::kPending; ++i) {
    sched_yield();
    poll = run.Run::Step();
  }
  return poll;
}

}  // namespace

Communicator::Quick Communicator::RunQuickly(const CallShape& shape,
                                             const void* in, void* out) {
  // Idle: whatever ran on another thread has ended, and only this thread makes
  // calls; so what belongs to the thread whose turn it is is this thread's.
  if (!collectives_.idle()) return {};
  Recipe& recipe = recipes_.At(shape);
  if (recipe.shape != shape ||
      !recipe.Fit(static_cast<const std::byte*>(in),
                  static_cast<const std::byte*>(out)) ||
      failed()) {
    return {};
  }
  const auto* from = static_cast<const std::byte*>(in);
  auto* const to = static_cast<std::byte*>(out);
  Work* work = &line_run_;
  if (!recipe.on_lines) {
    if (!SetBuffers(recipe, from, to, 1).ok()) return {};
    work = &board_run_;
  }
  const uint64_t ticket = collectives_.Take();
  NoteMade();
  const int spins = std::min(wait_policy_.spins, kSpins);
  on_lines_ = recipe.on_lines;
  Poll poll;
  if (on_lines_) {
    line_run_.Start(recipe.line, from, to);
    poll = StepShortly(line_run_, spins);
  } else {
    board_run_.Start(recipe.setup);
    poll = StepShortly(board_run_, spins);
  }
  if (poll != Poll::kReady) return {Quick::Outcome::kStarted, work, ticket};
  Done(collectives_);
  return {Quick::Outcome::kDone};
}

}  // namespace axon
