// SPDX-License-Identifier: Apache-2.0
// Where a perf program's processes come from: it starts them itself (--ranks),
// a launcher has, or there is this one only. Called once, from main(), before
// any thread exists.
#pragma once

#include <functional>

#include "axon/axon.h"
#include "perf/options.h"

namespace axon::perf {

// This process among the others, and how they meet.
struct World {
  int process = 0;
  int processes = 1;
  bool pin = false;  // rank i to the i-th CPU allowed, and around
  // The environment says where to meet (axonCommInitEnv); `id` is unused.
  bool from_environment = false;
  axonUniqueId id{};
};

// Calls `body` in each process. The result is the exit code: of this process
// if a launcher started it, else that of the first that failed.
int Launch(const Options& options,
           const std::function<int(const World&)>& body);

// Binds the calling thread to the i-th of the CPUs it may use, modulo their
// number. Returns that CPU, or -1 if the system refused.
int PinTo(int i);

}  // namespace axon::perf
