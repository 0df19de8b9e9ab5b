// SPDX-License-Identifier: Apache-2.0
// What the prover knows of memory and time: vector clocks, counters that ranks
// publish, and cells that one rank writes and others read. Values of one proof;
// one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace axon {

// Steps of each rank that have happened before.
using Clock = std::vector<uint32_t>;

inline void Join(Clock& clock, const Clock& other) {
  for (size_t i = 0; i < clock.size(); ++i) {
    clock[i] = std::max(clock[i], other[i]);
  }
}

// A counter that only grows. Who waits for a value may see the first store that
// reaches it, and knows what its writer knew then, no more.
class Published {
 public:
  void Store(uint64_t count, const Clock& clock) {
    stores_.push_back({count, clock});
  }
  // The first store that reaches `count`; null if there is none yet.
  const std::pair<uint64_t, Clock>* FirstToReach(uint64_t count) const {
    const auto first = std::partition_point(
        stores_.begin(), stores_.end(),
        [&](const auto& store) { return store.first < count; });
    return first == stores_.end() ? nullptr : &*first;
  }

 private:
  std::vector<std::pair<uint64_t, Clock>> stores_;
};

// A place of one rank's memory. Its owner may write it when everyone who read
// what it holds is known to have done so.
class Cell {
 public:
  uint64_t content() const { return content_; }

  // `reader` reads in its step `step`.
  void Read(int reader, uint32_t step) { readers_.push_back({reader, step}); }
  // Returns a rank that may still be reading, or -1.
  int Write(uint64_t content, const Clock& clock) {
    int late = -1;
    for (const auto& [reader, step] : readers_) {
      if (clock[static_cast<size_t>(reader)] < step) late = reader;
    }
    readers_.clear();
    content_ = content;
    return late;
  }

 private:
  uint64_t content_ = 0;  // 0: nothing
  std::vector<std::pair<int, uint32_t>> readers_;
};

}  // namespace axon
