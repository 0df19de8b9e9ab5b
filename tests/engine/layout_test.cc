// SPDX-License-Identifier: Apache-2.0
#include "engine/layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace axon {
namespace {

TEST(LayoutTest, SlicesCoverABlockOnce) {
  for (const size_t length : {0, 1, 7, 16, 100, 1000, 4097, 100003}) {
    for (const size_t element : {1, 2, 4, 8}) {
      for (const int cuts : {1, 2, 3, 8, 17}) {
        for (const size_t most : {1, 64, 100, 4096, 32768}) {
          const Cutting cutting = Cut(length, element, cuts, most);
          ASSERT_GE(cutting.slices, 1);
          size_t next = 0;
          for (int s = 0; s < cutting.slices; ++s) {
            for (int i = 0; i < cuts; ++i) {
              const Segment segment = SegmentOf({length}, cutting, 0, s, i, 1);
              ASSERT_EQ(segment.offset, next);
              ASSERT_LE(segment.count, cutting.piece);
              next += segment.count;
            }
          }
          ASSERT_EQ(next, length)
              << element << " bytes, " << cuts << " cuts, " << most;
        }
      }
    }
  }
}

TEST(LayoutTest, PiecesFitAndAreWholeLinesWhereThereAreMany) {
  for (const size_t length : {1000, 100000, 12345678}) {
    for (const size_t most : {64, 640, 32768}) {
      const Cutting cutting = Cut(length, 4, 3, most);
      EXPECT_LE(cutting.piece_bytes(), most);
      if (cutting.slices > 1) {
        EXPECT_EQ(cutting.piece_bytes() % kCacheLine, 0U);
      }
    }
  }
}

TEST(LayoutTest, ShortVectorsAreSharedByAll) {
  // 6 elements for 4 ranks: pieces of two, not one of a line and three empty.
  const Cutting cutting = Cut(6, 4, 4, 32768);
  EXPECT_EQ(cutting.piece, 2U);
  EXPECT_EQ(cutting.slices, 1);
}

TEST(LayoutTest, LimitBelowALineStillMoves) {
  const Cutting cutting = Cut(1000, 8, 1, 1);
  EXPECT_EQ(cutting.piece, 8U);
  EXPECT_EQ(cutting.slices, 125);
}

TEST(LayoutTest, UnequalBlocks) {
  const std::vector<int64_t> lengths = {5, 0, 100}, offsets = {200, 0, 7};
  const BlockedBuffer buffer{0, lengths.data(), offsets.data()};
  const Cutting cutting = Cut(100, 1, 1, 64);
  ASSERT_EQ(cutting.slices, 2);
  EXPECT_EQ(SegmentOf(buffer, cutting, 0, 0, 0, 1).offset, 200U);
  EXPECT_EQ(SegmentOf(buffer, cutting, 0, 0, 0, 1).count, 5U);
  EXPECT_EQ(SegmentOf(buffer, cutting, 0, 1, 0, 1).count, 0U);
  EXPECT_EQ(SegmentOf(buffer, cutting, 1, 0, 0, 1).count, 0U);
  EXPECT_EQ(SegmentOf(buffer, cutting, 2, 1, 0, 1).offset, 71U);
  EXPECT_EQ(SegmentOf(buffer, cutting, 2, 1, 0, 1).count, 36U);
}

}  // namespace
}  // namespace axon
