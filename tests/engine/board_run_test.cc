// SPDX-License-Identifier: Apache-2.0
// Every algorithm of the table, run by threads over a board in ordinary memory.
#include "engine/board_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  bool behind = false;  // `in` lies where the arena ends
  bool uneven = false;  // lengths and places of blocks are given
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
  const Statement s =
      Holds(c.algorithm->collective, {c.ranks, me, c.root}, block);
  const size_t at = static_cast<size_t>(s.source_block) * c.count + i;
  if (s.source != kAllRanks) return Value(s.source, at, round);
  int32_t sum = 0;
  for (int r = 0; r < c.ranks; ++r) sum += Value(r, at, round);
  return sum;
}

size_t LargestBuffer(const Case& c) {
  return static_cast<size_t>(c.ranks) * (c.count + 16) * sizeof(int32_t);
}

// One rank of a case: its buffers, its plan and what it does in each round.
class CaseRank {
 public:
  CaseRank(const Case& c, HeapBoard& heap, int me)
      : case_(c),
        place_{c.ranks, me, c.root},
        in_elements_(static_cast<size_t>(InBlocks(kind(), place_)) * c.count),
        out_elements_(static_cast<size_t>(OutBlocks(kind(), place_)) * c.count),
        board_(heap.board(me)),
        view_(board_),
        outbox_(kOutbox),
        run_(view_, outbox_),
        outbox_memory_(heap.Allocate(me, kOutbox)),
        plan_(MakePlan(*c.algorithm, c.ranks, me, c.root)),
        in_private_(in_elements_ + 1),
        out_private_(out_elements_ + 1),
        in_(in_private_.data()),
        out_(out_private_.data()) {
    for (int r = 0; r < c.ranks; ++r) {
      lengths_.push_back(static_cast<int64_t>(c.count));
      offsets_.push_back(r * static_cast<int64_t>(c.count));
    }
    if (c.mapped) {
      in_ = reinterpret_cast<int32_t*>(heap.Allocate(me, LargestBuffer(c)));
      out_ = reinterpret_cast<int32_t*>(heap.Allocate(me, LargestBuffer(c)));
    }
    if (c.behind) in_ = reinterpret_cast<int32_t*>(heap.BehindArena(me));
    const InPlace in_place = InPlaceOf(kind(), place_);
    if (!c.in_place || !in_place.possible) return;
    if (in_elements_ <= out_elements_) {
      in_ = out_ + static_cast<size_t>(in_place.in_at) * c.count;
    } else {
      out_ = in_ + static_cast<size_t>(in_place.out_at) * c.count;
    }
  }

  // Begins the round; run().Step() goes on with it.
  void StartRound(int round) {
    for (size_t i = 0; i < in_elements_; ++i) {
      in_[i] = Value(place_.me, i, round);
    }
    run_.Start(MakeSetup());
  }
  BoardRun& run() { return run_; }

  void RunRound(int round) {
    StartRound(round);
    ASSERT_TRUE(RunToEnd(run_)) << board_.failure();
    CheckRound(round);
  }
  void CheckRound(int round) {
    for (size_t i = 0; i < out_elements_; ++i) {
      const auto block = static_cast<int>(i / case_.count);
      ASSERT_EQ(out_[i],
                Expected(case_, place_.me, block, i % case_.count, round))
          << "rank " << place_.me << " block " << block << " element "
          << i % case_.count << " round " << round;
    }
  }

 private:
  Collective kind() const { return case_.algorithm->collective; }

