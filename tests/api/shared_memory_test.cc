// SPDX-License-Identifier: Apache-2.0
// Little or no shared memory: what fits works, and what does not is an error
// that says what is short and what to do. Never a bus error.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/api/stage.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kNotAllowed = "not allowed to mount";

void WriteTo(const char* path, const std::string& text) {
  std::ofstream(path) << text;
}

// Puts a /dev/shm of its own before this process: `options` of tmpfs. False if
// this user may not.
bool OwnDevShm(const char* options, bool read_only) {
  const uid_t user = geteuid();
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    WriteTo("/proc/self/setgroups", "deny");
    WriteTo("/proc/self/uid_map", absl::StrCat("0 ", user, " 1"));
  }
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("shm", "/dev/shm", "tmpfs", read_only ? MS_RDONLY : 0,
               options) == 0;
}

// The outcome of making a communicator on this rank.
std::string Join(Stage& stage, int rank, int ranks, axonComm_t* comm) {
  const axonUniqueId id = stage.Id(rank == 0);
  return Outcome(axonCommInitRank(comm, ranks, id, rank));
}

// Makes a communicator, sums `count` doubles in private memory; the first
// error.
std::string JoinAndSum(Stage& stage, int rank, int ranks, size_t count) {
  axonComm_t comm = nullptr;
  std::string text = Join(stage, rank, ranks, &comm);
  if (text != "ok") return text;
  std::vector<double> values(count, 1.0);
  text = Outcome(axonAllReduce(values.data(), values.data(), count, axonFloat64,
                               axonSum, comm, nullptr),
                 comm);
  if (text == "ok" && values[count - 1] != ranks) text = "wrong data";
  axonCommDestroy(comm);
  return text;
}

struct Shortage {
  const char* name;
  const char* options;
  bool read_only;
};

class SharedMemoryTest : public testing::Test {
 protected:
  // `body` on two ranks, each with such a /dev/shm and AXON_SHM as given.
  static std::vector<std::string> With(
      const Shortage& shortage, const char* shm,
      const std::function<std::string(Stage&, int)>& body) {
    Stage stage;
    return RunProcesses(2, 60'000, [&](int rank) -> std::string {
      if (!OwnDevShm(shortage.options, shortage.read_only)) return kNotAllowed;
      setenv("AXON_SHM", shm, 1);
      setenv("AXON_INIT_TIMEOUT", "10000", 1);
      return body(stage, rank);
    });
  }
};

#define SKIP_IF_NOT_ALLOWED(texts)                                   \
  if (texts[0] == kNotAllowed) {                                     \
    GTEST_SKIP() << "this user may not mount a /dev/shm of its own"; \
  }

constexpr Shortage kSmall{"64M", "size=64m", false};
constexpr Shortage kTiny{"1M", "size=1m", false};
constexpr Shortage kReadOnly{"read_only", "size=1m", true};

// Memory files need no /dev/shm.
TEST_F(SharedMemoryTest, MemoryFilesDoNotCare) {
  for (const char* shm : {"auto", "memfd"}) {
    for (const Shortage& shortage : {kSmall, kTiny, kReadOnly}) {
      const auto texts = With(shortage, shm, [](Stage& stage, int rank) {
        return JoinAndSum(stage, rank, 2, size_t{4} << 20);
      });
      SKIP_IF_NOT_ALLOWED(texts);
      EXPECT_THAT(texts, Each("ok")) << shortage.name << " " << shm;
    }
  }
}

TEST_F(SharedMemoryTest, SixtyFourMegabytesHoldAFileOfPrivateCalls) {
  const auto texts = With(kSmall, "file", [](Stage& stage, int rank) {
    return JoinAndSum(stage, rank, 2, size_t{4} << 20);
  });
  SKIP_IF_NOT_ALLOWED(texts);
  EXPECT_THAT(texts, Each("ok"));
}

