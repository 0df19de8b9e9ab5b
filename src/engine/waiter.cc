// SPDX-License-Identifier: Apache-2.0
#include "engine/waiter.h"

#include <sched.h>

#include "base/clock.h"

namespace axon {

bool Waiter::Yield(bool first) {
  if (first) yields_began_ns_ = NowNs();
  sched_yield();
  return NowNs() - yields_began_ns_ > policy_.longest_yield_ns;
}

}  // namespace axon
