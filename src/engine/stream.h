// SPDX-License-Identifier: Apache-2.0
// Streams and events: in-order queues of tasks, and marks in them. All state is
// guarded by the mutex of the collective core that serves them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "engine/task.h"

namespace axon {

// Created and destroyed through Core.
struct Stream {
  std::deque<std::unique_ptr<Task>> tasks;
  // The head, if it has been stepped; of the core's thread.
  const Task* stepped = nullptr;
  uint64_t made = 0;         // tasks queued so far
  uint64_t done = 0;         // tasks finished so far
  absl::Status first_error;  // since the last synchronize
  absl::Status last;         // of the last communication
};

// A mark that may be recorded again and again; each record has a number.
struct Event {
  uint64_t recorded = 0;
  std::set<uint64_t> pending;  // records whose streams have not come there
  int users = 0;               // queued tasks that name this event
  bool destroyed = false;      // freed when users is 0
};

}  // namespace axon
