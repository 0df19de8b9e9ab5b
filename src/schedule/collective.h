// SPDX-License-Identifier: Apache-2.0
// What each collective is: how many blocks `in` and `out` have on each rank,
// what must stand in them afterwards, and how the two lie when a call is made
// in place. Pure functions of numbers; every layer and thread may use them.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace axon {

// One rank's place in a call. `root` matters for rooted collectives only.
struct Place {
  int ranks = 1;
  int me = 0;
  int root = 0;
};

bool IsRooted(Collective collective);
bool IsReduction(Collective collective);

// Blocks of `in` and of `out`; 0 where the rank has no such buffer. A block is
// `count` elements of the call, as NCCL counts for each collective.
int InBlocks(Collective collective, const Place& place);
int OutBlocks(Collective collective, const Place& place);

// What block b of `out` must hold when the rank's list is done: block
// `source_block` of rank `source`, or, if `source` is kAllRanks, the reduction
// of block `source_block` over all ranks, each contributing once.
constexpr int kAllRanks = -1;
struct Statement {
  int source = 0;
  int source_block = 0;
};
Statement Holds(Collective collective, const Place& place, int block);

// How the buffers lie when this rank calls in place: `in` begins at block
// `in_at` of `out`, or `out` at block `out_at` of `in` (one of the two is 0).
// Each rank decides for itself. `possible` is false where the collective cannot
// be in place, or where this rank has only one of the buffers.
struct InPlace {
  bool possible = false;
  int in_at = 0;
  int out_at = 0;
};
InPlace InPlaceOf(Collective collective, const Place& place);

}  // namespace axon
