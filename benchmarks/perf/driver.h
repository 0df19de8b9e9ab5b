// SPDX-License-Identifier: Apache-2.0
// The common part of all perf programs: options, ranks, the rows of the table
// and the exit code. Called once, by main().
#pragma once

#include "perf/pattern.h"
#include "perf/program.h"

namespace axon::perf {

// 0: all right; 1: wrong results or an error of the library; 2: bad options.
int PerfMain(int argc, char** argv, const Program& program);

}  // namespace axon::perf
