// SPDX-License-Identifier: Apache-2.0
// What the processes of a test share besides the library: ids to meet by, marks
// that they reach, the time of a blow; and how results become texts that the
// test's own process can look at. Made before the processes are forked, used by
// any of them at any time.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "axon/axon.h"

namespace axon {

class Stage {
 public:
  Stage();
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // The `number`-th id: made by the process that says so, awaited by others.
  axonUniqueId Id(bool make, int number = 0);

  // Adds one to a counter; waits until it is at least `count`. A wait that
  // takes too long ends the process with exit status 3.
  void Mark(int mark);
  void Await(int mark, int count, int64_t limit_ms = 30'000);
  int marked(int mark) const;

  // Sends a signal and notes the time, from which others count.
  void Strike(pid_t pid, int signal);
  int64_t MsSinceStrike() const;

 private:
  static constexpr int kIds = 320;
  static constexpr int kMarks = 16;
  struct Shared;
  Shared* shared_;
};

// "ok", or the name of the result and the text of the error.
std::string Outcome(axonResult_t result, axonComm_t comm = nullptr);

// One rank's communicator for as long as it lives.
class Member {
 public:
  // Of `ranks` ranks that meet by the `number`-th id, which rank 0 makes. Named
  // "test". Ends the process with the error's text if it cannot be made.
  Member(Stage& stage, int rank, int ranks, int timeout_ms = 30'000,
         int number = 0);
  ~Member() { Destroy(); }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  axonComm_t comm() const { return comm_; }
  void Destroy();
  // The communicator is gone already.
  void Forget() { comm_ = nullptr; }

  // A sum of `count` doubles in `buffer`, in place, of values that name rank
  // and place; "ok" if right, "wrong data" or the error.
  std::string Sum(double* buffer, size_t count, axonStream_t stream = nullptr);
  // Sums until one fails; its outcome.
  std::string SumUntilFailure(double* buffer, size_t count);
  std::string Barrier();
  // What axonCommGetAsyncError says.
  std::string Query();
  std::string Dump();

 private:
  axonComm_t comm_ = nullptr;
};

// How large messages are, and where they lie: in one call line, in an outbox,
// or in memory that peers map.
enum class Path { kLine, kStaged, kMapped };
const char* PathName(Path path);

// A buffer of doubles on a path.
class Doubles {
 public:
  Doubles(Path path, size_t count);
  explicit Doubles(Path path) : Doubles(path, DefaultCount(path)) {}
  ~Doubles();
  Doubles(const Doubles&) = delete;
  Doubles& operator=(const Doubles&) = delete;

  static size_t DefaultCount(Path path) {
    return path == Path::kLine ? 4 : size_t{1} << 19;
  }
  double* data() const { return data_; }
  size_t count() const { return count_; }

 private:
  Path path_;
  size_t count_;
  double* data_ = nullptr;
};

void SleepMs(int64_t ms);
// "rank 2 (host h, pid 17)".
std::string RankText(int rank, pid_t pid);

}  // namespace axon
