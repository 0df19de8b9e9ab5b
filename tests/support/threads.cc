// SPDX-License-Identifier: Apache-2.0
#include "tests/support/threads.h"

#include <sched.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace axon {

void RunRanks(int ranks, const std::function<void(int)>& body, int seconds,
              const std::function<std::string()>& dump) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<bool> done(static_cast<size_t>(ranks), false);
  int left = ranks;
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      body(r);
      std::lock_guard<std::mutex> lock(mutex);
      done[static_cast<size_t>(r)] = true;
      --left;
      changed.notify_all();
    });
  }
  {
    std::unique_lock<std::mutex> lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(seconds),
                          [&] { return left == 0; })) {
      for (int r = 0; r < ranks; ++r) {
        std::fprintf(stderr, "rank %d: %s\n", r,
                     done[static_cast<size_t>(r)] ? "done" : "STUCK");
      }
      if (dump) std::fprintf(stderr, "%s\n", dump().c_str());
      std::_Exit(99);
    }
  }
  for (std::thread& thread : threads) thread.join();
}

bool RunToEnd(Work& work) {
  for (;;) {
    const Poll poll = work.Step();
    if (poll != Poll::kPending) return poll == Poll::kReady;
    sched_yield();
  }
}

}  // namespace axon
