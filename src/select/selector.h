// SPDX-License-Identifier: Apache-2.0
// Chooses the algorithm of a call: the row of the table with the least
// predicted time among those that apply. All ranks choose alike, since they ask
// the same model with the same numbers. Owned by a communicator; one thread.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "schedule/algorithms.h"
#include "schedule/cost.h"
#include "select/overrides.h"

namespace axon {

// What a call demands of its algorithm.
struct Demand {
  Collective collective = Collective::kAllReduce;
  size_t block_bytes = 0;
  bool rank_order = false;  // narrow floats, factors
};

struct Candidate {
  const Algorithm* algorithm;
  double seconds;  // predicted
};

class Selector {
 public:
  Selector(int ranks, Overrides overrides, CostModel model)
      : ranks_(ranks),
        overrides_(std::move(overrides)),
        model_(std::move(model)) {}

  // Costs of ranks that share memory on an ordinary machine.
  static CostModel SharedMemoryModel();

  // Whether the user allows the row.
  bool Allows(const Algorithm& row) const { return overrides_.Allows(row); }
  // The best; an error that says why nothing is left.
  absl::StatusOr<const Algorithm*> Choose(const Demand& demand) const;
  // All that apply and are allowed, best first.
  std::vector<Candidate> Candidates(const Demand& demand) const;

 private:
  int ranks_;
  Overrides overrides_;
  CostModel model_;
};

}  // namespace axon
