// SPDX-License-Identifier: Apache-2.0
#include "schedule/collective.h"

#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace axon {
namespace {

// What each collective does to real numbers, by its definition in the C API,
// against what Holds() states.
struct Numbers {
  std::vector<std::vector<int>> in;   // [rank][block]
  std::vector<std::vector<int>> out;  // the statement
};

Numbers Stated(Collective collective, int ranks, int root) {
  Numbers numbers;
  for (int me = 0; me < ranks; ++me) {
    const Place place{ranks, me, root};
    numbers.in.emplace_back();
    for (int b = 0; b < InBlocks(collective, place); ++b) {
      numbers.in.back().push_back(100 * me + b);
    }
  }
  for (int me = 0; me < ranks; ++me) {
    const Place place{ranks, me, root};
    numbers.out.emplace_back();
    for (int b = 0; b < OutBlocks(collective, place); ++b) {
      const Statement must = Holds(collective, place, b);
      int value = 0;
      for (int r = 0; r < ranks; ++r) {
        if (must.source == r || must.source == kAllRanks) {
          value += numbers.in[r].at(must.source_block);
        }
      }
      numbers.out.back().push_back(value);
    }
  }
  return numbers;
}

using Blocks = std::vector<std::vector<int>>;

TEST(CollectiveTest, WhatRanksHoldAfterwards) {
  const int root = 1;
  EXPECT_EQ(Stated(Collective::kAllReduce, 3, root).out,
            (Blocks{{300}, {300}, {300}}));
  EXPECT_EQ(Stated(Collective::kBroadcast, 3, root).out,
            (Blocks{{100}, {100}, {100}}));
  EXPECT_EQ(Stated(Collective::kReduce, 3, root).out, (Blocks{{}, {300}, {}}));
  EXPECT_EQ(Stated(Collective::kAllGather, 3, root).out,
            (Blocks{{0, 100, 200}, {0, 100, 200}, {0, 100, 200}}));
  EXPECT_EQ(Stated(Collective::kReduceScatter, 3, root).out,
            (Blocks{{300}, {303}, {306}}));
  EXPECT_EQ(Stated(Collective::kAlltoAll, 3, root).out,
            (Blocks{{0, 100, 200}, {1, 101, 201}, {2, 102, 202}}));
  EXPECT_EQ(Stated(Collective::kGather, 3, root).out,
            (Blocks{{}, {0, 100, 200}, {}}));
  EXPECT_EQ(Stated(Collective::kScatter, 3, root).out,
            (Blocks{{100}, {101}, {102}}));
  EXPECT_EQ(Stated(Collective::kBarrier, 3, root).out, (Blocks{{}, {}, {}}));
}

TEST(CollectiveTest, OnlyTheRootHasTheRootsBuffer) {
  const Place root{4, 2, 2};
  const Place other{4, 3, 2};
  EXPECT_EQ(InBlocks(Collective::kBroadcast, root), 1);
  EXPECT_EQ(InBlocks(Collective::kBroadcast, other), 0);
  EXPECT_EQ(InBlocks(Collective::kScatter, root), 4);
  EXPECT_EQ(InBlocks(Collective::kScatter, other), 0);
  EXPECT_EQ(OutBlocks(Collective::kReduce, root), 1);
  EXPECT_EQ(OutBlocks(Collective::kReduce, other), 0);
  EXPECT_EQ(OutBlocks(Collective::kGather, root), 4);
  EXPECT_EQ(OutBlocks(Collective::kGather, other), 0);
}

// As axon.h says for each call.
TEST(CollectiveTest, InPlace) {
  const auto how = [](Collective collective, int me, int root) {
    const InPlace in_place = InPlaceOf(collective, {4, me, root});
    return std::tuple(in_place.possible, in_place.in_at, in_place.out_at);
  };
  const std::tuple<bool, int, int> kNever(false, 0, 0);
  EXPECT_EQ(how(Collective::kAllReduce, 3, 0), std::tuple(true, 0, 0));
  EXPECT_EQ(how(Collective::kBroadcast, 3, 3), std::tuple(true, 0, 0));
  EXPECT_EQ(how(Collective::kBroadcast, 2, 3), kNever);
  EXPECT_EQ(how(Collective::kReduce, 3, 3), std::tuple(true, 0, 0));
  EXPECT_EQ(how(Collective::kReduce, 2, 3), kNever);
  EXPECT_EQ(how(Collective::kAllGather, 3, 0), std::tuple(true, 3, 0));
  EXPECT_EQ(how(Collective::kReduceScatter, 3, 0), std::tuple(true, 0, 3));
  EXPECT_EQ(how(Collective::kAlltoAll, 3, 0), kNever);
  EXPECT_EQ(how(Collective::kGather, 3, 3), std::tuple(true, 3, 0));
  EXPECT_EQ(how(Collective::kGather, 2, 3), kNever);
  EXPECT_EQ(how(Collective::kScatter, 3, 3), std::tuple(true, 0, 3));
  EXPECT_EQ(how(Collective::kScatter, 2, 3), kNever);
  EXPECT_EQ(how(Collective::kBarrier, 0, 0), kNever);
}

TEST(CollectiveTest, Kinds) {
  std::string rooted;
  std::string reductions;
  for (int c = 0; c < kNumCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (IsRooted(collective)) rooted += Name(collective) + std::string(" ");
    if (IsReduction(collective)) {
      reductions += Name(collective) + std::string(" ");
    }
  }
  EXPECT_EQ(rooted, "broadcast reduce gather scatter ");
  EXPECT_EQ(reductions, "all_reduce reduce reduce_scatter ");
}

}  // namespace
}  // namespace axon
