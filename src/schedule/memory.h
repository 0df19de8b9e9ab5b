// SPDX-License-Identifier: Apache-2.0
// The buffers of one rank as the checker sees them: cells that hold an
// expression each. In place, `in` and `out` share cells. Owned by one check;
// one thread.
#pragma once

#include <vector>

#include "schedule/collective.h"
#include "schedule/expression.h"
#include "schedule/schedule.h"

namespace axon {

struct Cell {
  Expressions::Id value = Expressions::kUndefined;
  std::vector<int> sent;  // messages that lie here
};

class Memory {
 public:
  Memory() = default;
  Memory(Collective collective, const Place& place, const Schedule& schedule,
         bool in_place, const Expressions& expressions);

  bool Contains(Span span) const {
    return span.first + span.count <= size_[static_cast<int>(span.buffer)];
  }
  absl::Span<Cell> At(Span span) {
    const int base = base_[static_cast<int>(span.buffer)];
    return absl::MakeSpan(cells_).subspan(base + span.first, span.count);
  }

 private:
  int base_[3] = {};  // by Buffer: the first cell
  int size_[3] = {};
  std::vector<Cell> cells_;
};

}  // namespace axon
