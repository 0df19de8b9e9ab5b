// SPDX-License-Identifier: Apache-2.0
// Monotonic time and deadlines. Not for hot paths: a read costs some 25 ns.
#pragma once

#include <cstdint>
#include <limits>

namespace axon {

// Nanoseconds of the monotonic clock.
int64_t NowNs();

// A point in time after which waiting ends; the default never comes.
class Deadline {
 public:
  Deadline() = default;
  static Deadline In(int64_t milliseconds) {
    return milliseconds <= 0 ? Deadline() : After(NowNs(), milliseconds);
  }
  // The same, later by some milliseconds, at least 0.
  Deadline WithGrace(int64_t milliseconds) const {
    return After(at_ns_, milliseconds);
  }
  bool infinite() const { return at_ns_ == kNever; }
  bool passed() const { return !infinite() && NowNs() >= at_ns_; }
  // Milliseconds left, at least 0 and at most `most`, which is the answer when
  // the deadline never comes.
  int64_t LeftMs(int64_t most) const;

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  // What lies beyond the clock's end never comes: limits may be a peer's.
  static Deadline After(int64_t ns, int64_t milliseconds) {
    return Deadline(milliseconds > (kNever - ns) / 1'000'000
                        ? kNever
                        : ns + milliseconds * 1'000'000);
  }
  explicit Deadline(int64_t at_ns) : at_ns_(at_ns) {}
  int64_t at_ns_ = kNever;
};

}  // namespace axon
