// SPDX-License-Identifier: Apache-2.0
#include "schedule/memory.h"

#include <algorithm>

namespace axon {

Memory::Memory(Collective collective, const Place& place,
               const Schedule& schedule, bool in_place,
               const Expressions& expressions) {
  const int cuts = schedule.cuts;
  const int in = static_cast<int>(Buffer::kIn);
  const int out = static_cast<int>(Buffer::kOut);
  const int scratch = static_cast<int>(Buffer::kScratch);
  size_[in] = InBlocks(collective, place) * cuts;
  size_[out] = OutBlocks(collective, place) * cuts;
  size_[scratch] = schedule.scratch_pieces;
  const InPlace how = InPlaceOf(collective, place);
  if (in_place && how.possible) {
    base_[in] = how.in_at * cuts;
    base_[out] = how.out_at * cuts;
    base_[scratch] = std::max(size_[in], size_[out]);
  } else {
    base_[out] = size_[in];
    base_[scratch] = size_[in] + size_[out];
  }
  cells_.resize(base_[scratch] + size_[scratch]);
  for (int i = 0; i < size_[in]; ++i) {
    cells_[base_[in] + i].value = expressions.Contribution(place.me, i);
  }
}

}  // namespace axon
