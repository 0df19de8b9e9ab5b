// SPDX-License-Identifier: Apache-2.0
// n ranks as threads of the test, with a deadline that prints where everyone
// is.
#pragma once

#include <functional>
#include <string>

#include "engine/call.h"

namespace axon {

// Runs body(rank) on `ranks` threads and joins them. When `seconds` have passed
// it prints `dump()` and ends the process: a hang is a failed test.
void RunRanks(int ranks, const std::function<void(int)>& body, int seconds = 60,
              const std::function<std::string()>& dump = nullptr);

// Steps `work` to its end, yielding; false if it failed.
bool RunToEnd(Work& work);

}  // namespace axon
