// SPDX-License-Identifier: Apache-2.0
#include "tests/api/stage.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"

namespace axon {
namespace {

constexpr const char* kResults[] = {
    "ok",
    "axonUnhandledCudaError",
    "axonSystemError",
    "axonInternalError",
    "axonInvalidArgument",
    "axonInvalidUsage",
    "axonRemoteError",
    "axonInProgress",
    "axonTimeout",
};

// The test sees the status and the text on the standard error.
[[noreturn]] void End(const std::string& text) {
  std::fprintf(stderr, "process %d ends: %s\n", getpid(), text.c_str());
  _exit(3);
}

}  // namespace

// Every word: seq_cst, since nothing here is worth a thought about orders.
struct Stage::Shared {
  std::atomic<bool> id_made[kIds];
  axonUniqueId ids[kIds];
  std::atomic<int> marks[kMarks];
  std::atomic<int64_t> struck_ns;
};

Stage::Stage() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) End("no memory for a stage");
  shared_ = new (memory) Shared();
}

Stage::~Stage() { munmap(shared_, sizeof(Shared)); }

axonUniqueId Stage::Id(bool make, int number) {
  if (make) {
    const axonResult_t result = axonGetUniqueId(&shared_->ids[number]);
    if (result != axonSuccess) End(Outcome(result));
    shared_->id_made[number] = true;
  }
  const Deadline deadline = Deadline::In(30'000);
  while (!shared_->id_made[number]) {
    if (deadline.passed()) End(absl::StrCat("nobody made id ", number));
    SleepMs(1);
  }
  return shared_->ids[number];
}

void Stage::Mark(int mark) { ++shared_->marks[mark]; }

void Stage::Await(int mark, int count, int64_t limit_ms) {
  const Deadline deadline = Deadline::In(limit_ms);
  while (marked(mark) < count) {
    if (deadline.passed()) {
      End(absl::StrFormat("mark %d is at %d after %d ms, not at %d", mark,
                          marked(mark), limit_ms, count));
    }
    SleepMs(1);
  }
}

int Stage::marked(int mark) const { return shared_->marks[mark]; }

void Stage::Strike(pid_t pid, int signal) {
  shared_->struck_ns = NowNs();
  kill(pid, signal);
}

int64_t Stage::MsSinceStrike() const {
  return (NowNs() - shared_->struck_ns) / 1'000'000;
}

std::string Outcome(axonResult_t result, axonComm_t comm) {
  if (result == axonSuccess) return "ok";
  return absl::StrCat(kResults[result], ": ", axonGetLastError(comm));
}

Member::Member(Stage& stage, int rank, int ranks, int timeout_ms, int number) {
  axonConfig_t config = AXON_CONFIG_INITIALIZER;
  config.commName = "test";
  const axonResult_t result = axonCommInitRankConfig(
      &comm_, ranks, stage.Id(rank == 0, number), rank, &config);
  if (result != axonSuccess) End(Outcome(result));
  // Creation may take as long as it wants: only calls are hurried.
  axonCommSetTimeout(comm_, timeout_ms);
}

void Member::Destroy() {
  if (comm_ == nullptr) return;
  const axonResult_t result = axonCommDestroy(comm_);
  comm_ = nullptr;
  if (result != axonSuccess) End(Outcome(result));
}

std::string Member::Sum(double* buffer, size_t count, axonStream_t stream) {
  int rank = 0, ranks = 0;
  axonCommUserRank(comm_, &rank);
  axonCommCount(comm_, &ranks);
  const auto value = [](size_t i) { return static_cast<double>(i % 1000); };
  for (size_t i = 0; i < count; ++i) buffer[i] = value(i) + rank;
  axonResult_t result =
      axonAllReduce(buffer, buffer, count, axonFloat64, axonSum, comm_, stream);
  if (result == axonSuccess && stream != nullptr) {
    result = axonStreamSynchronize(stream);
    if (result != axonSuccess) return Outcome(result);
  }
  // Not the communicator's: another thread may have aborted it.
  if (result != axonSuccess) return Outcome(result);
  const double ranks_sum = ranks * (ranks - 1) / 2.0;
  for (size_t i = 0; i < count; ++i) {
    if (buffer[i] != ranks * value(i) + ranks_sum) {
      return absl::StrFormat("wrong data: element %d is %g", i, buffer[i]);
    }
  }
  return "ok";
}

std::string Member::SumUntilFailure(double* buffer, size_t count) {
  std::string outcome = "ok";
  while (outcome == "ok") outcome = Sum(buffer, count);
  return outcome;
}

std::string Member::Barrier() { return Outcome(axonBarrier(comm_, nullptr)); }

std::string Member::Query() {
  axonResult_t error = axonSuccess;
  const axonResult_t result = axonCommGetAsyncError(comm_, &error);
  return Outcome(result != axonSuccess ? result : error, comm_);
}

std::string Member::Dump() {
  size_t needed = 0;
  axonCommDump(comm_, nullptr, 0, &needed);
  std::string text(needed + 1000, '\0');
  const axonResult_t result =
      axonCommDump(comm_, text.data(), text.size(), nullptr);
  if (result != axonSuccess) return Outcome(result, comm_);
  return text.c_str();
}

const char* PathName(Path path) {
  switch (path) {
    case Path::kLine:
      return "line";
    case Path::kStaged:
      return "staged";
    case Path::kMapped:
      return "mapped";
  }
  return "";
}

Doubles::Doubles(Path path, size_t count) : path_(path), count_(count) {
  void* memory = nullptr;
  if (path == Path::kMapped) {
    const axonResult_t result = axonMemAlloc(&memory, count * sizeof(double));
    if (result != axonSuccess) End(Outcome(result));
  } else {
    memory = std::malloc(count * sizeof(double));
  }
  data_ = static_cast<double*>(memory);
}

Doubles::~Doubles() {
  if (path_ == Path::kMapped) {
    axonMemFree(data_);
  } else {
    std::free(data_);
  }
}

void SleepMs(int64_t ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

std::string RankText(int rank, pid_t pid) {
  char host[64] = {};
  gethostname(host, sizeof(host) - 1);
  return absl::StrFormat("rank %d (host %s, pid %d)", rank, host, pid);
}

}  // namespace axon
