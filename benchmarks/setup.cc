// SPDX-License-Identifier: Apache-2.0
// What communicators cost before their first call: the time until all ranks
// have one, that of a split, and the memory of each, private (anonymous pages
// of the process) and shared (what its arena really takes). Rank 0 prints the
// slowest rank's times and the largest rank's bytes.
//
//   setup --ranks 16 [--splits 100] [--json FILE]
#include <dirent.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perf/failure.h"
#include "perf/launch.h"

namespace axon::perf {
namespace {

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double PrivateKiB() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("RssAnon:", 0) == 0) return std::stod(line.substr(8));
  }
  throw Failure("/proc/self/status has no RssAnon");
}

// Blocks of this process's memory files.
double SharedKiB() {
  double bytes = 0;
  DIR* const fds = opendir("/proc/self/fd");
  if (fds == nullptr) throw Failure("cannot read /proc/self/fd");
  while (const dirent* entry = readdir(fds)) {
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    char target[64] = "";
    struct stat info {};
    if (readlink(path.c_str(), target, sizeof(target) - 1) > 0 &&
        std::strncmp(target, "/memfd:axon", 11) == 0 &&
        stat(path.c_str(), &info) == 0) {
      bytes += static_cast<double>(info.st_blocks) * 512;
    }
  }
  closedir(fds);
  return bytes / 1024;
}

// Freed memory that the allocator keeps is given back first, or what is made
// next would seem to cost nothing.
struct Memory {
  Memory() {
    malloc_trim(0);
    private_kib = PrivateKiB();
    shared_kib = SharedKiB();
  }
  double private_kib, shared_kib;
};

class Setup {
 public:
  Setup(const World& world, int splits) : world_(world), splits_(splits) {}

  nlohmann::json Run() {
    Alone();
    const Memory before;
    const double begin = Now();
    Require(
        axonCommInitRank(&comm_, world_.processes, world_.id, world_.process),
        nullptr, "axonCommInitRank");
    Note("init_ms", (Now() - begin) * 1e3);
    Note("init_private_kib", PrivateKiB() - before.private_kib);
    Note("init_shared_kib", SharedKiB() - before.shared_kib);
    Barrier();
    Split();
    Require(axonCommDestroy(comm_), nullptr, "axonCommDestroy");
    return result_;
  }

 private:
  // The first communicator pays for what all share; others are measured.
  void Alone() {
    constexpr int kMeasured = 100;
    std::vector<axonComm_t> comms(1 + kMeasured);
    Memory before;
    for (size_t i = 0; i < comms.size(); ++i) {
      if (i == 1) before = Memory();
      Require(axonCommInitAll(&comms[i], 1, nullptr), nullptr,
              "axonCommInitAll");
    }
    alone_kib_ =
        (PrivateKiB() - before.private_kib + SharedKiB() - before.shared_kib) /
        kMeasured;
    for (axonComm_t comm : comms) {
      Require(axonCommDestroy(comm), nullptr, "axonCommDestroy");
    }
  }

  void Barrier() { Require(axonBarrier(comm_, nullptr), comm_, "axonBarrier"); }

  // The largest of all ranks' values.
  void Note(const char* name, double value) {
    Require(
        axonAllReduce(&value, &value, 1, axonFloat64, axonMax, comm_, nullptr),
        comm_, "axonAllReduce");
    result_[name] = value;
  }

  void Split() {
    Note("one_rank_kib", alone_kib_);
    std::vector<axonComm_t> made(static_cast<size_t>(splits_));
    Barrier();
    const Memory before;
    double slowest = 0;
    const double begin = Now();
    for (axonComm_t& comm : made) {
      const double split = Now();
      Require(axonCommSplit(comm_, 0, world_.process, &comm, nullptr), comm_,
              "axonCommSplit");
      slowest = std::max(slowest, Now() - split);
    }
    const double mean = (Now() - begin) / splits_;
    const double private_kib = PrivateKiB() - before.private_kib;
    const double shared_kib = SharedKiB() - before.shared_kib;
    Note("split_ms", mean * 1e3);
    Note("slowest_split_ms", slowest * 1e3);
    Note("splits_private_kib", private_kib);
    Note("splits_shared_kib", shared_kib);
    for (axonComm_t comm : made) {
      Require(axonCommDestroy(comm), nullptr, "axonCommDestroy");
    }
  }

  const World& world_;
  const int splits_;
  double alone_kib_ = 0;
  axonComm_t comm_ = nullptr;
  nlohmann::json result_;
};

void Print(const nlohmann::json& result, int ranks, int splits,
           const std::string& file) {
  std::printf("%d ranks\n", ranks);
  const auto line = [&](const char* what, const char* name) {
    std::printf("%-52s %10.2f\n", what, result.at(name).get<double>());
  };
  line("init of all, ms", "init_ms");
  line("  private memory, KiB a rank", "init_private_kib");
  line("  shared memory, KiB a rank", "init_shared_kib");
  line("a communicator of one rank, KiB", "one_rank_kib");
  std::printf("%d splits of all\n", splits);
  line("  one, ms, mean", "split_ms");
  line("  one, ms, slowest", "slowest_split_ms");
  line("  private memory of all, KiB a rank", "splits_private_kib");
  line("  shared memory of all, KiB a rank", "splits_shared_kib");
  if (!file.empty()) std::ofstream(file) << result.dump(1) << "\n";
}

int Main(int argc, char** argv) {
  CLI::App app("What communicators cost before their first call");
  Options options;
  int splits = 100;
  std::string file;
  app.add_option("--ranks", options.ranks, "processes to start")
      ->required()
      ->check(CLI::Range(1, 256));
  app.add_option("--splits", splits, "communicators to split off")
      ->check(CLI::Range(1, 10'000));
  app.add_option("--json", file, "also write the numbers there");
  CLI11_PARSE(app, argc, argv);
  options.pin = false;
  return Launch(options, [&](const World& world) {
    const nlohmann::json result = Setup(world, splits).Run();
    if (world.process == 0) Print(result, options.ranks, splits, file);
    return 0;
  });
}

}  // namespace
}  // namespace axon::perf

int main(int argc, char** argv) { return axon::perf::Main(argc, argv); }
