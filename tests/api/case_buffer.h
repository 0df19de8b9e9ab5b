// SPDX-License-Identifier: Apache-2.0
// Memory of a test's call: private or of axonMemAlloc, at any alignment, with
// guarded bytes on both sides; and the comparison with a period of expected
// elements. Owned by the rank's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "tests/api/cases.h"

namespace axon {

class CaseBuffer {
 public:
  CaseBuffer(Memory memory, size_t bytes, size_t shift);
  ~CaseBuffer();
  CaseBuffer(const CaseBuffer&) = delete;
  CaseBuffer& operator=(const CaseBuffer&) = delete;

  std::byte* data() { return begin_ + kGuard + shift_; }
  bool intact() const;

 private:
  static constexpr size_t kGuard = 128;
  static constexpr std::byte kFill{0xa5};

  size_t bytes_, shift_;
  void* mapped_ = nullptr;
  std::vector<std::byte> private_;
  std::byte* begin_;
};

// Writes `count` elements that repeat `period`.
void Repeat(DataType type, std::byte* to, size_t count,
            const std::vector<uint64_t>& period);
// Compares `count` elements with `period` from element `phase` on: empty, or
// the first that differs. Any NaN equals any other.
std::string Differs(DataType type, const std::byte* got, size_t count,
                    const std::vector<uint64_t>& period, size_t phase);

}  // namespace axon