TEST_F(SharedMemoryTest, AnAllocationThatIsTooLargeSaysWhatIsShort) {
  const auto texts =
      With(kSmall, "file", [](Stage& stage, int rank) -> std::string {
        void* memory = nullptr;
        const std::string large =
            Outcome(axonMemAlloc(&memory, size_t{200} << 20));
        if (memory != nullptr) return "memory in spite of the error";
        // Nothing was taken: what fits still does.
        const axonResult_t small = axonMemAlloc(&memory, size_t{20} << 20);
        if (small != axonSuccess) return Outcome(small);
        std::memset(memory, 1, size_t{20} << 20);
        axonMemFree(memory);
        const std::string sum = JoinAndSum(stage, rank, 2, size_t{1} << 20);
        return sum == "ok" ? large : sum;
      });
  SKIP_IF_NOT_ALLOWED(texts);
  EXPECT_THAT(
      texts,
      Each(AllOf(StartsWith("axonSystemError: reserve 204800 KiB of "
                            "shared memory in /dev/shm"),
                 HasSubstr("of 65536 KiB are free"), HasSubstr("--shm-size"),
                 HasSubstr("No space left on device"))));
}

// The outbox does not fit: an error on both ranks, at the call that needs it.
TEST_F(SharedMemoryTest, OneMegabyteIsTooLittleForAnOutbox) {
  const auto texts = With(kTiny, "file", [](Stage& stage, int rank) {
    return JoinAndSum(stage, rank, 2, size_t{1} << 20);
  });
  SKIP_IF_NOT_ALLOWED(texts);
  EXPECT_THAT(
      texts,
      Each(AllOf(StartsWith("axonSystemError: reserve 2048 KiB of "
                            "shared memory in /dev/shm"),
                 HasSubstr("of 1024 KiB are free"), HasSubstr("--shm-size"),
                 HasSubstr("AXON_OUTBOX_SIZE"))));
}

TEST_F(SharedMemoryTest, OneMegabyteIsEnoughForCallsOnLines) {
  const auto texts = With(kTiny, "file", [](Stage& stage, int rank) {
    return JoinAndSum(stage, rank, 2, 4);
  });
  SKIP_IF_NOT_ALLOWED(texts);
  EXPECT_THAT(texts, Each("ok"));
}

TEST_F(SharedMemoryTest, ReadOnlyIsAnErrorThatSaysWhatToDo) {
  const auto texts = With(kReadOnly, "file", [](Stage&, int) {
    axonUniqueId id;
    return Outcome(axonGetUniqueId(&id));
  });
  SKIP_IF_NOT_ALLOWED(texts);
  EXPECT_THAT(texts,
              Each(AllOf(StartsWith("axonSystemError: create a shared-memory "
                                    "file in /dev/shm as user "),
                         HasSubstr("AXON_SHM_DIR"), HasSubstr("AXON_SHM=memfd"),
                         HasSubstr("Read-only file system"))));
}

// A small file of one rank is an error for the other as well, which has enough.
TEST_F(SharedMemoryTest, OneRanksShortageIsToldToAll) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    if (!OwnDevShm(rank == 0 ? "size=64m" : "size=1m", false)) {
      return kNotAllowed;
    }
    setenv("AXON_SHM", "file", 1);
    return JoinAndSum(stage, rank, 2, size_t{1} << 20);
  });
  SKIP_IF_NOT_ALLOWED(texts);
  EXPECT_THAT(texts[1], StartsWith("axonSystemError: reserve 2048 KiB"));
  EXPECT_THAT(texts[0], AllOf(StartsWith("axonSystemError: reserve 2048 KiB"),
                              HasSubstr("[found by rank 1 ")));
}

TEST(ArenaSizeTest, TooSmallAnArenaSaysSo) {
  const auto texts = RunProcesses(1, 60'000, [](int) {
    setenv("AXON_ARENA_SIZE", "8M", 1);
    void* memory = nullptr;
    return Outcome(axonMemAlloc(&memory, size_t{9} << 20));
  });
  EXPECT_THAT(texts[0], AllOf(StartsWith("axonSystemError: no 9216 KiB left in "
                                         "the shared-memory arena of 8 MiB"),
                              HasSubstr("AXON_ARENA_SIZE")));
}

}  // namespace
}  // namespace axon
