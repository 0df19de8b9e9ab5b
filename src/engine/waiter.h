// SPDX-License-Identifier: Apache-2.0
// How a thread waits for peers: it spins, then yields, then sleeps on its
// process's doorbell until a peer it asked rings. A spin that keeps failing
// learns to be short. Belongs to one thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/cpu.h"
#include "transport/doorbell.h"

namespace axon {

struct WaitPolicy {
  int spins = 4000;  // polls before the first yield; 0 when ranks outnumber
                     // the CPUs they may use
  int yields = 200;  // yields before the first sleep, but no more than fit
                     // into longest_yield_ns
  // Where others have work, a yield may take milliseconds, and the scheduler
  // prefers threads that wake from sleep: yielding on would be slow.
  int64_t longest_yield_ns = 2'000'000;
};

class Waiter {
 public:
  // `learned`, if given, outlives the waiter and carries from wait to wait how
  // many polls are worth while. A spin after which the very next yields brought
  // what was waited for was in vain: the peer shares this processor. It halves
  // the number; a spin that was not in vain doubles it.
  Waiter(Doorbell& doorbell, const WaitPolicy& policy, int* learned = nullptr)
      : doorbell_(doorbell), policy_(policy), learned_(learned) {
    Learn();
  }

  // Forgets how long this wait has been: something happened.
  void Reset() {
    if (learned_ != nullptr && idle_ > 0 && idle_ <= spins_ + 2) {
      const bool vain = idle_ > spins_;
      *learned_ = std::clamp(vain ? spins_ / 2 : spins_ * 2, kFewestSpins,
                             std::max(kFewestSpins, policy_.spins));
      Learn();
    }
    idle_ = 0;
    sleep_us_ = kFirstSleepUs;
  }

  // Reset(), and true now and then: where one of several is always busy, the
  // others may wait in vain, and their deadlines must be looked at.
  bool Stepped() {
    Reset();
    return ++steps_ % kStepsPerLook == 0;
  }

  // Waits a little. `ask` asks the peers to ring; `ready` tells whether there
  // is something to do after all (it is called between asking and sleeping).
  // Returns true now and then, and always after a yield or a sleep worth
  // looking at deadlines, aborts and dead peers.
  template <typename Ask, typename Ready>
  bool Wait(Ask ask, Ready ready) {
    const int n = idle_;
    // Counts no further, so that it never overflows.
    if (n < policy_.spins + policy_.yields) ++idle_;
    if (n < spins_) {
      CpuPause();
      return n % 1024 == 1023;
    }
    if (n < spins_ + policy_.yields) {
      if (Yield(n == spins_)) idle_ = spins_ + policy_.yields;
      return (n - spins_) % 64 == 63;
    }
    const uint32_t seen = doorbell_.rings.load(std::memory_order_seq_cst);
    ask();
    // With the heavy fence a publisher's plain store and load are in order as
    // this thread sees them; without it, a ring may be missed for one sleep.
    const bool fenced = HeavyFence();
    if (ready()) {
      Reset();
      return true;
    }
    SleepOn(doorbell_, seen, fenced ? sleep_us_ : kUnfencedSleepUs);
    sleep_us_ = std::min(2 * sleep_us_, kLongestSleepUs);
    return true;
  }

 private:
  static constexpr int64_t kFirstSleepUs = 1000;
  static constexpr int64_t kLongestSleepUs = 50'000;
  static constexpr int64_t kUnfencedSleepUs = 500;

  // A step takes some 100 us for each of them at most.
  static constexpr uint32_t kStepsPerLook = 1024;

  // Whether the yields since the `first` have taken too long.
  bool Yield(bool first);

  static constexpr int kFewestSpins = 32;

  void Learn() {
    spins_ = learned_ == nullptr ? policy_.spins
                                 : std::min(*learned_, policy_.spins);
  }

  Doorbell& doorbell_;
  const WaitPolicy policy_;
  int* const learned_;
  int spins_ = 0;  // of this wait
  int idle_ = 0;
  uint32_t steps_ = 0;
  int64_t yields_began_ns_ = 0;
  int64_t sleep_us_ = kFirstSleepUs;
};

}  // namespace axon
