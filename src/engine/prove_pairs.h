// SPDX-License-Identifier: Apache-2.0
// Which message each planned operation means, found from the schedules alone:
// what the prover holds Bind's work against. Pure functions.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/plan.h"
#include "schedule/schedule.h"

namespace axon {

// The n-th sending operation of a rank.
struct SendName {
  int rank = 0;
  int number = 0;
};

// One rank's side.
struct RankPairs {
  std::vector<int> send;  // by planned operation: its number; -1: sends nothing
  std::vector<std::vector<SendName>> expected;  // by planned operation
  std::vector<Span> sent;                       // by number: where it lay
};

// An error if a plan does not do the operations of its schedule, in their
// order.
absl::StatusOr<std::vector<RankPairs>> PairMessages(
    absl::Span<const Schedule> schedules, absl::Span<const Plan> plans);

}  // namespace axon
