// SPDX-License-Identifier: Apache-2.0
// Proves bound plans, as schedule/check.h proves schedules: what Bind made of
// them, and how BoardRun, BoardView and Outbox run it. All ranks are run once
// through a sequence of calls with vector clocks that know only what counters
// and lines tell, each wait taken at the first store that ends it; so what
// holds here holds however the ranks are timed:
//
//   - every rank comes to its end: nobody waits for ever;
//   - every operation finds exactly the message that the schedules mean,
//   written
//     before;
//   - no message is overwritten in an outbox, no buffer by its owner or, after
//     the call, by the caller, while a peer may still read it;
//   - no line is used again while a peer may still read it;
//   - scratch is never shared by two slices.
//
// Values are not looked at: that the messages of the schedules give the right
// result is the other checker's part. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/plan.h"
#include "schedule/check.h"
#include "transport/block.h"

namespace axon {

// Which buffers of a rank its peers read where they lie.
struct Reach {
  bool in = false;
  bool out = false;
};

// One collective call, bound on every rank.
struct BoundCall {
  Call call;                // what the plans were made from
  std::vector<Plan> plans;  // by rank
  int slices = 1;
  bool in_place = false;     // on the ranks that can
  std::vector<Reach> reach;  // by rank; empty: every message is copied
  size_t unit = 1;           // cells of an outbox that a piece takes
};

struct ProveOptions {
  size_t outbox = 0;            // cells of an outbox
  uint32_t lines = kCallLines;  // of a rank
  // Faults that must be found: by how many calls a rank enters too early, and
  // whether it leaves a call before its buffers have been read.
  uint32_t early = 0;
  bool drain = true;
};

// Binds `call` on all ranks.
absl::StatusOr<BoundCall> BindAll(Call call, bool pipelined);
// The smallest outbox, in cells, with which `call` would be run.
size_t SmallestOutbox(const BoundCall& call);

// OK if the calls, one after the other on the same ranks, are proved.
absl::Status Prove(absl::Span<const BoundCall* const> calls,
                   const ProveOptions& options);

}  // namespace axon
