// SPDX-License-Identifier: Apache-2.0
#include "memory_left.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace torch_axon {
namespace {

// As a container sees its own group. What it has read from files and not used
// lately counts as used, and can be had.
struct Group {
  const char* limit;
  const char* use;
  const char* stat;
  const char* reclaimable;
};
constexpr Group kGroups[] = {
    {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
     "/sys/fs/cgroup/memory.stat", "inactive_file"},
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
     "/sys/fs/cgroup/memory/memory.usage_in_bytes",
     "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"}};

// The number that a file holds; none if it says "max" or cannot be read.
std::optional<size_t> NumberIn(const char* path) {
  std::ifstream file(path);
  size_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// The number behind `name` in a file of names and numbers.
std::optional<size_t> NumberOf(const char* path, std::string_view name) {
  std::ifstream file(path);
  std::string found, rest;
  size_t number = 0;
  while (file >> found >> number && std::getline(file, rest)) {
    if (found == name) return number;
  }
  return std::nullopt;
}

}  // namespace

size_t MemoryLeft() {
  const auto machine = NumberOf("/proc/meminfo", "MemAvailable:");
  size_t left = machine ? *machine << 10 : SIZE_MAX;
  for (const Group& group : kGroups) {
    const auto limit = NumberIn(group.limit);
    const auto use = NumberIn(group.use);
    if (!limit || !use) continue;
    const size_t gross =
        *use -
        std::min(*use, NumberOf(group.stat, group.reclaimable).value_or(0));
    left = std::min(left, *limit - std::min(*limit, gross));
  }
  return left;
}

}  // namespace torch_axon
