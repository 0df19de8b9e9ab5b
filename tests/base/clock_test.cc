// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

namespace axon {
namespace {

TEST(ClockTest, GoesForwardInNanoseconds) {
  const int64_t before = NowNs();
  usleep(2'000);
  EXPECT_GE(NowNs() - before, 2'000'000);
}

TEST(DeadlineTest, ByDefaultNeverComes) {
  for (const Deadline& never :
       {Deadline(), Deadline::In(0), Deadline::In(-5)}) {
    EXPECT_TRUE(never.infinite());
    EXPECT_FALSE(never.passed());
    EXPECT_EQ(never.LeftMs(1'234), 1'234);
  }
}

TEST(DeadlineTest, CountsDownAndPasses) {
  const Deadline deadline = Deadline::In(20);
  EXPECT_FALSE(deadline.infinite());
  EXPECT_LE(deadline.LeftMs(1'000), 20);
  EXPECT_EQ(Deadline::In(60'000).LeftMs(7), 7);
  usleep(21'000);
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.LeftMs(1'000), 0);
}

// A limit may come from another process.
TEST(DeadlineTest, BeyondTheEndOfTimeNeverComes) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t ms : {kMost, kMost / 1'000'000, kMost / 1'000'000 + 1}) {
    EXPECT_TRUE(Deadline::In(ms).infinite()) << ms;
    EXPECT_TRUE(Deadline::In(1).WithGrace(ms).infinite()) << ms;
  }
  // The last that comes.
  const int64_t late = (kMost - NowNs()) / 1'000'000 - 1'000;
  const Deadline last = Deadline::In(late);
  EXPECT_FALSE(last.passed());
  EXPECT_GT(last.LeftMs(kMost), late - 1'000);
  EXPECT_LE(last.LeftMs(kMost), late);
  EXPECT_FALSE(Deadline::In(late).WithGrace(2'000).passed());
}

// A poll with the answer must not end before the deadline, in a busy loop.
TEST(DeadlineTest, RoundsUpWhatIsLeft) {
  const Deadline deadline = Deadline::In(30);
  while (!deadline.passed()) {
    const int64_t left = deadline.LeftMs(1'000);
    if (left == 0) {
      EXPECT_TRUE(deadline.passed());
    }
    usleep(300);
  }
}

}  // namespace
}  // namespace axon
