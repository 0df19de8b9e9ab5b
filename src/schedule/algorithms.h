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
  // `group.ranks` are 0 .. size-1 in the order to use them; the block of rank r
  // is block r whatever the order.
  Schedule (*generate)(const Group& group);
  // Contributions are combined in rank order in one operation (kReduceAll), so
  // that narrow floats are rounded once and factors of ranks can be applied.
  // True for every algorithm that reduces nothing.
  bool rank_order;
  bool power_of_two_only;
  // Called in place, it overwrites what it has sent before the readers need be
  // done: sends must then be copied (staged), never read where they lie.
  bool copy_in_place = false;
};

absl::Span<const Algorithm> Algorithms();
// Null if there is no such row.
const Algorithm* FindAlgorithm(Collective collective, absl::string_view name);
// Schedules name pieces with 16 bits; no row runs out of them up to here.
constexpr int kMaxScheduledRanks = 4096;
bool Applies(const Algorithm& algorithm, int ranks);

}  // namespace axon
