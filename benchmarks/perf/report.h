// SPDX-License-Identifier: Apache-2.0
// What a perf program tells: the table of nccl-tests on standard output, line
// by line as rows are added, and its JSON file at the end. Owned and used by
// rank 0's thread; the other ranks have none.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perf/measure.h"
#include "perf/options.h"
#include "perf/program.h"

namespace axon::perf {

struct Row {
  size_t bytes;
  size_t count;
  std::string type;
  std::string op;
  int root;
  Timing out_of_place;
  Timing in_place;
};

class Report {
 public:
  // `ranks` describes each rank as "<pid> <host> <cpu>".
  Report(const Options& options, const Program& program,
         const std::vector<std::string>& ranks);

  void Add(const Row& row);
  // Prints the last lines and writes the file. `error` is empty, or why there
  // are no more rows. Throws Failure if the file cannot be written.
  void Finish(const std::string& error);

 private:
  void PrintHeader(const std::vector<std::string>& ranks) const;
  nlohmann::ordered_json Summary(const Row& row) const;

  const Options& options_;
  const Program& program_;
  nlohmann::ordered_json json_;
  double bus_bw_sum_ = 0;
  int bus_bw_count_ = 0;
  int64_t wrong_ = 0;
};

}  // namespace axon::perf
