// SPDX-License-Identifier: Apache-2.0
#include "engine/layout.h"

namespace axon {

Cutting Cut(size_t length, size_t element_size, int cuts, size_t max_piece) {
  Cutting cutting;
  cutting.element_size = element_size;
  cutting.cuts = cuts;
  const size_t n = static_cast<size_t>(cuts);
  // Elements of a cache line; all element sizes are powers of two up to 8.
  const size_t line = kCacheLine / element_size;
  const size_t most = std::max(line, max_piece / element_size / line * line);
  cutting.slices =
      static_cast<int>(std::max<size_t>(1, CeilDiv(length, most * n)));
  const size_t piece = CeilDiv(length, static_cast<size_t>(cutting.slices) * n);
  // Whole lines, unless the vector is so short that a rank would get nothing.
  cutting.piece = piece >= line || cutting.slices > 1
                      ? std::min(most, RoundUp(piece, line))
                      : piece;
  return cutting;
}

}  // namespace axon
