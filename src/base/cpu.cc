// SPDX-License-Identifier: Apache-2.0
#include "base/cpu.h"

#include <sched.h>
#include <unistd.h>

#include <memory>

namespace axon {

std::vector<int> AllowedCpus() {
  std::vector<int> cpus;
  // Machines with more CPUs than the first guess make the kernel say EINVAL.
  for (int limit = 1024; limit <= 1 << 20; limit *= 4) {
    const size_t size = CPU_ALLOC_SIZE(limit);
    std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(limit), [](cpu_set_t* s) { CPU_FREE(s); });
    CPU_ZERO_S(size, set.get());
    if (sched_getaffinity(0, size, set.get()) != 0) continue;
    for (int i = 0; i < limit; ++i) {
      if (CPU_ISSET_S(i, size, set.get())) cpus.push_back(i);
    }
    return cpus;
  }
  for (int i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); ++i) cpus.push_back(i);
  return cpus;
}

}  // namespace axon
