// SPDX-License-Identifier: Apache-2.0
// The processor as waiting code sees it.
#pragma once

#include <cstdint>
#include <vector>

namespace axon {

// Tells the core that this is a spin loop.
inline void CpuPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The CPUs that this process may use, ascending.
std::vector<int> AllowedCpus();

}  // namespace axon
