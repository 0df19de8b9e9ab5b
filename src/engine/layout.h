// SPDX-License-Identifier: Apache-2.0
// Where the pieces of a schedule lie in the buffers of one call. Long vectors
// are run in slices; slice s takes the elements [s * cuts * piece,
// (s + 1) * cuts * piece) of every block, and its pieces are the consecutive
// runs of `piece` elements of that. A value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "schedule/schedule.h"

namespace axon {

// One buffer of a call: consecutive blocks of equal length, or blocks of given
// lengths at given places (elements).
struct BlockedBuffer {
  size_t length = 0;                 // elements of a block
  const int64_t* lengths = nullptr;  // null: all are `length`
  const int64_t* offsets = nullptr;  // null: block b begins at b * length

  size_t LengthOf(int block) const {
    return lengths == nullptr ? length : static_cast<size_t>(lengths[block]);
  }
  size_t OffsetOf(int block) const {
    return offsets == nullptr ? static_cast<size_t>(block) * length
                              : static_cast<size_t>(offsets[block]);
  }
};

// How a call is cut.
struct Cutting {
  size_t element_size = 1;
  size_t piece = 0;  // elements of a piece
  int cuts = 1;      // pieces of a block in one slice
  int slices = 1;

  size_t slice_elements() const { return piece * static_cast<size_t>(cuts); }
  size_t piece_bytes() const { return piece * element_size; }
};

// Cuts `length` elements into slices whose pieces have at most `max_piece`
// bytes; pieces are multiples of a cache line where there is more than one
// slice or the vector is long.
Cutting Cut(size_t length, size_t element_size, int cuts, size_t max_piece);

// A contiguous run of elements of a buffer.
struct Segment {
  size_t offset;  // elements from the buffer's begin
  size_t count;   // elements
};

// The part of block `block` that belongs to pieces [first, first + count) of it
// in slice `slice`.
inline Segment SegmentOf(const BlockedBuffer& buffer, const Cutting& cutting,
                         int block, int slice, int first, int count) {
  const size_t length = buffer.LengthOf(block);
  const size_t begin = static_cast<size_t>(slice) * cutting.slice_elements() +
                       static_cast<size_t>(first) * cutting.piece;
  const size_t from = std::min(begin, length);
  const size_t to =
      std::min(begin + static_cast<size_t>(count) * cutting.piece, length);
  return {buffer.OffsetOf(block) + from, to - from};
}

}  // namespace axon
