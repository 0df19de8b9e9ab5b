// SPDX-License-Identifier: Apache-2.0
#include "select/selector.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace axon {

CostModel Selector::SharedMemoryModel() {
  // A line from one core to another, and copies at some 12 GB/s: the order of
  // magnitude of every machine since 2015. The choice depends on ratios.
  CostModel model;
  LinkCost link;
  link.latency = 80e-9;
  link.sender_seconds_per_byte = 1 / 12e9;
  link.receiver_seconds_per_byte = 1 / 12e9;
  model.links = {link};
  model.seconds_per_op = 30e-9;
  model.copy_seconds_per_byte = 1 / 12e9;
  model.reduce_seconds_per_byte = 1 / 12e9;
  return model;
}

std::vector<Candidate> Selector::Candidates(const Demand& demand) const {
  std::vector<Candidate> candidates;
  for (const Algorithm& row : Algorithms()) {
    if (row.collective != demand.collective || !Applies(row, ranks_) ||
        (demand.rank_order && !row.rank_order) || !overrides_.Allows(row)) {
      continue;
    }
    std::vector<Schedule> schedules;
    for (int r = 0; r < ranks_; ++r) {
      schedules.push_back(row.generate(Group::World(ranks_, r, 0)));
    }
    candidates.push_back(
        {&row,
         PredictSeconds(schedules, static_cast<double>(demand.block_bytes),
                        model_)});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return a.seconds < b.seconds;
                   });
  return candidates;
}

absl::StatusOr<const Algorithm*> Selector::Choose(const Demand& demand) const {
  const std::vector<Candidate> candidates = Candidates(demand);
  if (!candidates.empty()) return candidates[0].algorithm;
  return absl::FailedPreconditionError(absl::StrFormat(
      "no algorithm for %s on %d ranks%s: AXON_ALGO=%s leaves none",
      Name(demand.collective), ranks_,
      demand.rank_order
          ? " that combines in rank order (needed for 8- and 16-bit floats and "
            "premultiplied sums)"
          : "",
      overrides_.text()));
}

}  // namespace axon
