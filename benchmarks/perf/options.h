// SPDX-License-Identifier: Apache-2.0
// The command line of a perf program: the flags of nccl-tests with their
// letters and defaults, and our own. Parsed once, before any process or thread
// is started; a constant plain value afterwards.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "perf/number.h"
#include "perf/program.h"

namespace axon::perf {

struct Options {
  // Sizes in bytes: min, then + step or * factor, up to max.
  size_t min_bytes = 32 << 20;
  size_t max_bytes = 32 << 20;
  size_t step_bytes = 1 << 20;
  double step_factor = 1;

  int iterations = 20;
  int warmup = 1;
  int aggregated = 1;  // calls in one group
  int cycles = 1;      // 0: for ever
  int checks = 1;      // checked calls per row; 0: none

  std::vector<Type> types;
  std::vector<Operator> operators;  // one kNoOperator if nothing is reduced
  int root = 0;                     // -1: each in turn

  enum class Blocking { kNone, kBarrierEach, kWaitEach, kBarrierAfter };
  Blocking blocking = Blocking::kNone;
  bool null_stream = true;
  bool cpu_time = false;
  int timeout_seconds = 0;  // 0: the library's default
  enum class Average { kRankZero, kMean, kMin, kMax };
  Average average = Average::kMean;
  std::string json_file;
  bool register_buffers = false;
  bool mapped = false;
  size_t first_element = 0;  // misaligns the buffers
  bool statistics = false;
  int leading_samples = 0;  // left out of the statistics
  bool touch = false;
  std::string algorithm;

  int threads = 1;  // ranks of a process
  int ranks = 0;    // processes to start; 0: none, or a launcher has
  bool pin = true;

  std::vector<std::string> arguments;  // as given, for the report
};

// Parses; prints help or an error and returns false with *exit_code if the
// program is to end.
bool ParseOptions(int argc, char** argv, const Program& program,
                  Options* options, int* exit_code);

// The sizes in bytes that the options ask for, ascending.
std::vector<size_t> Sizes(const Options& options);

}  // namespace axon::perf
