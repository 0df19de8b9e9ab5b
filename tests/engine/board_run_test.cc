// SPDX-License-Identifier: Apache-2.0
// Every algorithm of the table, run by threads over a board in ordinary memory.
#include "engine/board_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/bind.h"
#include "schedule/algorithms.h"
#include "schedule/collective.h"
#include "tests/support/heap_board.h"
#include "tests/support/threads.h"

namespace axon {
namespace {

constexpr size_t kOutbox = 256 << 10;

struct Case {
  const Algorithm* algorithm;
  int ranks;
  int root;
  size_t count;
  bool in_place;
  bool mapped;
  size_t piece;
};

Plan MakePlan(const Algorithm& algorithm, int ranks, int me, int root) {
  std::vector<Schedule> all;
  for (int r = 0; r < ranks; ++r) {
    all.push_back(algorithm.generate(Group::World(ranks, r, root)));
  }
  absl::StatusOr<Plan> plan = Bind(all, me, /*pipelined=*/true);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

// Small numbers, so that sums are exact in any order.
int32_t Value(int rank, size_t i, int round) {
  return static_cast<int32_t>((i * 7 + static_cast<size_t>(rank) * 13 +
                               static_cast<size_t>(round) * 5) %
                              1000);
}

// What block b of rank `me`'s output must hold at element i.
int32_t Expected(const Case& c, int me, int block, size_t i, int round) {
  const Statement s = Holds(c.algorithm->collective, {c.ranks, me, c.root}, block);
  const size_t at = static_cast<size_t>(s.source_block) * c.count + i;
  if (s.source != kAllRanks) return Value(s.source, at, round);
  int32_t sum = 0;
  for (int r = 0; r < c.ranks; ++r) sum += Value(r, at, round);
  return sum;
}

struct Buffers {
  int32_t* in;
  int32_t* out;
};

// Threads stand for processes unless `mapped`; buffers then lie in the arena.
void RunCase(const Case& c, int rounds) {
  const Collective collective = c.algorithm->collective;
  const size_t largest = static_cast<size_t>(c.ranks) * (c.count + 16) * 4;
  HeapBoard heap(c.ranks, kOutbox + 4 * largest + (1 << 17), false);
  RunRanks(c.ranks, [&](int me) {
    Board& board = heap.board(me);
    BoardView view(board);
    Outbox outbox(kOutbox);
    BoardRun run(view, outbox);
    std::byte* memory = heap.Allocate(me, kOutbox);
    const Plan plan = MakePlan(*c.algorithm, c.ranks, me, c.root);
    const Place place{c.ranks, me, c.root};
    const auto in_blocks = static_cast<size_t>(InBlocks(collective, place));
    const auto out_blocks = static_cast<size_t>(OutBlocks(collective, place));
    std::vector<std::byte> scratch;
    std::vector<int32_t> in_private(in_blocks * c.count + 1);
    std::vector<int32_t> out_private(out_blocks * c.count + 1);
    Buffers b{in_private.data(), out_private.data()};
    if (c.mapped) {
      b.in = reinterpret_cast<int32_t*>(heap.Allocate(me, largest));
      b.out = reinterpret_cast<int32_t*>(heap.Allocate(me, largest));
    }
    const InPlace in_place = InPlaceOf(collective, place);
    if (c.in_place && in_place.possible) {
      if (in_blocks <= out_blocks) {
        b.in = b.out + static_cast<size_t>(in_place.in_at) * c.count;
      } else {
        b.out = b.in + static_cast<size_t>(in_place.out_at) * c.count;
      }
    }
    for (int round = 0; round < rounds; ++round) {
      BoardRun::Setup setup;
      setup.plan = &plan;
      setup.call.collective = collective;
      setup.call.type = DataType::kInt32;
      setup.call.in = reinterpret_cast<std::byte*>(b.in);
      setup.call.out = reinterpret_cast<std::byte*>(b.out);
      setup.call.in_layout.length = c.count;
      setup.call.out_layout.length = c.count;
      setup.call.root = c.root;
      if (IsReduction(collective)) {
        setup.call.reduce = FindReduce(DataType::kInt32, ReduceOp::kSum);
      }
      setup.cutting = Cut(c.count, 4, plan.cuts,
                          MaxPieceBytes(plan, kOutbox, c.piece));
      setup.mapped_reads =
          c.mapped && !(c.in_place && c.algorithm->copy_in_place);
      scratch.resize(static_cast<size_t>(plan.scratch_pieces) *
                     setup.cutting.piece_bytes());
      setup.scratch = scratch.data();
      if (BoardRun::Stages(setup, board)) {
        setup.outbox_memory = memory;
        setup.outbox_offset =
            static_cast<uint64_t>(memory - board.member(me).arena);
      }
      for (size_t i = 0; i < in_blocks * c.count; ++i) {
        b.in[i] = Value(me, i, round);
      }
      run.Start(setup, {static_cast<uint8_t>(collective), 2, 0, c.root, c.count});
      ASSERT_TRUE(RunToEnd(run)) << board.failure();
      for (size_t block = 0; block < out_blocks; ++block) {
        for (size_t i = 0; i < c.count; ++i) {
          ASSERT_EQ(b.out[block * c.count + i],
                    Expected(c, me, static_cast<int>(block), i, round))
              << "rank " << me << " block " << block << " element " << i
              << " round " << round;
        }
      }
    }
  });
}

class BoardRunTest : public testing::TestWithParam<const Algorithm*> {};

TEST_P(BoardRunTest, EveryRankCountAndSize) {
  for (int ranks : {1, 2, 3, 4, 5, 8}) {
    if (!Applies(*GetParam(), ranks)) continue;
    for (size_t count : {0, 1, 5, 64, 1000, 20011}) {
      for (bool in_place : {false, true}) {
        for (bool mapped : {false, true}) {
          const Case c{GetParam(), ranks, ranks - 1, count,
                       in_place, mapped,  count > 10000 ? size_t{4096} : 32768};
          SCOPED_TRACE(testing::Message()
                       << ranks << " ranks, " << count << " elements, in place "
                       << in_place << ", mapped " << mapped);
          RunCase(c, 3);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

std::vector<const Algorithm*> Rows() {
  std::vector<const Algorithm*> rows;
  for (const Algorithm& a : Algorithms()) rows.push_back(&a);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(
    Table, BoardRunTest, testing::ValuesIn(Rows()),
    [](const testing::TestParamInfo<const Algorithm*>& info) {
      return std::string(Name(info.param->collective)) + "_" +
             info.param->name;
    });

}  // namespace
}  // namespace axon
