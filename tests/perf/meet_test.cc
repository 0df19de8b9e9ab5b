// SPDX-License-Identifier: Apache-2.0
#include "perf/meet.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "perf/failure.h"

namespace axon::perf {
namespace {

using testing::HasSubstr;

constexpr int kSeconds = 20;

axonUniqueId IdOf(int number) {
  axonUniqueId id{};
  std::snprintf(id.internal, sizeof(id.internal), "id %d", number);
  id.internal[sizeof(id.internal) - 1] = static_cast<char>(number);
  return id;
}

bool Same(const axonUniqueId& a, const axonUniqueId& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

// A name that no other run of this test has.
std::string Key(const std::string& name) {
  return name + "-" + std::to_string(getpid());
}

// Children that exit with 0 if `body` returns true.
std::vector<pid_t> Fork(int count, const std::function<bool(int)>& body) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t pid = fork();
    if (pid == 0) std::_Exit(body(i) ? 0 : 1);
    children.push_back(pid);
  }
  return children;
}

void ExpectSuccess(const std::vector<pid_t>& children) {
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

// A job may run several programs: one name, one id after the other.
TEST(MeetTest, EveryProcessGetsTheIdOfItsRound) {
  const std::string key = Key("rounds");
  constexpr int kProcesses = 4, kRounds = 20;
  ExpectSuccess(Fork(kProcesses, [&](int process) {
    for (int round = 0; round < kRounds; ++round) {
      axonUniqueId id = process == 0 ? IdOf(round) : axonUniqueId{};
      ShareUniqueId(key, process, kProcesses, kSeconds, &id);
      if (!Same(id, IdOf(round))) return false;
    }
    return true;
  }));
}

TEST(MeetTest, WaitsForALateFirstProcess) {
  const std::string key = Key("late");
  const std::vector<pid_t> children = Fork(2, [&](int process) {
    axonUniqueId id{};
    ShareUniqueId(key, process + 1, 3, kSeconds, &id);
    return Same(id, IdOf(7));
  });
  usleep(200000);
  axonUniqueId id = IdOf(7);
  ShareUniqueId(key, 0, 3, kSeconds, &id);
  ExpectSuccess(children);
}

TEST(MeetTest, FailsInTimeWithoutTheFirstProcess) {
  axonUniqueId id{};
  const auto start = std::chrono::steady_clock::now();
  try {
    ShareUniqueId(Key("nobody"), 1, 2, /*seconds=*/1, &id);
    FAIL() << "met nobody";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("found no process 0"));
    EXPECT_THAT(failure.what(), HasSubstr("AXON_COMM_ID"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(MeetTest, FailsInTimeWithoutTheOthers) {
  axonUniqueId id = IdOf(1);
  try {
    ShareUniqueId(Key("alone"), 0, 3, /*seconds=*/1, &id);
    FAIL() << "met nobody";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("only 0 of 2"));
  }
}

TEST(MeetTest, TheJobIsTheLaunchersOrTheStarter) {
  unsetenv("PMIX_NAMESPACE");
  unsetenv("OMPI_MCA_ess_base_jobid");
  unsetenv("SLURM_JOB_ID");
  const std::string own = JobKey();
  EXPECT_THAT(own, HasSubstr("process-"));
  ExpectSuccess(Fork(1, [&](int) {
    if (JobKey() == own) return false;  // has another parent
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_STEP_ID", "3", 1);
    if (JobKey() != "slurm-12.3") return false;
    setenv("PMIX_NAMESPACE", "prterun-1@1", 1);
    return JobKey() == "prterun-1@1";
  }));
}

}  // namespace
}  // namespace axon::perf
