// SPDX-License-Identifier: Apache-2.0
// Every row of the table is proved for every number of ranks, credits, root and
// order of ranks, in place and not.
#include "schedule/algorithms.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "schedule/check.h"
#include "schedule/collective.h"

namespace axon {
namespace {

std::string RowName(const Algorithm& row) {
  return absl::StrCat(Name(row.collective), "_", row.name);
}

// All roots of few ranks; of many the first, the second and the last.
std::vector<int> Roots(const Algorithm& row, int ranks) {
  if (!IsRooted(row.collective)) return {0};
  if (ranks > 8) return {0, 1, ranks - 1};
  std::vector<int> roots(ranks);
  std::iota(roots.begin(), roots.end(), 0);
  return roots;
}

// All ways in which the row may be run.
std::vector<CheckOptions> Ways(const Algorithm& row) {
  std::vector<CheckOptions> ways;
  for (Sending sending : {Sending::kByReference, Sending::kCopied}) {
    for (bool in_place : {false, true}) {
      if (sending == Sending::kByReference && in_place && row.copy_in_place) {
        continue;
      }
      for (int credits : {1, 2, 0}) {
        ways.push_back(
            {.credits = credits, .in_place = in_place, .sending = sending});
      }
    }
  }
  return ways;
}

int ProveRow(const Algorithm& row, int ranks,
             absl::Span<const int> order = {}) {
  int proved = 0;
  for (int root : Roots(row, ranks)) {
    const Call call = MakeCall(row, ranks, root, order);
    for (const CheckOptions& way : Ways(row)) {
      const absl::Status status = Check(call, way);
      EXPECT_TRUE(status.ok())
          << ranks << " ranks, root " << root << ", credits " << way.credits
          << (way.in_place ? ", in place" : "")
          << (way.sending == Sending::kCopied ? ", copied: " : ": ")
          << status.message();
      ++proved;
    }
  }
  return proved;
}

class AlgorithmsTest : public testing::TestWithParam<Algorithm> {};

TEST_P(AlgorithmsTest, IsProvedForOneTo64Ranks) {
  int proved = 0;
  for (int ranks = 1; ranks <= 64; ++ranks) {
    if (Applies(GetParam(), ranks)) proved += ProveRow(GetParam(), ranks);
    if (HasFailure()) return;
  }
  RecordProperty("proved", proved);
  EXPECT_GE(proved, GetParam().power_of_two_only ? 7 * 9 : 64 * 9);
}

TEST_P(AlgorithmsTest, IsProvedForMoreRanks) {
  if (std::getenv("AXON_LONG_TESTS") == nullptr) {
    GTEST_SKIP() << "AXON_LONG_TESTS is not set";
  }
  std::vector<int> many = {255, 256};
  for (int ranks = 65; ranks <= 128; ++ranks) many.push_back(ranks);
  for (int ranks : many) {
    if (Applies(GetParam(), ranks)) ProveRow(GetParam(), ranks);
  }
}

// A ring may go along the cables: ranks are used in another order, results do
// not change.
TEST_P(AlgorithmsTest, IsProvedForOtherOrdersOfRanks) {
  std::mt19937 random(1);
  for (int ranks : {2, 3, 4, 5, 8, 13, 16}) {
    if (!Applies(GetParam(), ranks)) continue;
    std::vector<int> order(ranks);
    std::iota(order.rbegin(), order.rend(), 0);
    for (int i = 0; i < 4; ++i) {
      ProveRow(GetParam(), ranks, order);
      std::shuffle(order.begin(), order.end(), random);
    }
  }
}

// The flag says no more than it must: without it rows could be read in place.
TEST_P(AlgorithmsTest, CopyInPlaceIsExact) {
  bool overwrites = false;
  for (int ranks = 1; ranks <= 16; ++ranks) {
    if (!Applies(GetParam(), ranks)) continue;
    overwrites =
        overwrites ||
        !Check(MakeCall(GetParam(), ranks, 0), {.in_place = true}).ok();
  }
  EXPECT_EQ(overwrites, GetParam().copy_in_place);
}

// A row that does not claim rank order does not have it; else it should claim.
TEST_P(AlgorithmsTest, RankOrderIsExact) {
  bool ordered = true;
  for (int ranks = 1; ranks <= 16; ++ranks) {
    if (!Applies(GetParam(), ranks)) continue;
    Call call = MakeCall(GetParam(), ranks, 0);
    call.rank_order = true;
    ordered = ordered && Check(call, {.sending = Sending::kCopied}).ok();
  }
  EXPECT_EQ(ordered, GetParam().rank_order);
}

INSTANTIATE_TEST_SUITE_P(Rows, AlgorithmsTest,
                         testing::ValuesIn(Algorithms().begin(),
                                           Algorithms().end()),
                         [](const auto& info) { return RowName(info.param); });

TEST(AlgorithmsTableTest, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const Algorithm& row : Algorithms()) {
    EXPECT_TRUE(names.insert(RowName(row)).second) << RowName(row);
    EXPECT_EQ(FindAlgorithm(row.collective, row.name), &row);
  }
  EXPECT_EQ(FindAlgorithm(Collective::kBarrier, "ring"), nullptr);
}

TEST(AlgorithmsTableTest, EveryCollectiveHasARowInRankOrderForAnySize) {
  for (int c = 0; c < kNumCollectives; ++c) {
    EXPECT_TRUE(std::any_of(Algorithms().begin(), Algorithms().end(),
                            [c](const Algorithm& row) {
                              return row.collective == Collective(c) &&
                                     row.rank_order && !row.power_of_two_only &&
                                     !row.copy_in_place;
                            }))
        << Name(Collective(c));
  }
}

// Pieces, scratch and ranks still have numbers of 16 bits.
TEST(AlgorithmsTableTest, SchedulesOfTheMostRanksDoNotWrap) {
  for (const Algorithm& row : Algorithms()) {
    ASSERT_TRUE(Applies(row, kMaxScheduledRanks));
    EXPECT_FALSE(Applies(row, 2 * kMaxScheduledRanks));
    for (int me : {0, 1, kMaxScheduledRanks - 1}) {
      const Schedule s =
          row.generate(Group::World(kMaxScheduledRanks, me, /*root=*/0));
      for (const Op& op : s.ops) {
        EXPECT_LE(op.source.first + op.source.count, 65535);
        if (op.destination.buffer != Buffer::kScratch) continue;
        ASSERT_LE(op.destination.first + op.destination.count, s.scratch_pieces)
            << RowName(row);
      }
    }
  }
}

TEST(AlgorithmsTableTest, PowersOfTwo) {
  const Algorithm* row =
      FindAlgorithm(Collective::kAllGather, "recursive_doubling");
  ASSERT_NE(row, nullptr);
  std::vector<int> applies;
  for (int ranks = 0; ranks <= 16; ++ranks) {
    if (Applies(*row, ranks)) applies.push_back(ranks);
  }
  EXPECT_EQ(applies, (std::vector<int>{1, 2, 4, 8, 16}));
}

}  // namespace
}  // namespace axon
