// SPDX-License-Identifier: Apache-2.0
// kill -9 at any moment leaves no file, no segment and no process behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/api/stage.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

enum Marks { kReady };

std::set<std::string> FilesIn(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

// A directory of its own in shared memory, removed with all that is in it.
class OwnDirectory {
 public:
  OwnDirectory() {
    char name[] = "/dev/shm/leftovers-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~OwnDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Processes of a group: rank 0 leads it, so that children of children count.
std::vector<std::string> MembersOfSession(pid_t session) {
  std::vector<std::string> members;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream stat(entry.path() / "stat");
    std::string text;
    if (!std::getline(stat, text)) continue;
    // pid (name) state ppid pgrp session
    char state = 0;
    int parent = 0, group = 0, its_session = 0;
    const size_t after_name = text.rfind(')');
    if (after_name != std::string::npos &&
        sscanf(text.c_str() + after_name + 1, " %c %d %d %d", &state, &parent,
               &group, &its_session) == 4 &&
        its_session == session && state != 'Z') {
      members.push_back(text.substr(0, after_name + 1));
    }
  }
  return members;
}

class LeftoversTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(, LeftoversTest, testing::Values("memfd", "file"),
                         [](const auto& info) { return info.param; });

TEST_P(LeftoversTest, AreNoneAfterAKillOfAll) {
  const OwnDirectory directory;
  std::set<pid_t> all;
  for (int i = 0; i < 12; ++i) {
    Stage stage;
    std::vector<pid_t> pids;
    const auto texts = RunProcesses(
        3, 60'000,
        [&](int rank) -> std::string {
          setenv("AXON_SHM", GetParam(), 1);
          setenv("AXON_SHM_DIR", directory.path().c_str(), 1);
          // A session of its own shows what it starts.
          setsid();
          stage.Mark(kReady);
          Member member(stage, rank, 3);
          const Doubles mine(Path::kMapped);
          axonComm_t half = nullptr;
          axonCommSplit(member.comm(), rank % 2, 0, &half, nullptr);
          member.SumUntilFailure(mine.data(), mine.count());
          // Another was killed first; this one's turn comes.
          SleepMs(30'000);
          return "not killed";
        },
        [&](const std::vector<pid_t>& started) {
          pids = started;
          stage.Await(kReady, 3);
          // While they make their arenas, meet, and work.
          usleep(static_cast<useconds_t>(i < 8 ? i * 500 : i * 5000));
          // At one moment for all: none sees another's death.
          for (const pid_t pid : pids) kill(pid, SIGSTOP);
          for (const pid_t pid : pids) kill(pid, SIGKILL);
        });
    EXPECT_THAT(texts, testing::Each("signal 9"));
    EXPECT_THAT(FilesIn(directory.path()), testing::IsEmpty())
        << "killed at moment " << i;
    for (const pid_t pid : pids) {
      EXPECT_THAT(MembersOfSession(pid), testing::IsEmpty());
    }
    all.insert(pids.begin(), pids.end());
  }
  // Others may use the same place: names begin with their maker.
  for (const std::string& name : FilesIn("/dev/shm")) {
    for (const pid_t pid : all) {
      EXPECT_FALSE(absl::StartsWith(name, absl::StrCat("axon-", pid, "-")))
          << name;
    }
  }
}

// No name is left even while the processes live.
TEST_P(LeftoversTest, HaveNoNameWhileInUse) {
  const OwnDirectory directory;
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    setenv("AXON_SHM", GetParam(), 1);
    setenv("AXON_SHM_DIR", directory.path().c_str(), 1);
    Member member(stage, rank, 2);
    const Doubles mine(Path::kMapped);
    const std::string text = member.Sum(mine.data(), mine.count());
    if (text != "ok") return text;
    const auto names = FilesIn(directory.path());
    return names.empty() ? "none" : *names.begin();
  });
  EXPECT_THAT(texts, testing::Each("none"));
}

}  // namespace
}  // namespace axon
