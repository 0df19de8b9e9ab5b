// SPDX-License-Identifier: Apache-2.0
#include "engine/outbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/bytes.h"

namespace axon {
namespace {

constexpr size_t kLine = kCacheLine;

// What an outbox must do, line by line: who wrote each line last.
class Model {
 public:
  explicit Model(size_t size) : writers_(size / kLine, 0) {}

  // The last call that wrote any of these lines, which are now `call`'s.
  uint64_t Overwrite(uint64_t position, size_t bytes, uint64_t call) {
    uint64_t last = 0;
    const size_t begin = position / kLine;
    const size_t end = (position + bytes + kLine - 1) / kLine;
    EXPECT_LE(end, writers_.size());
    for (size_t i = begin; i < std::min(end, writers_.size()); ++i) {
      last = std::max(last, writers_[i]);
      writers_[i] = call;
    }
    return last;
  }

 private:
  std::vector<uint64_t> writers_;  // by line; 0: nobody
};

struct Sizes {
  size_t outbox;
  size_t most;  // of a call, in lines
};

class OutboxTest : public testing::TestWithParam<Sizes> {};

TEST_P(OutboxTest, NeverGivesWhatMayStillBeRead) {
  const auto [size, most] = GetParam();
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    Outbox outbox(size);
    ASSERT_LE(outbox.size(), size);
    ASSERT_GT(outbox.size() + 16, size);
    Model model(RoundUp(size, kLine));
    uint64_t call = 0;
    uint64_t finished = 0;  // what was waited for stays finished
    for (int i = 0; i < 3000; ++i) {
      // Calls that stage nothing come between, many at times.
      call += 1 + (random() % 4 == 0 ? random() % 20 : 0);
      const size_t total =
          kLine * (1 + random() % (random() % 3 == 0 ? most : 1 + most / 8));
      const uint64_t before = call > 8 ? call - 8 : 0;
      const Outbox::Lease lease = outbox.Take(total, call, before);
      ASSERT_GE(lease.after, before);
      ASSERT_LT(lease.after, call);
      const size_t bytes = std::min(total, outbox.size());
      ASSERT_LE(lease.position + bytes, outbox.size());
      if (total > outbox.size()) {
        ASSERT_EQ(lease.position, 0U);
      }
      finished = std::max(finished, lease.after);
      ASSERT_GE(finished, model.Overwrite(lease.position, bytes, call))
          << "seed " << seed << " call " << call << " total " << total;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, OutboxTest,
    testing::Values(Sizes{256 << 10, 512}, Sizes{256 << 10, 64},
                    Sizes{256 << 10, 4096}, Sizes{256 << 10, 9000},
                    Sizes{16 * kLine, 12}, Sizes{16 * kLine, 40},
                    // Not divisible into zones of whole lines.
                    Sizes{1000, 9}, Sizes{(64 << 10) + 24, 700},
                    Sizes{17 * kLine, 30}));

TEST(OutboxTest, WalksRound) {
  Outbox outbox(16 * kLine);
  EXPECT_EQ(outbox.Take(4 * kLine, 1, 0).position, 0U);
  EXPECT_EQ(outbox.Take(4 * kLine, 2, 0).position, 4 * kLine);
  EXPECT_EQ(outbox.Take(6 * kLine, 3, 0).position, 8 * kLine);
  // Two lines are left: not enough.
  const Outbox::Lease again = outbox.Take(3 * kLine, 4, 0);
  EXPECT_EQ(again.position, 0U);
  EXPECT_EQ(again.after, 1U);
  // Crosses what calls 1 and 2 wrote.
  EXPECT_EQ(outbox.Take(2 * kLine, 5, 0).after, 2U);
}

TEST(OutboxTest, NothingIsWaitedForInTheFirstRound) {
  Outbox outbox(64 * kLine);
  for (uint64_t call = 1; call <= 8; ++call) {
    EXPECT_EQ(outbox.Take(8 * kLine, call, 0).after, 0U);
  }
}

TEST(OutboxTest, EqualCallsWaitForOldOnesOnly) {
  Outbox outbox(256 << 10);
  for (uint64_t call = 1; call <= 1000; ++call) {
    // Seven fit, six whatever the zones.
    const Outbox::Lease lease = outbox.Take(33 << 10, call, 0);
    if (call > 6) {
      EXPECT_LE(lease.after, call - 6);
    }
  }
}

TEST(OutboxTest, AnsweredByBeforeWhereThatIsLater) {
  Outbox outbox(16 * kLine);
  outbox.Take(16 * kLine, 1, 0);
  EXPECT_EQ(outbox.Take(16 * kLine, 20, 12).after, 12U);
}

TEST(OutboxTest, RestsForMoreCallsThan32BitsTellApart) {
  // Half a round of call numbers: in 32 bits the old writer would seem to be in
  // the future, and the call would wait for it for ever.
  for (const uint64_t rest :
       {(uint64_t{1} << 31) + 5, (uint64_t{1} << 32) + 5}) {
    Outbox outbox(16 * kLine);
    outbox.Take(16 * kLine, 3, 0);
    EXPECT_EQ(outbox.Take(kLine, 3 + rest, 3 + rest - 8).after, 3 + rest - 8);
  }
}

TEST(OutboxTest, ALargeCallWaitsForAllBeforeAndThoseAfterForIt) {
  Outbox outbox(16 * kLine);
  outbox.Take(kLine, 1, 0);
  outbox.Take(kLine, 2, 0);
  const Outbox::Lease large = outbox.Take(100 * kLine, 3, 0);
  EXPECT_EQ(large.position, 0U);
  EXPECT_EQ(large.after, 2U);
  const Outbox::Lease small = outbox.Take(kLine, 4, 0);
  EXPECT_EQ(small.position, 0U);
  EXPECT_EQ(small.after, 3U);
}

TEST(SlicesInTest, SideBySideWhereTheyFit) {
  const SlicesIn slices{1000, 100, 10};
  EXPECT_EQ(slices.held(), 10);
  for (int s = 0; s < 10; ++s) {
    EXPECT_EQ(slices.PositionOf(s, 0), static_cast<uint64_t>(s) * 100);
  }
  EXPECT_EQ((SlicesIn{1000, 100, 3}.PositionOf(2, 700)), 900U);
}

TEST(SlicesInTest, RoundAndRoundWhereTheyDoNot) {
  const SlicesIn slices{1000, 300, 7};
  EXPECT_EQ(slices.held(), 3);
  for (int s = 0; s < 7; ++s) {
    // The lease of such a call begins at 0.
    EXPECT_EQ(slices.PositionOf(s, 0), static_cast<uint64_t>(s % 3) * 300);
    EXPECT_LE(slices.PositionOf(s, 0) + 300, 1000U);
  }
}

}  // namespace
}  // namespace axon
