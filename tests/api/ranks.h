// SPDX-License-Identifier: Apache-2.0
// The ranks of a communicator for tests of the C API: as threads of the test,
// or as processes of their own. Processes are started anew (not only forked),
// so each reads the settings that it is given and none inherits the library's
// state. Used by one test at a time; a hang ends the program with the positions
// of all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "axon/axon.h"

namespace axon {

using RankBody = std::function<void(axonComm_t comm, int rank)>;

// body(comm, rank) on a thread for each rank of a new communicator.
void OnThreads(int ranks, const RankBody& body, int seconds = 60);
// The same with a process for each rank. `settings`: "NAME=value" for all.
// Failures of expectations in a process are failures of the test.
void OnProcesses(int ranks, const std::vector<std::string>& settings,
                 const RankBody& body, int seconds = 60);
// body(i) in `processes` processes, without any communicator. settings(i): the
// environment of process i.
void InProcesses(int processes,
                 const std::function<std::vector<std::string>(int)>& settings,
                 const std::function<void(int)>& body, int seconds = 60);

// Several communicators over the same ranks, all driven by one thread: rank r
// of a new communicator is comms[r].
class Comms {
 public:
  explicit Comms(int ranks);
  ~Comms();
  Comms(const Comms&) = delete;
  Comms& operator=(const Comms&) = delete;
  axonComm_t operator[](int rank) const {
    return comms_[static_cast<size_t>(rank)];
  }
  int size() const { return static_cast<int>(comms_.size()); }

 private:
  std::vector<axonComm_t> comms_;
};

// What the queries answer; failures of the calls are failures of the test.
int SizeOf(axonComm_t comm);
int RankOf(axonComm_t comm);
std::string Dump(axonComm_t comm);
// The members agree on who is in: the sum of `value` over them.
int32_t SumOf(int32_t value, axonComm_t comm);

// The text of this thread's last error.
std::string LastError();

// AXON_LONG_TESTS=1: everything instead of samples.
bool LongTests();

}  // namespace axon

// The call succeeds; else its error is the text of the failure.
#define EXPECT_AXON_OK(call) EXPECT_EQ((call), axonSuccess) << axon::LastError()
#define ASSERT_AXON_OK(call) ASSERT_EQ((call), axonSuccess) << axon::LastError()
// The call fails with this result and a text that contains `part`.
#define EXPECT_AXON_ERROR(call, result, part) \
  EXPECT_EQ((call), result);                  \
  EXPECT_THAT(axon::LastError(), ::testing::HasSubstr(part))
