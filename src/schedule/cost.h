// SPDX-License-Identifier: Apache-2.0
// Predicts how long a set of schedules takes, by walking it with the times of
// links and operations. Selection compares candidates with it. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace axon {

// One class of links: ranks that share a cache, a node, a network.
struct LinkCost {
  double latency = 0;           // seconds until a message can be seen
  double seconds_per_byte = 0;  // of a wire, which works beside the ranks
  // How long the ranks' own threads are busy, copying it out and reading it.
  double sender_seconds_per_byte = 0;
  double receiver_seconds_per_byte = 0;
};

struct CostModel {
  std::vector<LinkCost> links = {};      // by class; at least one
  std::vector<uint8_t> link_class = {};  // [from * ranks + to]; empty: all 0
  double seconds_per_op = 0;
  double copy_seconds_per_byte = 0;    // kCopy
  double reduce_seconds_per_byte = 0;  // per byte of each term but the first
};

// The time until the last rank is done; schedules[r] is rank r's. `block_bytes`
// is the size of one block (see schedule.h). A set that would wait for ever, or
// names peers or classes that do not exist, costs infinity.
double PredictSeconds(const std::vector<Schedule>& schedules,
                      double block_bytes, const CostModel& model);

}  // namespace axon
