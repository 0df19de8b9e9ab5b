// SPDX-License-Identifier: Apache-2.0
// A short text in shared memory that its owner may change while others read it.
// Part of a block; zeroed memory is the empty note. Write: one thread at a
// time. Read: any thread of any process that maps it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace axon {

class Note {
 public:
  // Cuts what does not fit.
  void Write(absl::string_view text) {
    char bytes[kBytes] = {};
    std::memcpy(bytes, text.data(), std::min(text.size(), kBytes - 1));
    version_.fetch_add(1, std::memory_order_relaxed);
    for (size_t i = 0; i < kWords; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, bytes + i * sizeof(word), sizeof(word));
      // release: who sees the word sees that the version is odd, or later.
      words_[i].store(word, std::memory_order_release);
    }
    // release: who sees this version sees the words.
    version_.fetch_add(1, std::memory_order_release);
  }

  // Empty too if it changes all the time.
  std::string Read() const {
    for (int i = 0; i < kTries; ++i) {
      const uint32_t before = version_.load(std::memory_order_acquire);
      char bytes[kBytes];
      for (size_t w = 0; w < kWords; ++w) {
        const uint64_t word = words_[w].load(std::memory_order_acquire);
        std::memcpy(bytes + w * sizeof(word), &word, sizeof(word));
      }
      if (before % 2 == 0 &&
          before == version_.load(std::memory_order_relaxed)) {
        bytes[kBytes - 1] = 0;
        return bytes;
      }
    }
    return "";
  }

 private:
  static constexpr size_t kBytes = 128;
  static constexpr size_t kWords = kBytes / sizeof(uint64_t);
  static constexpr int kTries = 3;

  // Odd while the words change. Writer: the owner; readers: all.
  std::atomic<uint32_t> version_;
  std::atomic<uint64_t> words_[kWords];
};

}  // namespace axon
