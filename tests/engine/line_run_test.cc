// SPDX-License-Identifier: Apache-2.0
// Small calls in one line each, against the plan of the same collective: the
// same bits for every collective, type and operator.
#include "engine/line_run.h"

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
        by_line_(view_),
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
    call.out = line_out.data();
    by_line_.Start(call, signature);
    ASSERT_TRUE(RunToEnd(by_line_)) << board_.failure();
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
    by_plan_.Start(setup, signature);
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

// The most elements of a block with which a call fits into a line.
size_t Most(Collective collective, DataType type, int ranks) {
  const bool per_rank = collective == Collective::kReduceScatter ||
                        collective == Collective::kAlltoAll ||
                        collective == Collective::kScatter;
  if (collective == Collective::kBarrier) return 0;
  return kInlineBytes / ElementSize(type) /
         static_cast<size_t>(per_rank ? ranks : 1);
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
                 {size_t{0}, std::min<size_t>(1, Most(collective, type, ranks)),
                  Most(collective, type, ranks)}) {
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

TEST(LineRunTest, FitsWhatALineHolds) {
  EXPECT_TRUE(LineRun::Fits(0));
  EXPECT_TRUE(LineRun::Fits(kInlineBytes));
  EXPECT_FALSE(LineRun::Fits(kInlineBytes + 1));
}

TEST(LineRunTest, ARootRunsAheadNoFurtherThanItsLines) {
  HeapBoard heap(2, 1 << 17, false);
  BoardView root_view(heap.board(0)), view(heap.board(1));
  LineRun root(root_view), other(view);
  CollectiveCall call;
  call.collective = Collective::kBroadcast;
  call.type = DataType::kInt64;
  call.in_layout.length = call.out_layout.length = 1;
  int64_t in = 0, unused = 0, out = 0;
  const auto signature = Signature{1, 4, 0, 0, 1};
  call.in = reinterpret_cast<std::byte*>(&in);
  call.out = reinterpret_cast<std::byte*>(&unused);
  for (in = 1; in <= kCallLines; ++in) {
    root.Start(call, signature);
    ASSERT_EQ(root.Step(), Poll::kReady) << in;
    EXPECT_TRUE(root.TookStep());
  }
  root.Start(call, signature);
  EXPECT_EQ(root.Step(), Poll::kPending);
  EXPECT_FALSE(root.TookStep());
  call.out = reinterpret_cast<std::byte*>(&out);
  for (int64_t expected = 1; expected <= 3; ++expected) {
    other.Start(call, signature);
    ASSERT_EQ(other.Step(), Poll::kReady);
    EXPECT_EQ(out, expected);
  }
  EXPECT_EQ(root.Step(), Poll::kReady);
  EXPECT_TRUE(root.TookStep());
}

TEST(LineRunTest, AMismatchFailsBothSides) {
  HeapBoard heap(2, 1 << 17, false);
  BoardView a(heap.board(0)), b(heap.board(1));
  LineRun first(a), second(b);
  CollectiveCall call;
  first.Start(call, {8, 0, 0, -1, 0});
  EXPECT_EQ(first.Step(), Poll::kPending);
  second.Start(call, {8, 0, 0, -1, 1});
  EXPECT_EQ(second.Step(), Poll::kFailed);
  EXPECT_EQ(first.Step(), Poll::kFailed);
}

}  // namespace
}  // namespace axon
