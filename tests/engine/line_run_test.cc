// SPDX-License-Identifier: Apache-2.0
// Small calls in one line each, against the plan of the same collective: the
// same bits for every collective, type and operator.
#include "engine/line_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include <string>
#include <vector>

#include "engine/bind.h"
#include "engine/board_run.h"
#include "schedule/check.h"
#include "schedule/collective.h"
#include "tests/engine/kernels_reference.h"
#include "tests/support/heap_board.h"
#include "tests/support/threads.h"

namespace axon {
namespace {

constexpr size_t kOutbox = 256 << 10;

// One rank that runs every call twice: by its line and by a plan.
class TwoWays {
 public:
  TwoWays(HeapBoard& heap, int me)
      : me_(me),
        ranks_(heap.ranks()),
        board_(heap.board(me)),
        view_(board_),
        outbox_(kOutbox),
        by_line_(view_, outbox_),
        by_plan_(view_, outbox_),
        outbox_memory_(heap.Allocate(me, kOutbox)) {}

  // Compares results of `count` elements a block.
  void Compare(Collective collective, DataType type, ReduceOp op, int root,
               size_t count, uint64_t seed) {
    const Place place{ranks_, me_, root};
    const size_t block = count * ElementSize(type);
    Fill(type, static_cast<size_t>(InBlocks(collective, place)) * count, seed);
    const size_t out_bytes =
        static_cast<size_t>(OutBlocks(collective, place)) * block;
    std::vector<std::byte> line_out(out_bytes + 1), plan_out(out_bytes + 1);
    CollectiveCall call;
    call.collective = collective;
    call.type = type;
    call.in = in_.data();
    call.in_layout.length = call.out_layout.length = count;
    call.root = root;
    if (IsReduction(collective)) {
      call.reduce = FindReduce(type, op);
      call.average = op == ReduceOp::kAvg;
      call.has_factor = op == ReduceOp::kPreMulSum;
      call.factor = me_ + 0.5;
    }
    const Signature signature{static_cast<uint8_t>(collective),
                              static_cast<uint8_t>(type),
                              static_cast<uint8_t>(op), root, count};
    RunLine(call, signature, line_out.data());
    call.out = plan_out.data();
    RunPlan(call, signature);
    ASSERT_EQ(line_out, plan_out)
        << Name(collective) << " " << Name(type) << " " << Name(op) << ", rank "
        << me_ << " of " << ranks_ << ", " << count << " elements";
  }

 private:
  void Fill(DataType type, size_t elements, uint64_t seed) {
    const size_t size = ElementSize(type);
    in_.assign(elements * size + 1, std::byte{0});
    for (size_t i = 0; i < elements; ++i) {
      const uint64_t bits =
          TestBits(type, seed * 131 + i * 7 + static_cast<uint64_t>(me_));
      std::memcpy(in_.data() + i * size, &bits, size);
    }
  }

  void RunLine(const CollectiveCall& call, const Signature& signature,
               std::byte* out) {
    LinePlan plan = LineRun::Compile(call, signature, ranks_, me_);
    plan.outbox_memory = outbox_memory_;
    plan.outbox_offset =
        static_cast<uint64_t>(outbox_memory_ - board_.member(me_).arena);
    by_line_.Start(plan, call.in, out, call.factor);
    ASSERT_TRUE(RunToEnd(by_line_)) << board_.failure();
  }

  void RunPlan(const CollectiveCall& call, const Signature& signature) {
    const bool one_shot = call.collective == Collective::kAllReduce;
    const Algorithm* row =
        FindAlgorithm(call.collective, one_shot ? "one_shot" : "mesh");
    absl::StatusOr<Plan> plan = Bind(
        MakeCall(*row, ranks_, call.root).schedules, me_, /*pipelined=*/true);
    ASSERT_TRUE(plan.ok()) << plan.status();
    BoardRun::Setup setup;
    setup.plan = &*plan;
    setup.call = call;
    setup.cutting = Cut(call.in_layout.length, call.element_size(), plan->cuts,
                        MaxPieceBytes(*plan, kOutbox, 32768));
    setup.outbox_memory = outbox_memory_;
    setup.outbox_offset =
        static_cast<uint64_t>(outbox_memory_ - board_.member(me_).arena);
    setup.signature = signature;
    by_plan_.Start(setup);
    ASSERT_TRUE(RunToEnd(by_plan_)) << board_.failure();
  }

