// SPDX-License-Identifier: Apache-2.0
#include "transport/doorbell.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace axon {

void Ring(Doorbell& doorbell) {
  doorbell.rings.fetch_add(1, std::memory_order_seq_cst);
  if (doorbell.sleepers.load(std::memory_order_seq_cst) == 0) return;
  // Not FUTEX_PRIVATE: the word is shared between processes.
  syscall(SYS_futex, &doorbell.rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SleepOn(Doorbell& doorbell, uint32_t seen, int64_t timeout_us) {
  timespec timeout{timeout_us / 1'000'000, timeout_us % 1'000'000 * 1000};
  // seq_cst on both sides: either the ringer sees this sleeper, or the kernel
  // sees the ringer's new number and does not let it sleep.
  doorbell.sleepers.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &doorbell.rings, FUTEX_WAIT, seen, &timeout, nullptr, 0);
  doorbell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

bool HeavyFence() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void RegisterForHeavyFence() {
  syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

}  // namespace axon
