// SPDX-License-Identifier: Apache-2.0
// What an 8-byte all-reduce costs outside of waiting, in instructions. Run
// under callgrind, which counts them exactly and alike every time:
//
//   valgrind --tool=callgrind --separate-threads=yes
//            --toggle-collect=axonAllReduce
//            --toggle-collect='axon::Board::Wake*'
//            --callgrind-out-file=calls build/release/bin/instructions 200
//   grep totals calls-01
//
// Two ranks are threads of this process. The second waits in every call,
// asleep, before the first one enters it; so the first never waits, and what is
// counted for its thread, times the number of calls, is the whole call without
// the waking of the other, which the second toggle takes out. (The first call
// of all costs some thousand instructions more.)
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "axon/axon.h"

namespace {

// More than the longest spinning of a waiting rank, under valgrind too.
constexpr useconds_t kUntilAsleepUs = 30'000;

void Require(axonResult_t result) {
  if (result == axonSuccess) return;
  std::fprintf(stderr, "%s\n", axonGetLastError(nullptr));
  std::exit(1);
}

void Sum(axonComm_t comm) {
  const float in[2] = {1, 2};
  float out[2] = {0, 0};
  Require(axonAllReduce(in, out, 2, axonFloat32, axonSum, comm, nullptr));
  if (out[0] == 2 && out[1] == 4) return;
  std::fprintf(stderr, "wrong result\n");
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc == 2 ? std::atoi(argv[1]) : 0;
  if (calls <= 0) {
    std::fprintf(stderr, "usage: instructions CALLS\n");
    return 2;
  }
  axonComm_t comms[2];
  Require(axonCommInitAll(comms, 2, nullptr));
  std::atomic<int> begun{0};
  std::thread second([&] {
    for (int i = 1; i <= calls; ++i) {
      while (begun.load() < i) usleep(100);
      Sum(comms[1]);
    }
  });
  for (int i = 1; i <= calls; ++i) {
    begun = i;
    usleep(kUntilAsleepUs);
    Sum(comms[0]);
  }
  second.join();
  for (axonComm_t comm : comms) Require(axonCommDestroy(comm));
}
