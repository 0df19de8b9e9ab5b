// SPDX-License-Identifier: Apache-2.0
// Threads that complete futures. What hangs on a future may be Python and may
// wait for another call of the same group (as DDP's PowerSGD hook does), so it
// must not run on the library's one callback thread, and a fixed number of
// threads would not do: a thread is added whenever none is free. One pool a
// process, never destroyed; any thread may use it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

namespace torch_axon {

class Completions {
 public:
  static Completions& Get();

  // Runs `task` soon, on another thread.
  void Add(std::function<void()> task);

  // Before the interpreter goes: runs what is there, ends the threads, and from
  // now on runs no tasks. False if some were still running after `limit`.
  bool Stop(std::chrono::milliseconds limit);

 private:
  void Serve();

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  int threads_ = 0;
  int free_ = 0;
  bool stopped_ = false;
};

}  // namespace torch_axon
