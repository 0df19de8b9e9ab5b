// SPDX-License-Identifier: Apache-2.0
// Communicators made, used and destroyed again and again leave nothing behind:
// descriptors, threads, memory and shared memory stay flat.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/api/stage.h"
#include "tests/support/processes.h"
#include "tests/support/sanitizer.h"

namespace axon {
namespace {

using testing::Each;

// Bytes that this process's arena really takes: blocks of its memory file.
int64_t ArenaBytes() {
  int64_t bytes = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const auto target = std::filesystem::read_symlink(entry.path(), ignored);
    struct stat info {};
    if (absl::StartsWith(target.string(), "/memfd:axon") &&
        stat(entry.path().c_str(), &info) == 0) {
      bytes += int64_t{info.st_blocks} * 512;
    }
  }
  return bytes;
}

int64_t PrivateKiB() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (absl::StartsWith(line, "RssAnon:")) return std::atoll(line.c_str() + 8);
  }
  return -1;
}

// What a process holds.
struct Holdings {
  int fds = CountFds();
  int threads = CountThreads();
  int64_t arena = ArenaBytes();
  int64_t private_kib = PrivateKiB();
};

// What a process holds when all have destroyed what they had so far: what was
// left then is given back when the next communicator is made.
Holdings Settled(Stage& stage, int ranks) {
  enum Marks { kDestroyed, kSwept };
  const int round = stage.marked(kSwept) / ranks + 1;
  stage.Mark(kDestroyed);
  stage.Await(kDestroyed, ranks * round);
  axonComm_t alone = nullptr;
  axonCommInitAll(&alone, 1, nullptr);
  axonCommDestroy(alone);
  const Holdings holdings;
  stage.Mark(kSwept);
  stage.Await(kSwept, ranks * round);
  return holdings;
}

// "flat", or what has grown. Allocators keep some memory for themselves, and a
// server closes its connections a little later.
std::string Compare(const Holdings& before, const Holdings& after) {
  constexpr int64_t kSlackKiB = 2048;
  constexpr int kSlackFds = 6;
  if (after.fds > before.fds + kSlackFds || after.threads > before.threads ||
      after.arena > before.arena ||
      (!kMemoryGrows && after.private_kib > before.private_kib + kSlackKiB)) {
    return absl::StrFormat(
        "descriptors %d to %d, threads %d to %d, arena %d to %d bytes, private "
        "memory %d to %d KiB",
        before.fds, after.fds, before.threads, after.threads, before.arena,
        after.arena, before.private_kib, after.private_kib);
  }
  return "flat";
}

void LimitDescriptors(rlim_t most) {
  const rlimit limit{most, most};
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Creates, uses on all paths, destroys.
std::string Cycle(Stage& stage, int rank, int ranks, int number,
                  const Doubles& staged, const Doubles& mapped) {
  Member member(stage, rank, ranks, 30'000, number);
  for (const Doubles* buffer : {&staged, &mapped}) {
    const std::string text = member.Sum(buffer->data(), buffer->count());
    if (text != "ok") return text;
  }
  double value = rank;
  axonGroupStart();
  axonSend(&value, 1, axonFloat64, (rank + 1) % ranks, member.comm(), nullptr);
  axonRecv(&value, 1, axonFloat64, (rank + ranks - 1) % ranks, member.comm(),
           nullptr);
  const axonResult_t result = axonGroupEnd();
  if (result != axonSuccess) return Outcome(result);
  // All have made their last call; who destroys first does not matter.
  return member.Barrier();
}

TEST(CyclesTest, OfCreationLeaveNothing) {
  constexpr int kRanks = 2, kCycles = 300, kWarm = 20;
  Stage stage;
  const auto texts =
      RunProcesses(kRanks, 120'000, [&](int rank) -> std::string {
        LimitDescriptors(256);
        const Doubles staged(Path::kStaged, 20'000),
            mapped(Path::kMapped, 20'000);
        Holdings warm;
        for (int i = 0; i < kCycles; ++i) {
          if (i == kWarm) warm = Settled(stage, kRanks);
          const std::string text =
              Cycle(stage, rank, kRanks, i, staged, mapped);
          if (text != "ok") return absl::StrCat("cycle ", i, ": ", text);
        }
        return Compare(warm, Settled(stage, kRanks));
      });
  EXPECT_THAT(texts, Each("flat"));
}

TEST(CyclesTest, OfSplittingLeaveNothing) {
  constexpr int kRanks = 3, kCycles = 300, kWarm = 20;
  Stage stage;
  const auto texts =
      RunProcesses(kRanks, 120'000, [&](int rank) -> std::string {
        LimitDescriptors(256);
        Member member(stage, rank, kRanks);
        std::vector<double> values(20'000, 1.0);
        Holdings warm;
        for (int i = 0; i < kCycles; ++i) {
          if (i == kWarm) warm = Settled(stage, kRanks);
          axonComm_t part = nullptr;
          axonResult_t result = axonCommSplit(
              member.comm(), i % 3 == rank ? AXON_SPLIT_NOCOLOR : 0, -rank,
              &part, nullptr);
          if (result == axonSuccess && part != nullptr) {
            result = axonAllReduce(values.data(), values.data(), values.size(),
                                   axonFloat64, axonMax, part, nullptr);
            axonCommDestroy(part);
          }
          if (result != axonSuccess) return Outcome(result);
        }
        return Compare(warm, Settled(stage, kRanks));
      });
  EXPECT_THAT(texts, Each("flat"));
}

TEST(CyclesTest, OfStreamsAndEventsLeaveNothing) {
  const auto texts = RunProcesses(1, 60'000, [](int) -> std::string {
    Stage stage;
    Member member(stage, 0, 1);
    double value = 1;
    Holdings warm;
    for (int i = 0; i < 3000; ++i) {
      if (i == 200) warm = Holdings();
      axonStream_t stream = nullptr;
      axonEvent_t event = nullptr;
      axonStreamCreate(&stream);
      axonEventCreate(&event);
      axonAllReduce(&value, &value, 1, axonFloat64, axonSum, member.comm(),
                    stream);
      axonEventRecord(event, stream);
      axonEventDestroy(event);
      const axonResult_t result = axonStreamDestroy(stream);
      if (result != axonSuccess) return Outcome(result);
    }
    return Compare(warm, Holdings());
  });
  EXPECT_THAT(texts, Each("flat"));
}

}  // namespace
}  // namespace axon
