// SPDX-License-Identifier: Apache-2.0
#include "tests/api/ranks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/support/processes.h"
#include "tests/support/threads.h"

namespace axon {
namespace {

// How a started process knows that it is one: which of the test's calls of
// InProcesses it serves, and its number.
constexpr char kCallVariable[] = "TEST_PROCESSES_CALL";
constexpr char kNumberVariable[] = "TEST_PROCESSES_NUMBER";
constexpr char kIdVariable[] = "TEST_UNIQUE_ID";

std::string TestName() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  return absl::StrCat(info->test_suite_name(), ".", info->name());
}

// Calls of InProcesses so far in this test.
int NextCall() {
  static std::string test;
  static int calls = 0;
  if (test != TestName()) calls = 0;
  test = TestName();
  return calls++;
}

std::string Restart(int call, int number,
                    const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    putenv(strdup(setting.c_str()));
  }
  setenv(kCallVariable, absl::StrCat(call).c_str(), 1);
  setenv(kNumberVariable, absl::StrCat(number).c_str(), 1);
  // Only failures are of interest.
  const std::string filter = absl::StrCat("--gtest_filter=", TestName());
  execl("/proc/self/exe", "api_tests", filter.c_str(), "--gtest_brief=1",
        "--gtest_also_run_disabled_tests", nullptr);
  return "the test program does not start";
}

std::string DumpAll(const std::vector<axonComm_t>& comms) {
  std::string all;
  for (axonComm_t comm : comms) {
    char text[4096];
    if (axonCommDump(comm, text, sizeof(text), nullptr) == axonSuccess) {
      absl::StrAppend(&all, text);
    }
  }
  return all;
}

}  // namespace

Comms::Comms(int ranks) : comms_(static_cast<size_t>(ranks)) {
  const axonResult_t made = axonCommInitAll(comms_.data(), ranks, nullptr);
  if (made == axonSuccess) return;
  ADD_FAILURE() << LastError();
  std::_Exit(98);
}

Comms::~Comms() {
  for (axonComm_t comm : comms_) EXPECT_AXON_OK(axonCommDestroy(comm));
}

void OnThreads(int ranks, const RankBody& body, int seconds) {
  const Comms comms(ranks);
  std::vector<axonComm_t> list;
  for (int r = 0; r < ranks; ++r) list.push_back(comms[r]);
  RunRanks(
      ranks, [&](int rank) { body(comms[rank], rank); }, seconds,
      [&] { return DumpAll(list); });
}

void InProcesses(int processes,
                 const std::function<std::vector<std::string>(int)>& settings,
                 const std::function<void(int)>& body, int seconds) {
  const int call = NextCall();
  if (const char* mine = getenv(kCallVariable)) {
    if (atoi(mine) != call) return;
    body(atoi(getenv(kNumberVariable)));
    std::fflush(nullptr);
    std::_Exit(testing::Test::HasFailure() ? 1 : 0);
  }
  const std::vector<std::string> texts = RunProcesses(
      processes, int64_t{seconds} * 1000,
      [&](int number) { return Restart(call, number, settings(number)); });
  for (int i = 0; i < processes; ++i) {
    EXPECT_EQ(texts[static_cast<size_t>(i)], "") << "process " << i;
  }
}

void OnProcesses(int ranks, const std::vector<std::string>& settings,
                 const RankBody& body, int seconds) {
  std::vector<std::string> all = settings;
  axonUniqueId id;
  if (getenv(kCallVariable) == nullptr) {
    ASSERT_AXON_OK(axonGetUniqueId(&id));
    all.push_back(absl::StrCat(
        kIdVariable, "=",
        absl::BytesToHexString({id.internal, sizeof(id.internal)})));
  }
  InProcesses(
      ranks, [&](int) { return all; },
      [&](int rank) {
        const std::string bytes = absl::HexStringToBytes(getenv(kIdVariable));
        std::memcpy(id.internal, bytes.data(), sizeof(id.internal));
        axonComm_t comm = nullptr;
        ASSERT_AXON_OK(axonCommInitRank(&comm, ranks, id, rank));
        body(comm, rank);
        EXPECT_AXON_OK(axonCommDestroy(comm));
      },
      seconds);
}

int SizeOf(axonComm_t comm) {
  int size = -1;
  EXPECT_AXON_OK(axonCommCount(comm, &size));
  return size;
}

int RankOf(axonComm_t comm) {
  int rank = -1;
  EXPECT_AXON_OK(axonCommUserRank(comm, &rank));
  return rank;
}

std::string Dump(axonComm_t comm) {
  size_t needed = 0;
  EXPECT_AXON_OK(axonCommDump(comm, nullptr, 0, &needed));
  std::string text(needed + 100, '?');
  EXPECT_AXON_OK(axonCommDump(comm, text.data(), text.size(), nullptr));
  return text.c_str();
}

int32_t SumOf(int32_t value, axonComm_t comm) {
  EXPECT_AXON_OK(
      axonAllReduce(&value, &value, 1, axonInt32, axonSum, comm, nullptr));
  return value;
}

std::string LastError() { return axonGetLastError(nullptr); }

bool LongTests() {
  const char* value = getenv("AXON_LONG_TESTS");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

}  // namespace axon
