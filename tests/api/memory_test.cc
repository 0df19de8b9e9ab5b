// SPDX-License-Identifier: Apache-2.0
// axonMemAlloc and registration; what communicators take of the shared memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "axon/axon.h"
#include "tests/api/ranks.h"

namespace axon {
namespace {

TEST(MemoryTest, IsPageAlignedAndZeroedEachTime) {
  for (const size_t size : {size_t{1}, size_t{4096}, size_t{1'000'001}}) {
    for (int i = 0; i < 3; ++i) {
      void* memory = nullptr;
      ASSERT_AXON_OK(axonMemAlloc(&memory, size));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 4096, 0u);
      const std::vector<char> zeros(size);
      EXPECT_EQ(std::memcmp(memory, zeros.data(), size), 0);
      std::memset(memory, 0x77, size);
      EXPECT_AXON_OK(axonMemFree(memory));
    }
  }
}

TEST(MemoryTest, WrongArgumentsAreRefused) {
  EXPECT_AXON_ERROR(axonMemAlloc(nullptr, 1), axonInvalidArgument,
                    "ptr is NULL");
  EXPECT_AXON_OK(axonMemFree(nullptr));
  int local = 0;
  EXPECT_AXON_ERROR(axonMemFree(&local), axonInvalidArgument,
                    "not allocated by axonMemAlloc");
  void* memory = nullptr;
  ASSERT_AXON_OK(axonMemAlloc(&memory, 10'000));
  EXPECT_AXON_ERROR(axonMemFree(static_cast<char*>(memory) + 4096),
                    axonInvalidArgument, "not allocated");
  EXPECT_AXON_OK(axonMemFree(memory));
  EXPECT_AXON_ERROR(axonMemFree(memory), axonInvalidArgument, "is freed");
}

TEST(MemoryTest, TooMuchIsAnErrorThatTellsTheRemedy) {
  InProcesses(
      1, [](int) { return std::vector<std::string>{"AXON_ARENA_SIZE=64M"}; },
      [](int) {
        void* memory = nullptr;
        EXPECT_AXON_ERROR(axonMemAlloc(&memory, 65 << 20), axonSystemError,
                          "no 66560 KiB left in the shared-memory arena of 64 "
                          "MiB (raise AXON_ARENA_SIZE)");
        EXPECT_AXON_ERROR(
            axonMemAlloc(&memory, std::numeric_limits<size_t>::max()),
            axonSystemError, "18446744073709551615");
        // What is there can still be had.
        ASSERT_AXON_OK(axonMemAlloc(&memory, 32 << 20));
        EXPECT_AXON_OK(axonMemFree(memory));
      });
}

TEST(RegisterTest, TakesAnyMemory) {
  const Comms comms(1);
  std::vector<char> ordinary(1000);
  void* mapped = nullptr;
  ASSERT_AXON_OK(axonMemAlloc(&mapped, 1000));
  for (void* memory : {static_cast<void*>(ordinary.data()), mapped}) {
    void* handle = nullptr;
    EXPECT_AXON_OK(axonCommRegister(comms[0], memory, 1000, &handle));
    EXPECT_AXON_OK(axonCommDeregister(comms[0], handle));
  }
  void* handle = nullptr;
  EXPECT_AXON_ERROR(axonCommRegister(comms[0], nullptr, 1, &handle),
                    axonInvalidArgument, "must not be NULL");
  EXPECT_AXON_ERROR(axonCommRegister(comms[0], mapped, 1, nullptr),
                    axonInvalidArgument, "must not be NULL");
  EXPECT_AXON_OK(axonMemFree(mapped));
}

// KiB of shared memory in use by this process.
int64_t SharedKiB() {
  FILE* file = std::fopen("/proc/self/status", "r");
  int64_t kib = -1;
  char line[256];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::strncmp(line, "RssShmem:", 9) == 0) kib = std::atoll(line + 9);
  }
  std::fclose(file);
  return kib;
}

// A split costs its blocks: some pages a rank, no mapping of its own.
TEST(SplitMemoryTest, AHundredSplitsAreSmallAndGoAway) {
  OnProcesses(2, {}, [](axonComm_t comm, int rank) {
    const int64_t before = SharedKiB();
    std::vector<axonComm_t> splits(100);
    for (axonComm_t& split : splits) {
      ASSERT_AXON_OK(axonCommSplit(comm, 0, rank, &split, nullptr));
      int32_t value = 1;
      ASSERT_AXON_OK(
          axonAllReduce(&value, &value, 1, axonInt32, axonSum, split, nullptr));
      ASSERT_EQ(value, 2);
    }
    // Mine and, as far as I looked at them, my peer's.
    EXPECT_LT(SharedKiB() - before, 100 * 2 * 32);
    for (axonComm_t split : splits) EXPECT_AXON_OK(axonCommDestroy(split));
    // All have left all of them; the next call of this kind sweeps up.
    ASSERT_AXON_OK(axonBarrier(comm, nullptr));
    void* memory = nullptr;
    ASSERT_AXON_OK(axonMemAlloc(&memory, 1));
    ASSERT_AXON_OK(axonMemFree(memory));
    ASSERT_AXON_OK(axonBarrier(comm, nullptr));
    EXPECT_LT(SharedKiB() - before, 512);
  });
}

}  // namespace
}  // namespace axon