  BoardRun::Setup MakeSetup() {
    BoardRun::Setup setup;
    setup.plan = &plan_;
    setup.call.collective = kind();
    setup.call.type = DataType::kInt32;
    setup.call.in = reinterpret_cast<std::byte*>(in_);
    setup.call.out = reinterpret_cast<std::byte*>(out_);
    setup.call.in_layout.length = case_.count;
    setup.call.out_layout.length = case_.count;
    if (case_.uneven) {
      setup.call.out_layout.lengths = lengths_.data();
      setup.call.out_layout.offsets = offsets_.data();
    }
    setup.call.root = case_.root;
    setup.signature = {static_cast<uint8_t>(kind()), 2, 0, case_.root,
                       case_.count};
    if (IsReduction(kind())) {
      setup.call.reduce = FindReduce(DataType::kInt32, ReduceOp::kSum);
    }
    setup.cutting = Cut(case_.count, 4, plan_.cuts,
                        MaxPieceBytes(plan_, kOutbox, case_.piece));
    setup.mapped_reads =
        case_.mapped && !(case_.in_place && case_.algorithm->copy_in_place);
    scratch_.resize(static_cast<size_t>(plan_.scratch_pieces) *
                    setup.cutting.piece_bytes());
    setup.scratch = scratch_.data();
    if (BoardRun::Stages(setup, board_)) {
      setup.outbox_memory = outbox_memory_;
      setup.outbox_offset = static_cast<uint64_t>(
          outbox_memory_ - board_.member(place_.me).arena);
    }
    return setup;
  }

  const Case& case_;
  const Place place_;
  const size_t in_elements_, out_elements_;
  Board& board_;
  BoardView view_;
  Outbox outbox_;
  BoardRun run_;
  std::byte* outbox_memory_;
  const Plan plan_;
  std::vector<int32_t> in_private_, out_private_;
  int32_t *in_, *out_;
  std::vector<std::byte> scratch_;
  std::vector<int64_t> lengths_, offsets_;
};

