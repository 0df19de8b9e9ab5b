// SPDX-License-Identifier: Apache-2.0
#include "engine/walker.h"

#include <gtest/gtest.h>

#include <vector>

namespace axon {
namespace {

// All elements that a walker passes, in steps of at most `step`.
std::vector<uint8_t> Walked(Walker walker, size_t step) {
  std::vector<uint8_t> seen;
  while (!walker.done()) {
    const size_t n = std::min(step, walker.left());
    for (size_t i = 0; i < n; ++i) {
      seen.push_back(static_cast<uint8_t>(walker.at()[i]));
    }
    walker.Skip(n, 1);
  }
  return seen;
}

std::vector<std::byte> Numbers(size_t n) {
  std::vector<std::byte> numbers;
  for (size_t i = 0; i < n; ++i) numbers.push_back(std::byte(i));
  return numbers;
}

TEST(WalkerTest, SpansThatCrossBlocks) {
  // Three blocks of 10 in pieces of 3, two slices of 2 pieces: slice 0 has
  // elements 0 to 5 of a block, slice 1 has 6 to 9.
  const std::vector<std::byte> data = Numbers(30);
  Cutting cutting;
  cutting.piece = 3;
  cutting.cuts = 2;
  cutting.slices = 2;
  const Span span{Buffer::kIn, 1,
                  4};  // the end of block 0, all of 1, 2's first
  for (const size_t step : {1, 2, 100}) {
    EXPECT_EQ(
        Walked(Walker(data.data(), {10}, cutting, span, 0), step),
        (std::vector<uint8_t>{3, 4, 5, 10, 11, 12, 13, 14, 15, 20, 21, 22}));
    EXPECT_EQ(Walked(Walker(data.data(), {10}, cutting, span, 1), step),
              (std::vector<uint8_t>{9, 16, 17, 18, 19, 26, 27, 28}));
  }
}

TEST(WalkerTest, EmptyBlocksAreSteppedOver) {
  const std::vector<std::byte> data = Numbers(30);
  const std::vector<int64_t> lengths = {2, 0, 0, 3}, offsets = {20, 0, 5, 1};
  Cutting cutting;
  cutting.piece = 4;
  const BlockedBuffer buffer{0, lengths.data(), offsets.data()};
  EXPECT_EQ(
      Walked(Walker(data.data(), buffer, cutting, {Buffer::kOut, 0, 4}, 0),
             100),
      (std::vector<uint8_t>{20, 21, 1, 2, 3}));
}

TEST(WalkerTest, NothingIsDoneAtOnce) {
  Cutting cutting;
  EXPECT_TRUE(Walker(nullptr, {0}, cutting, {Buffer::kIn, 0, 3}, 0).done());
  EXPECT_TRUE(Walker::Packed(nullptr, 0).done());
}

TEST(WalkerTest, PackedMemoryIsOneRun) {
  const std::vector<std::byte> data = Numbers(8);
  Walker walker = Walker::Packed(data.data(), 2);
  EXPECT_EQ(walker.left(), 2U);
  walker.Skip(1, 4);
  EXPECT_EQ(walker.at(), data.data() + 4);
  walker.Skip(1, 4);
  EXPECT_TRUE(walker.done());
  // A message ends where what it is moved to ends.
  EXPECT_GT(Walker::Packed(data.data()).left(), size_t{1} << 60);
}

}  // namespace
}  // namespace axon
