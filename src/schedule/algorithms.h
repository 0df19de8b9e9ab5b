// SPDX-License-Identifier: Apache-2.0
// The table of algorithms. An algorithm is one file in this folder and one row
// here; tests, selection, benchmarks and explanations find it by the row.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/types.h"
#include "schedule/group.h"
#include "schedule/schedule.h"

namespace axon {

struct Algorithm {
  const char* name;  // "ring": unique within a collective
  Collective collective;
  Schedule (*generate)(const Group& group);
  // Contributions are combined in rank order in one operation (kReduceAll), so
  // that narrow floats are rounded once and factors of ranks can be applied.
  // True for every algorithm that reduces nothing.
  bool rank_order;
  bool power_of_two_only;
};

absl::Span<const Algorithm> Algorithms();
// Null if there is no such row.
const Algorithm* FindAlgorithm(Collective collective, absl::string_view name);
bool Applies(const Algorithm& algorithm, int ranks);

}  // namespace axon
