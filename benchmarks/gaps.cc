// SPDX-License-Identifier: Apache-2.0
// What waiting costs: rank 1 comes late to every call by a gap, rank 0 waits
// for it. Printed for each gap: the share of a processor that rank 0 used, and
// how long after rank 1's entry the call took to end on rank 1, median.
//
//   gaps [--seconds 1]
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "perf/failure.h"
#include "perf/launch.h"

namespace axon::perf {
namespace {

constexpr int kGapsUs[] = {0, 100, 2'000, 50'000};

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void Sum(axonComm_t comm, double* value) {
  Require(axonAllReduce(value, value, 1, axonFloat64, axonMax, comm, nullptr),
          comm, "axonAllReduce");
}

struct Cost {
  double share = 0;  // of a processor
  double us = 0;
};

Cost Measure(axonComm_t comm, int rank, int gap_us, double seconds) {
  const int calls =
      std::max(3, static_cast<int>(seconds * 1e6 / std::max(gap_us, 5)));
  std::vector<double> times;
  double value = 0;
  Sum(comm, &value);
  const double began = Now(), used = ProcessorSeconds();
  for (int i = 0; i < calls; ++i) {
    if (rank == 1 && gap_us > 0) usleep(static_cast<useconds_t>(gap_us));
    const double entered = Now();
    Sum(comm, &value);
    times.push_back((Now() - entered) * 1e6);
  }
  Cost cost;
  cost.share = rank == 0 ? (ProcessorSeconds() - used) / (Now() - began) : 0;
  std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
  cost.us = rank == 1 ? times[static_cast<size_t>(calls / 2)] : 0;
  Sum(comm, &cost.share);
  Sum(comm, &cost.us);
  return cost;
}

int Run(const World& world, double seconds) {
  axonComm_t comm = nullptr;
  Require(axonCommInitRank(&comm, world.processes, world.id, world.process),
          nullptr, "axonCommInitRank");
  if (world.process == 0) {
    std::printf("%10s %20s %20s\n", "gap ms", "processor share", "call us");
  }
  for (const int gap_us : kGapsUs) {
    const Cost cost = Measure(comm, world.process, gap_us, seconds);
    if (world.process == 0) {
      std::printf("%10.1f %19.1f%% %20.2f\n", gap_us / 1e3, cost.share * 100,
                  cost.us);
    }
  }
  Require(axonCommDestroy(comm), nullptr, "axonCommDestroy");
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("What a rank that waits for a late one costs");
  double seconds = 1;
  app.add_option("--seconds", seconds, "of each gap")
      ->check(CLI::Range(0.01, 600.0));
  CLI11_PARSE(app, argc, argv);
  Options options;
  options.ranks = 2;
  return Launch(options,
                [&](const World& world) { return Run(world, seconds); });
}

}  // namespace
}  // namespace axon::perf

int main(int argc, char** argv) { return axon::perf::Main(argc, argv); }
