// SPDX-License-Identifier: Apache-2.0
#include "perf/driver.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "perf/failure.h"
#include "perf/launch.h"
#include "perf/measure.h"
#include "perf/options.h"
#include "perf/rank.h"
#include "perf/report.h"

namespace axon::perf {

namespace {

// "<pid> <host> <cpu>"
std::string Description() {
  char host[65] = "";
  gethostname(host, sizeof(host) - 1);
  return std::to_string(getpid()) + " " + host + " " +
         std::to_string(sched_getcpu());
}

// The larger buffer of the largest call.
size_t BufferBytes(const Options& options, const Program& program, int ranks) {
  size_t bytes = 0;
  for (const Type& type : options.types) {
    const Shape shape =
        program.shape(options.max_bytes / type.size, type.size, ranks);
    const size_t elements =
        std::max(shape.send, shape.recv) + options.first_element;
    bytes = std::max(bytes, elements * type.size);
  }
  return bytes;
}

std::vector<int> Roots(const Options& options, const Program& program,
                       int ranks) {
  if (!program.rooted) return {-1};
  if (options.root >= ranks) {
    throw Failure("-r " + std::to_string(options.root) + " is no rank of " +
                  std::to_string(ranks));
  }
  if (options.root >= 0) return {options.root};
  std::vector<int> roots;
  for (int root = 0; root < ranks; ++root) roots.push_back(root);
  return roots;
}

// All sizes of one type, operator and root. Returns whether this rank has seen
// only right results.
bool RunSizes(const Options& options, const std::string& type,
              const std::string& op, int root, Measurement* measurement,
              Report* report) {
  measurement->WarmUp(options.max_bytes);
  measurement->WarmUp(options.min_bytes);
  for (const size_t bytes : Sizes(options)) {
    Row row;
    row.type = type;
    row.op = op;
    row.root = root;
    row.out_of_place = measurement->Run(bytes, /*in_place=*/false);
    row.in_place = measurement->Run(bytes, /*in_place=*/true);
    row.bytes = measurement->bytes();
    row.count = measurement->count();
    if (report != nullptr) report->Add(row);
  }
  return measurement->wrong_here() == 0;
}

// One cycle of the table.
bool RunTable(const Options& options, const Program& program, Rank* rank,
              const Buffer& send, const Buffer& recv, Report* report) {
  bool right = true;
  for (const Type& type : options.types) {
    for (const Operator& op : options.operators) {
      if (op.bitwise() && type.is_float()) continue;
      for (const int root : Roots(options, program, rank->size())) {
        Measurement measurement(options, program, type, op, root, rank, send,
                                recv);
        right &=
            RunSizes(options, type.name, op.name, root, &measurement, report);
      }
    }
  }
  return right;
}

void RunRank(const Options& options, const Program& program, const World& world,
             int thread, bool* right) {
  Rank rank(options, world, thread);
  const std::vector<std::string> ranks = rank.Gather(Description());
  std::unique_ptr<Report> report;
  if (rank.rank() == 0) {
    report = std::make_unique<Report>(options, program, ranks);
  }
  try {
    const size_t bytes = BufferBytes(options, program, rank.size());
    const Buffer send(options, rank, bytes);
    const Buffer recv(options, rank, bytes);
    for (int i = 0; options.cycles == 0 || i < options.cycles; ++i) {
      *right &= RunTable(options, program, &rank, send, recv, report.get());
    }
  } catch (const Failure& failure) {
    if (report != nullptr) report->Finish(failure.what());
    throw;
  }
  if (report != nullptr) report->Finish("");
}

// The exit code of one rank.
int RunThread(const Options& options, const Program& program,
              const World& world, int thread) {
  try {
    bool right = true;
    RunRank(options, program, world, thread, &right);
    return right ? 0 : 1;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "# rank %d: %s\n",
                 world.process * options.threads + thread, failure.what());
    return 1;
  }
}

int RunProcess(const Options& options, const Program& program,
               const World& world) {
  if (options.threads == 1) return RunThread(options, program, world, 0);
  std::vector<int> codes(options.threads);
  std::vector<std::thread> threads;
  for (int i = 0; i < options.threads; ++i) {
    threads.emplace_back(
        [&, i] { codes[i] = RunThread(options, program, world, i); });
  }
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(codes.begin(), codes.end());
}

// AXON_ALGO names collectives as NCCL_ALGO does: "allreduce:ring".
void ChooseAlgorithm(const Options& options, const Program& program) {
  if (options.algorithm.empty()) return;
  std::string collective = program.name;
  std::erase(collective, '_');
  setenv("AXON_ALGO", (collective + ":" + options.algorithm).c_str(), 1);
}

}  // namespace

int PerfMain(int argc, char** argv, const Program& program) {
  Options options;
  int exit_code = 0;
  if (!ParseOptions(argc, argv, program, &options, &exit_code)) {
    return exit_code;
  }
  ChooseAlgorithm(options, program);
  return Launch(options, [&](const World& world) {
    return RunProcess(options, program, world);
  });
}

}  // namespace axon::perf