// Threads stand for processes unless `mapped`; buffers then lie in the arena.
void RunCase(const Case& c, int rounds) {
  HeapBoard heap(c.ranks, kOutbox + 4 * LargestBuffer(c) + (1 << 17), false);
  RunRanks(c.ranks, [&](int me) {
    CaseRank rank(c, heap, me);
    for (int round = 0; round < rounds; ++round) {
      rank.RunRound(round);
      if (testing::Test::HasFatalFailure()) return;
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
          const Case c{GetParam(),
                       ranks,
                       ranks - 1,
                       count,
                       in_place,
                       mapped,
                       count > 10000 ? size_t{4096} : 32768};
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

// Who sleeps has asked the peer that it waits for: a step that comes to wait
// for another one says that it did something, so that it is asked as well.
TEST(BoardRunWaits, ForAnotherPeerAreSteps) {
  const Case c{FindAlgorithm(Collective::kAllReduce, "one_shot"),
               3,
               0,
               8,
               false,
               false,
               32768};
  HeapBoard heap(3, kOutbox + 4 * LargestBuffer(c) + (1 << 17), false);
  CaseRank zero(c, heap, 0), one(c, heap, 1), two(c, heap, 2);
  const auto sleepers = [&](int r) {
    return heap.board(r).mine().sleepers[0].load();
  };
  zero.StartRound(0);
  while (zero.run().Step() == Poll::kPending && zero.run().TookStep()) {
  }
  zero.run().AskToWake();
  EXPECT_EQ(sleepers(1), 1U);
  EXPECT_EQ(sleepers(2), 0U);
  one.StartRound(0);
  ASSERT_EQ(one.run().Step(), Poll::kPending);
  ASSERT_EQ(zero.run().Step(), Poll::kPending);
  EXPECT_TRUE(zero.run().TookStep()) << "it would sleep without asking rank 2";
  ASSERT_EQ(zero.run().Step(), Poll::kPending);
  EXPECT_FALSE(zero.run().TookStep()) << "it would never sleep";
  zero.run().AskToWake();
  EXPECT_EQ(sleepers(2), 1U);
}

TEST(BoardRunPlaces, WhatBeginsBehindTheArenaIsPrivate) {
  Case c{FindAlgorithm(Collective::kAllGather, "mesh"),
         3,
         0,
         1000,
         false,
         true,
         32768};
  c.behind = true;
  RunCase(c, 3);
}

// Each of these would be read far from where anything is.
TEST(BoardRunPlaces, OfPeersAreNotTrusted) {
  const Case c{FindAlgorithm(Collective::kAllReduce, "one_shot"),
               2,
               0,
               1000,
               false,
               false,
               32768};
  for (const int nonsense : {0, 1, 2, 3}) {
    HeapBoard heap(2, kOutbox + 4 * LargestBuffer(c) + (1 << 17), false);
    const size_t arena = heap.board(0).member(1).arena_size;
    CaseRank zero(c, heap, 0), one(c, heap, 1);
    one.StartRound(0);
    ASSERT_EQ(one.run().Step(), Poll::kPending);
    LineBody::Place& place = heap.board(1).mine().lines[1].body.place;
    if (nonsense == 0) place.outbox = arena;
    if (nonsense == 1) place.outbox = ~uint64_t{0};
    if (nonsense == 2) place.position = ~uint64_t{0};
    if (nonsense == 3) {
      place.outbox = arena - kOutbox;
      place.position = kOutbox;
    }
    zero.StartRound(0);
    ASSERT_EQ(zero.run().Step(), Poll::kFailed) << nonsense;
    EXPECT_THAT(std::string(heap.board(1).failure().message()),
                testing::HasSubstr("where its data cannot lie"));
  }
}

// Parts of unequal lengths are never read where they lie: no length is known.
TEST(BoardRunPlaces, OfUnequalPartsAreNotBelieved) {
  Case c{FindAlgorithm(Collective::kAllGather, "mesh"),
         2,
         0,
         1000,
         false,
         false,
         32768};
  c.uneven = true;
  RunCase(c, 3);
  HeapBoard heap(2, kOutbox + 4 * LargestBuffer(c) + (1 << 17), false);
  CaseRank zero(c, heap, 0), one(c, heap, 1);
  one.StartRound(0);
  ASSERT_EQ(one.run().Step(), Poll::kPending);
  heap.board(1).mine().lines[1].body.place.in =
      heap.board(1).RefOf(heap.Allocate(1, LargestBuffer(c)), 1);
  zero.StartRound(0);
  ASSERT_EQ(zero.run().Step(), Poll::kFailed);
  EXPECT_THAT(std::string(heap.board(1).failure().message()),
              testing::HasSubstr("where its data cannot lie"));
}

// What was checked is what is used, for the whole call.
TEST(BoardRunPlaces, AreReadOnce) {
  for (const bool mapped : {false, true}) {
    const Case c{FindAlgorithm(Collective::kAllGather, "mesh"),
                 2,
                 0,
                 20'011,
                 false,
                 mapped,
                 1024};
    HeapBoard heap(2, kOutbox + 4 * LargestBuffer(c) + (1 << 17), false);
    CaseRank zero(c, heap, 0), one(c, heap, 1);
    one.StartRound(0);
    ASSERT_EQ(one.run().Step(), Poll::kPending);
    zero.StartRound(0);
    ASSERT_EQ(zero.run().Step(), Poll::kPending);
    ASSERT_TRUE(zero.run().TookStep());
    const uint64_t nowhere = ~uint64_t{0};
    heap.board(1).mine().lines[1].body.place = {nowhere, nowhere, nowhere,
                                                nowhere};
    Poll polls[] = {Poll::kPending, Poll::kPending};
    for (int i = 0; i < 10'000; ++i) {
      if (polls[0] == Poll::kPending) polls[0] = zero.run().Step();
      if (polls[1] == Poll::kPending) polls[1] = one.run().Step();
    }
    ASSERT_EQ(polls[0], Poll::kReady) << heap.board(0).failure();
    ASSERT_EQ(polls[1], Poll::kReady);
    zero.CheckRound(0);
    one.CheckRound(0);
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
      return std::string(Name(info.param->collective)) + "_" + info.param->name;
    });

}  // namespace
}  // namespace axon
