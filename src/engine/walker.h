// SPDX-License-Identifier: Apache-2.0
// Walks the memory of a span of pieces as contiguous runs, so that operations
// over spans that cross blocks, packed messages and plain vectors are one loop.
// A value on the stack of one operation.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/layout.h"

namespace axon {

class Walker {
 public:
  // Packed memory of `count` elements: a message in an outbox, or scratch. A
  // message is as long as what it is moved to or from: no bound of its own.
  static Walker Packed(const std::byte* base, size_t count = ~size_t{0}) {
    Walker w;
    w.at_ = base;
    w.left_ = count;
    return w;
  }
  // A span of a buffer that begins at `base`.
  Walker(const std::byte* base, const BlockedBuffer& buffer,
         const Cutting& cutting, Span span, int slice)
      : base_(base),
        buffer_(&buffer),
        cutting_(&cutting),
        piece_(span.first),
        pieces_left_(span.count),
        slice_(slice) {
    Refill();
  }

  bool done() const { return left_ == 0; }
  size_t left() const { return left_; }
  const std::byte* at() const { return at_; }
  // Moves on by `count` <= left() elements.
  void Skip(size_t count, size_t element_size) {
    at_ += count * element_size;
    left_ -= count;
    if (left_ == 0 && buffer_ != nullptr) Refill();
  }

 private:
  Walker() = default;
  void Refill() {
    while (left_ == 0 && pieces_left_ > 0) {
      const int block = piece_ / cutting_->cuts;
      const int first = piece_ % cutting_->cuts;
      const int count = std::min(pieces_left_, cutting_->cuts - first);
      const Segment segment =
          SegmentOf(*buffer_, *cutting_, block, slice_, first, count);
      at_ = base_ + segment.offset * cutting_->element_size;
      left_ = segment.count;
      piece_ += count;
      pieces_left_ -= count;
    }
  }

  const std::byte* at_ = nullptr;
  size_t left_ = 0;
  const std::byte* base_ = nullptr;
  const BlockedBuffer* buffer_ = nullptr;
  const Cutting* cutting_ = nullptr;
  int piece_ = 0;
  int pieces_left_ = 0;
  int slice_ = 0;
};

}  // namespace axon
