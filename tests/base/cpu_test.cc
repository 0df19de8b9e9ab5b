// SPDX-License-Identifier: Apache-2.0
#include "base/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace axon {
namespace {

using ::testing::ElementsAre;

TEST(AllowedCpusTest, AreAscendingAndAsManyAsTheKernelSays) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  const std::vector<int> cpus = AllowedCpus();
  EXPECT_EQ(cpus.size(), static_cast<size_t>(CPU_COUNT(&set)));
  for (size_t i = 0; i < cpus.size(); ++i) {
    EXPECT_TRUE(CPU_ISSET(cpus[i], &set)) << cpus[i];
    if (i > 0) {
      EXPECT_LT(cpus[i - 1], cpus[i]);
    }
  }
}

TEST(AllowedCpusTest, FollowTheMask) {
  const int last = AllowedCpus().back();
  // The mask is the thread's, so that a thread of its own can try one.
  std::vector<int> seen;
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    if (sched_setaffinity(0, sizeof(set), &set) == 0) seen = AllowedCpus();
  }).join();
  EXPECT_THAT(seen, ElementsAre(last));
}

}  // namespace
}  // namespace axon
