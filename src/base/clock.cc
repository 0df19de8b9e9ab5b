// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <algorithm>
#include <chrono>

namespace axon {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t Deadline::LeftMs(int64_t most) const {
  if (infinite()) return most;
  // Rounded up, so that a poll with the answer does not end too early.
  const int64_t left = (at_ns_ - NowNs() + 999'999) / 1'000'000;
  return std::clamp<int64_t>(left, 0, most);
}

}  // namespace axon