  const int me_, ranks_;
  Board& board_;
  BoardView view_;
  Outbox outbox_;
  LineRun by_line_;
  BoardRun by_plan_;
  std::byte* outbox_memory_;
  std::vector<std::byte> in_;
};

// The most elements of a block with which the input has at most `bytes`.
size_t Most(Collective collective, DataType type, int ranks, size_t bytes) {
  if (collective == Collective::kBarrier) return 0;
  return bytes / LineRun::InBytes(collective, ranks, ElementSize(type));
}

class LineRunTest : public testing::TestWithParam<Collective> {};

TEST_P(LineRunTest, TheSameBitsAsThePlan) {
  const Collective collective = GetParam();
  const int ops = IsReduction(collective) ? kNumReduceOps : 1;
  for (const int ranks : {1, 2, 3, 5}) {
    HeapBoard heap(ranks, 1 << 20, false);
    RunRanks(ranks, [&](int me) {
      TwoWays rank(heap, me);
      uint64_t seed = 0;
      for (int t = 0; t < kNumDataTypes; ++t) {
        for (int o = 0; o < ops; ++o) {
          const auto type = static_cast<DataType>(t);
          const auto op = static_cast<ReduceOp>(o);
          if (ops > 1 && !ReductionSupported(type, op)) continue;
          for (const int root : {0, ranks - 1}) {
            for (const size_t count :
                 {size_t{0},
                  std::min<size_t>(1,
                                   Most(collective, type, ranks, kInlineBytes)),
                  Most(collective, type, ranks, kInlineBytes),
                  Most(collective, type, ranks, kInlineBytes) + 1,
                  Most(collective, type, ranks, LineRun::kMostBytes)}) {
              if (collective == Collective::kBarrier && count > 0) continue;
              rank.Compare(collective, type, op, root, count, ++seed);
              if (testing::Test::HasFatalFailure()) return;
            }
          }
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Collectives, LineRunTest,
    testing::Values(Collective::kAllReduce, Collective::kBroadcast,
                    Collective::kReduce, Collective::kAllGather,
                    Collective::kReduceScatter, Collective::kAlltoAll,
                    Collective::kGather, Collective::kScatter,
                    Collective::kBarrier),
    [](const testing::TestParamInfo<Collective>& info) {
      return std::string(Name(info.param));
    });

TEST(LineRunTest, SmallInputLiesInTheLine) {
  CollectiveCall call;
  call.collective = Collective::kAlltoAll;
  call.in_layout.length = kInlineBytes / 3;
  const LinePlan inlined = LineRun::Compile(call, {}, 3, 1);
  EXPECT_TRUE(inlined.inlined);
  EXPECT_EQ(inlined.in_bytes, kInlineBytes);
  EXPECT_EQ(inlined.mine_at, kInlineBytes / 3);
  ++call.in_layout.length;
  EXPECT_FALSE(LineRun::Compile(call, {}, 3, 1).inlined);
}

// Two ranks of one thread, and what their calls share.
class LinePair {
 public:
  Poll Start(int rank, const LinePlan& plan, const void* in, void* out) {
    run_[rank].Start(plan, static_cast<const std::byte*>(in),
                     static_cast<std::byte*>(out));
    return run_[rank].Step();
  }
  LineRun& run(int rank) { return run_[rank]; }
  HeapBoard& heap() { return heap_; }
  BoardView& view(int rank) { return view_[rank]; }

 private:
  HeapBoard heap_{2, 1 << 17, false};
  BoardView view_[2] = {BoardView(heap_.board(0)), BoardView(heap_.board(1))};
  Outbox outbox_[2] = {Outbox(kOutbox), Outbox(kOutbox)};
  LineRun run_[2] = {LineRun(view_[0], outbox_[0]),
                     LineRun(view_[1], outbox_[1])};
};

TEST(LineRunTest, ARootRunsAheadNoFurtherThanItsLines) {
  LinePair pair;
  CollectiveCall call;
  call.collective = Collective::kBroadcast;
  call.type = DataType::kInt64;
  call.in_layout.length = call.out_layout.length = 1;
  int64_t in = 0, unused = 0, out = 0;
  const auto signature = Signature{1, 4, 0, 0, 1};
  const LinePlan root = LineRun::Compile(call, signature, 2, 0);
  const LinePlan other = LineRun::Compile(call, signature, 2, 1);
  for (in = 1; in <= kCallLines; ++in) {
    ASSERT_EQ(pair.Start(0, root, &in, &unused), Poll::kReady) << in;
    EXPECT_TRUE(pair.run(0).TookStep());
  }
  EXPECT_EQ(pair.Start(0, root, &in, &unused), Poll::kPending);
  EXPECT_FALSE(pair.run(0).TookStep());
  for (int64_t expected = 1; expected <= 3; ++expected) {
    ASSERT_EQ(pair.Start(1, other, nullptr, &out), Poll::kReady);
    EXPECT_EQ(out, expected);
  }
  EXPECT_EQ(pair.run(0).Step(), Poll::kReady);
  EXPECT_TRUE(pair.run(0).TookStep());
}

TEST(LineRunTest, AMismatchFailsBothSides) {
  LinePair pair;
  const CollectiveCall call;
  const LinePlan one = LineRun::Compile(call, {8, 0, 0, -1, 0}, 2, 0);
  const LinePlan another = LineRun::Compile(call, {8, 0, 0, -1, 1}, 2, 1);
  EXPECT_EQ(pair.Start(0, one, nullptr, nullptr), Poll::kPending);
  EXPECT_EQ(pair.Start(1, another, nullptr, nullptr), Poll::kFailed);
  EXPECT_EQ(pair.run(0).Step(), Poll::kFailed);
}

// What a peer's line says of its data is never trusted.
TEST(LineRunTest, ALineThatNamesMemoryOutsideItsArenaFails) {
  LinePair pair;
  CollectiveCall call;
  call.collective = Collective::kAllGather;
  call.in_layout.length = call.out_layout.length = kInlineBytes + 1;
  LinePlan plan = LineRun::Compile(call, {3, 0, 0, -1, 1}, 2, 0);
  ASSERT_FALSE(plan.inlined);
  std::vector<std::byte> outbox(kOutbox), in(kInlineBytes + 1), out(200);
  plan.outbox_memory = outbox.data();
  plan.outbox_offset = uint64_t{1} << 40;
  EXPECT_EQ(pair.Start(0, plan, in.data(), out.data()), Poll::kPending);
  EXPECT_EQ(pair.Start(1, plan, in.data(), out.data()), Poll::kFailed);
  EXPECT_THAT(std::string(pair.heap().board(1).failure().message()),
              testing::HasSubstr("where its data cannot lie"));
}

}  // namespace
}  // namespace axon
