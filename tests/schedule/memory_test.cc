// SPDX-License-Identifier: Apache-2.0
#include "schedule/memory.h"

#include "gtest/gtest.h"

namespace axon {
namespace {

Schedule TwoCuts() {
  Schedule s;
  s.cuts = 2;
  s.scratch_pieces = 3;
  return s;
}

TEST(MemoryTest, InHoldsContributionsAndTheRestNothing) {
  const Expressions e(3, 6);
  Memory memory(Collective::kAllGather, {3, 1, 0}, TwoCuts(), false, e);
  EXPECT_EQ(memory.At({Buffer::kIn, 0, 2})[1].value, e.Contribution(1, 1));
  for (const Cell& cell : memory.At({Buffer::kOut, 0, 6})) {
    EXPECT_EQ(cell.value, Expressions::kUndefined);
  }
  EXPECT_EQ(memory.At({Buffer::kScratch, 0, 3})[2].value,
            Expressions::kUndefined);
}

TEST(MemoryTest, KnowsItsSizes) {
  const Expressions e(3, 6);
  const Memory memory(Collective::kAllGather, {3, 1, 0}, TwoCuts(), false, e);
  EXPECT_TRUE(memory.Contains({Buffer::kIn, 0, 2}));
  EXPECT_FALSE(memory.Contains({Buffer::kIn, 1, 2}));
  EXPECT_TRUE(memory.Contains({Buffer::kOut, 5, 1}));
  EXPECT_FALSE(memory.Contains({Buffer::kOut, 6, 1}));
  EXPECT_TRUE(memory.Contains({Buffer::kOut, 6, 0}));
  EXPECT_FALSE(memory.Contains({Buffer::kScratch, 65535, 65535}));
}

TEST(MemoryTest, InPlaceSharesCells) {
  const Expressions e(3, 6);
  Memory gather(Collective::kAllGather, {3, 1, 0}, TwoCuts(), true, e);
  EXPECT_EQ(gather.At({Buffer::kIn, 0, 2}).data(),
            gather.At({Buffer::kOut, 2, 2}).data());
  Memory scatter(Collective::kReduceScatter, {3, 2, 0}, TwoCuts(), true, e);
  EXPECT_EQ(scatter.At({Buffer::kOut, 0, 2}).data(),
            scatter.At({Buffer::kIn, 4, 2}).data());
  Memory never(Collective::kAlltoAll, {3, 2, 0}, TwoCuts(), true, e);
  EXPECT_NE(never.At({Buffer::kOut, 0, 1}).data(),
            never.At({Buffer::kIn, 0, 1}).data());
}

}  // namespace
}  // namespace axon
