// SPDX-License-Identifier: Apache-2.0
// What a process sleeps on when it waits for peers: a futex word in its arena.
// Any thread of any process that maps the arena may ring it.
#pragma once

#include <atomic>
#include <cstdint>

namespace axon {

struct alignas(64) Doorbell {
  // Rung so many times. Writers: peers (seq_cst add); readers: sleepers.
  std::atomic<uint32_t> rings;
  // Threads of the process that sleep or are about to.
  std::atomic<uint32_t> sleepers;
};

// Wakes every thread that sleeps on the doorbell.
void Ring(Doorbell& doorbell);

// Sleeps until the doorbell has been rung since `seen` was read from it, or
// `timeout_us` has passed, or a signal came.
void SleepOn(Doorbell& doorbell, uint32_t seen, int64_t timeout_us);

// Orders the caller's earlier stores before its later loads as if every thread
// of every Axon process had fenced too, so that publishers need no fence
// (membarrier). False if the kernel cannot: then a sleeper may miss a ring and
// must not sleep long.
bool HeavyFence();
// Once per process before the first HeavyFence of any peer.
void RegisterForHeavyFence();

}  // namespace axon
