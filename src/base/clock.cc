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
  const int64_t left_ns = std::max<int64_t>(0, at_ns_ - NowNs());
  const int64_t left = left_ns / 1'000'000 + (left_ns % 1'000'000 != 0 ? 1 : 0);
  return std::min(left, most);
}

}  // namespace axon
