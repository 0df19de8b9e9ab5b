// SPDX-License-Identifier: Apache-2.0
// One collective call as the engine sees it: buffers, sizes and arithmetic, all
// checked before. A value that lives as long as the call runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/poll.h"
#include "base/types.h"
#include "engine/kernels.h"
#include "engine/layout.h"

namespace axon {

struct CollectiveCall {
  Collective collective = Collective::kBarrier;
  DataType type = DataType::kUint8;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  BlockedBuffer in_layout;
  BlockedBuffer out_layout;
  int root = 0;
  // Arithmetic; null where the collective reduces nothing.
  ReduceFn reduce = nullptr;
  bool average = false;
  bool has_factor = false;
  double factor = 1;

  size_t element_size() const { return ElementSize(type); }
};

// A resumable piece of work of one rank. Step() goes on until it is done, has
// failed, or would wait; whoever runs it decides how to wait.
class Work {
 public:
  virtual ~Work() = default;
  virtual Poll Step() = 0;
  // Whether something has been done or has come since the last time this was
  // asked. If not, AskToWake() still asks the same peers.
  virtual bool TookStep() = 0;
  // Asks the peers that it waits for to ring this process's doorbell.
  virtual void AskToWake() = 0;
};

}  // namespace axon
