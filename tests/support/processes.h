// SPDX-License-Identifier: Apache-2.0
// Runs a function in several forked processes or threads, each with a number,
// under a time limit, and collects the texts that they return. Used by one
// thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace axon {

using RankFunction = std::function<std::string(int rank)>;

// One text per process; "signal 9", "exit 1" or "timeout" (then it was killed)
// where a process did not get to return one. `started` gets the pids early.
std::vector<std::string> RunProcesses(
    int count, int64_t limit_ms, const RankFunction& function,
    const std::function<void(const std::vector<pid_t>&)>& started = nullptr);

std::vector<std::string> RunThreads(int count, const RankFunction& function);

// How many descriptors and threads this process has.
int CountFds();
int CountThreads();

}  // namespace axon
