// SPDX-License-Identifier: Apache-2.0
// The arguments of calls, checked: what passes from the C edge to a
// communicator. Values.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "engine/board_view.h"

namespace axon {

// A message to or from a peer.
struct MessageArgs {
  bool send = false;
  void* buffer = nullptr;
  size_t bytes = 0;
  int peer = 0;
  int lane = kUserLane;
};

struct CollectiveArgs {
  Collective collective = Collective::kBarrier;
  DataType type = DataType::kUint8;
  ReduceOp op = ReduceOp::kSum;
  const void* in = nullptr;
  void* out = nullptr;
  size_t count = 0;  // elements of a block; of all blocks if they are unequal
  int root = 0;
  double factor = 1;  // kPreMulSum
  // kPreMulSum with a scalar that is read when the call runs; else null.
  const void* factor_at = nullptr;
  // The v-collectives: lengths and places of the blocks on this rank (elements;
  // copies). Null: equal parts of `count`.
  std::vector<int64_t> lengths;
  std::vector<int64_t> offsets;
  uint64_t extra = 0;  // hash of further arguments that must agree
  CallVariant variant = CallVariant::kPlain;
  // What an all-to-all of unequal parts sends and receives once all have met:
  // each pair settles its sizes by itself.
  std::vector<MessageArgs> messages;
};

}  // namespace axon
