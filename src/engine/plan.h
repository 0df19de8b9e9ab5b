// SPDX-License-Identifier: Apache-2.0
// A plan is the schedules of all ranks bound to one rank's view of a board:
// every dependency has become "the peer's count has reached a constant", every
// message a place in the sender's outbox. It knows no call, size or address, so
// one plan serves every call of its algorithm, root and world. A plain value,
// read-only once made.
//
// A long vector is run slice by slice. Each rank's operations are grouped in
// stages, and in iteration t a rank runs stage k of slice t - k, so that it has
// filled the next slice before it waits for the last one. Operations of slices
// that do not exist are skipped but counted, so the number of operations that a
// rank has done after operation `position` (its place within an iteration) of
// slice s is (s + stage) * ops + position + 1: the constants below.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace axon {

// "The rank has done operation `position` of stage `stage`", for any slice.
struct Milestone {
  uint32_t stage = 0;
  uint32_t position = 0;
};

// A message that an operation reads: where it lies once `ready` is reached.
struct Incoming {
  int peer = 0;
  Span source;        // in the sender's buffers, for reading it in place
  uint32_t unit = 0;  // place in the sender's outbox, in pieces
  Milestone ready;
};

struct PlannedOp {
  OpKind kind = OpKind::kCopy;
  bool completes = false;
  bool counts = false;  // peers wait for it: the count must be published
  int32_t unit = -1;    // place in my outbox of what it sends, in pieces; -1
  Span source;
  Span destination;
  uint32_t stage = 0;
  uint32_t first_incoming = 0;
  uint32_t num_incoming = 0;
};

// What an operation with a `unit` sends.
inline const Span& SentSpan(const PlannedOp& op) {
  return Sends(op.kind) ? op.source : op.destination;
}

// What everyone must know of each rank.
struct RankShape {
  uint32_t ops = 0;       // in an iteration
  uint32_t stages = 1;    // iterations of a call are slices + stages - 1
  uint32_t units = 0;     // pieces of its outbox that a slice takes
  uint32_t prologue = 0;  // up to the last it sends before it reads anything
  bool reads_me = false;
  Milestone last_read;  // of what I send, if reads_me
};

// How many operations the rank has done of a call after `milestone` of a slice.
inline uint32_t DoneAt(const RankShape& shape, Milestone milestone, int slice) {
  return (static_cast<uint32_t>(slice) + milestone.stage) * shape.ops +
         milestone.position + 1;
}

struct Plan {
  std::vector<PlannedOp> ops;  // mine, in the order of an iteration
  std::vector<Incoming> incoming;
  std::vector<RankShape> ranks;
  int me = 0;
  int cuts = 1;
  int scratch_pieces = 0;
  uint32_t max_units = 0;   // over all ranks
  uint32_t max_stages = 1;  // over all ranks
};

// Pieces that an outbox must have room for: the slices that a pipeline holds,
// and two more, so that its stages do not wait for each other.
inline size_t OutboxPieces(const Plan& plan) {
  return std::max<size_t>(1, plan.max_units) * (plan.max_stages + 2);
}

// Whether the rank writes to its outbox, if peers read what it sends from `in`
// or `out` where it lies.
inline bool Stages(const Plan& plan, bool reach_in, bool reach_out) {
  return std::any_of(
      plan.ops.begin(), plan.ops.end(), [&](const PlannedOp& op) {
        const Buffer sent = SentSpan(op).buffer;
        return op.unit >= 0 && !(sent == Buffer::kIn && reach_in) &&
               !(sent == Buffer::kOut && reach_out);
      });
}

}  // namespace axon
