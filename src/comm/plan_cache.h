// SPDX-License-Identifier: Apache-2.0
// The algorithm and the plan of every call of a communicator, chosen and bound
// at first use and found by two indexes afterwards. Owned by the communicator;
// used by the thread whose turn it is.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/plan.h"
#include "select/selector.h"

namespace axon {

class PlanCache {
 public:
  // `check`: prove what is bound, before it is used.
  PlanCache(int rank, int ranks, bool check, Selector selector)
      : rank_(rank),
        ranks_(ranks),
        check_(check),
        selector_(std::move(selector)) {}

  struct Found {
    const Algorithm* algorithm = nullptr;
    const Plan* plan = nullptr;
  };
  absl::StatusOr<Found> Find(const Demand& demand, int root);
  // The row that sends everything straight from who has it to who wants it, in
  // one exchange; null if the user does not allow it.
  const Algorithm* Direct(Collective collective) const;
  // The plan of a given row.
  absl::StatusOr<const Plan*> MakePlan(const Algorithm& algorithm, int root);

 private:
  static constexpr int kSizes = 64;  // log2 of a size in bytes
  struct Choice {
    const Algorithm* algorithm = nullptr;
    std::vector<const Plan*> by_root;
  };
  absl::Status Choose(const Demand& demand, Choice* choice);

  int rank_, ranks_;
  bool check_;
  Selector selector_;
  // [collective][in rank order]; [log2 of the size], made at first use.
  std::array<std::array<std::vector<Choice>, 2>, kNumCollectives> choices_;
  struct Made {
    const Algorithm* algorithm;
    int root;
    std::unique_ptr<Plan> plan;
  };
  std::vector<Made> made_;
};

}  // namespace axon
