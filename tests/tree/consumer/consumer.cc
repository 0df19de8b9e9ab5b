// SPDX-License-Identifier: Apache-2.0
// A C++ program: two ranks in two threads sum their numbers.
#include <axon/axon.h>

#include <array>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

constexpr int kRanks = 2;
constexpr size_t kCount = 100'000;

bool SumIsRight(axonComm_t comm, int rank) {
  std::vector<double> numbers(kCount, rank + 1.0);
  const axonResult_t result =
      axonAllReduce(numbers.data(), numbers.data(), kCount, axonFloat64,
                    axonSum, comm, nullptr);
  if (result != axonSuccess) {
    std::fprintf(stderr, "rank %d: %s\n", rank, axonGetLastError(comm));
    return false;
  }
  for (double number : numbers) {
    if (number != 3.0) {
      std::fprintf(stderr, "rank %d: got %g, not 3\n", rank, number);
      return false;
    }
  }
  return true;
}

}  // namespace

int main() {
  std::array<axonComm_t, kRanks> comms{};
  if (axonCommInitAll(comms.data(), kRanks, nullptr) != axonSuccess) {
    std::fprintf(stderr, "init: %s\n", axonGetLastError(nullptr));
    return 1;
  }
  std::array<bool, kRanks> right{};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back(
        [&, rank] { right[rank] = SumIsRight(comms[rank], rank); });
  }
  for (std::thread& thread : threads) thread.join();
  for (axonComm_t comm : comms) {
    if (axonCommDestroy(comm) != axonSuccess) return 1;
  }
  if (!right[0] || !right[1]) return 1;
  std::puts("axon works from C++");
  return 0;
}
