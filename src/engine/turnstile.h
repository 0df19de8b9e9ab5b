// SPDX-License-Identifier: Apache-2.0
// Keeps calls in the order in which they were made, whichever thread runs them:
// a call takes a ticket when it is made and runs when its ticket comes up.
#pragma once

#include <atomic>
#include <cstdint>

namespace axon {

class Turnstile {
 public:
  // By the thread that makes calls, the only writer of `next_`.
  uint64_t Take() {
    const uint64_t ticket = next_.load(std::memory_order_relaxed);
    next_.store(ticket + 1, std::memory_order_relaxed);
    return ticket;
  }
  // acquire: all that the call before did is visible.
  bool MyTurn(uint64_t ticket) const {
    return serving_.load(std::memory_order_acquire) == ticket;
  }
  // By the thread that ran the call whose turn it was, for now the only writer
  // of `serving_`; release, see MyTurn.
  void Done() {
    serving_.store(serving_.load(std::memory_order_relaxed) + 1,
                   std::memory_order_release);
    // Whether somebody waits is looked up after this store; the processor's
    // order is made by the waiting thread's HeavyFence().
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  bool idle() const {
    return serving_.load(std::memory_order_acquire) ==
           next_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> serving_{0};
};

}  // namespace axon
