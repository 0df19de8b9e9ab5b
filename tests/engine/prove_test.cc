// SPDX-License-Identifier: Apache-2.0
// Every row of the table, bound and proved.
#include "engine/prove.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/outbox.h"
#include "schedule/collective.h"

namespace axon {
namespace {

BoundCall Bound(const Algorithm& row, int ranks, int root, bool pipelined) {
  absl::StatusOr<BoundCall> bound =
      BindAll(MakeCall(row, ranks, root), pipelined);
  EXPECT_TRUE(bound.ok()) << bound.status();
  // So that the smallest outbox is exact, where that does not take long.
  if (ranks <= 5) bound->unit = kOutboxZones;
  return *bound;
}

absl::Status ProveThrice(const BoundCall& call, size_t outbox) {
  const BoundCall* const calls[] = {&call, &call, &call};
  return Prove(calls, {outbox});
}

// Who is read where: nobody, everybody, every other rank, inputs, outputs.
std::vector<std::vector<Reach>> Reaches(int ranks) {
  std::vector<std::vector<Reach>> all(5);
  for (int r = 0; r < ranks; ++r) {
    all[1].push_back({true, true});
    all[2].push_back({r % 2 == 0, r % 2 == 0});
    all[3].push_back({true, false});
    all[4].push_back({false, true});
  }
  return all;
}

class ProveTest : public testing::TestWithParam<const Algorithm*> {};

TEST_P(ProveTest, EveryRankCount) {
  const Algorithm& row = *GetParam();
  const bool rooted = IsRooted(row.collective);
  for (int ranks = 1; ranks <= 16; ++ranks) {
    if (!Applies(row, ranks)) continue;
    for (const int root : {0, ranks - 1}) {
      if (root != 0 && !rooted) continue;
      for (const bool pipelined : {false, true}) {
        BoundCall call = Bound(row, ranks, root, pipelined);
        for (call.slices = 1; call.slices <= 6; ++call.slices) {
          const size_t least = SmallestOutbox(call);
          for (const size_t outbox : {least, 2 * least + 16, 16 * least}) {
            ASSERT_EQ(ProveThrice(call, outbox), absl::OkStatus())
                << ranks << " ranks, root " << root << ", pipelined "
                << pipelined << ", " << call.slices << " slices, outbox "
                << outbox;
          }
        }
      }
    }
  }
}

TEST_P(ProveTest, ReadInPlace) {
  const Algorithm& row = *GetParam();
  for (int ranks = 2; ranks <= 9; ++ranks) {
    if (!Applies(row, ranks)) continue;
    for (const bool pipelined : {false, true}) {
      BoundCall call = Bound(row, ranks, ranks - 1, pipelined);
      for (const std::vector<Reach>& reach : Reaches(ranks)) {
        for (const bool in_place : {false, true}) {
          // Such calls are copied: see BoardRun::Setup::mapped_reads.
          if (in_place && row.copy_in_place) continue;
          call.reach = reach;
          call.in_place = in_place;
          for (const int slices : {1, 2, 5}) {
            call.slices = slices;
            ASSERT_EQ(ProveThrice(call, SmallestOutbox(call)), absl::OkStatus())
                << ranks << " ranks, pipelined " << pipelined << ", in place "
                << in_place << ", " << slices << " slices";
          }
        }
      }
    }
  }
}

// Calls of all other rows, of other sizes, between two of this one.
TEST_P(ProveTest, BetweenOtherCalls) {
  for (const int ranks : {2, 3, 4, 7, 8}) {
    if (!Applies(*GetParam(), ranks)) continue;
    BoundCall mine = Bound(*GetParam(), ranks, 0, true);
    int variant = 0;
    for (const Algorithm& row : Algorithms()) {
      if (!Applies(row, ranks)) continue;
      BoundCall other = Bound(row, ranks, ranks - 1, true);
      mine.unit = 1 + variant % 3;
      other.unit = 1 + variant / 3 % 4;
      mine.slices = 1 + variant % 4;
      other.slices = 1 + variant / 2 % 5;
      other.reach = Reaches(ranks)[static_cast<size_t>(variant % 3)];
      ++variant;
      const size_t least =
          std::max(SmallestOutbox(mine), SmallestOutbox(other));
      const BoundCall* const calls[] = {&mine,  &other, &mine, &mine,
                                        &other, &other, &mine};
      for (const size_t outbox : {least, least + 16, 3 * least}) {
        for (const uint32_t lines : {2U, kCallLines}) {
          ASSERT_EQ(Prove(calls, {outbox, lines}), absl::OkStatus())
              << ranks << " ranks, " << Name(row.collective) << " " << row.name
              << " between, outbox " << outbox << ", lines " << lines;
        }
      }
    }
  }
}

TEST_P(ProveTest, ManyRanks) {
  for (const int ranks : {31, 64}) {
    if (!Applies(*GetParam(), ranks)) continue;
    BoundCall call = Bound(*GetParam(), ranks, ranks - 1, true);
    call.slices = 2;
    ASSERT_EQ(ProveThrice(call, SmallestOutbox(call)), absl::OkStatus())
        << ranks;
  }
}

std::vector<const Algorithm*> Rows() {
  std::vector<const Algorithm*> rows;
  for (const Algorithm& a : Algorithms()) rows.push_back(&a);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(
    Table, ProveTest, testing::ValuesIn(Rows()),
    [](const testing::TestParamInfo<const Algorithm*>& info) {
      return std::string(Name(info.param->collective)) + "_" + info.param->name;
    });

}  // namespace
}  // namespace axon
