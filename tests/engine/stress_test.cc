// SPDX-License-Identifier: Apache-2.0
// The shared-memory protocols under load: thousands of mixed small calls with
// random delays over tiny outboxes, by threads and by processes over a real
// arena. Every result is checked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/bind.h"
#include "engine/board_run.h"
#include "engine/line_run.h"
#include "schedule/check.h"
#include "schedule/collective.h"
#include "tests/support/arena_board.h"
#include "tests/support/heap_board.h"
#include "tests/support/processes.h"
#include "tests/support/threads.h"

namespace axon {
namespace {

// All calls walk round this every few calls, large ones within one.
constexpr size_t kOutbox = 16 << 10;

struct Mixed {
  const Algorithm* row;  // null: by a line
  Collective collective;
  int root;
  size_t count;
};

// The n-th call of the run, the same on all ranks.
Mixed CallOf(uint32_t seed, int n, int ranks) {
  std::mt19937 random(seed + static_cast<uint32_t>(n) * 7919);
  const absl::Span<const Algorithm> rows = Algorithms();
  for (;;) {
    const Algorithm& row = rows[random() % rows.size()];
    if (!Applies(row, ranks)) continue;
    Mixed call{&row, row.collective, static_cast<int>(random()) % ranks, 0};
    call.root = (call.root + ranks) % ranks;
    const bool barrier = call.collective == Collective::kBarrier;
    if (random() % 2 == 0) {
      call.row = nullptr;
      const size_t most =
          random() % 2 == 0 ? kInlineBytes : LineRun::kMostBytes;
      call.count =
          barrier ? 0 : 1 + random() % (most / 4 / static_cast<size_t>(ranks));
    } else if (!barrier) {
      call.count = 1 + random() % (random() % 8 == 0 ? 8000 : 300);
    }
    return call;
  }
}

int32_t Value(int rank, size_t i, int n) {
  return static_cast<int32_t>(
      (i * 7 + static_cast<size_t>(rank) * 13 + static_cast<size_t>(n) * 5) %
      1009);
}

class StressRank {
 public:
  StressRank(Board& board, std::byte* outbox_memory, uint32_t seed)
      : me_(board.me()),
        ranks_(board.ranks()),
        seed_(seed),
        random_(seed * 31 + static_cast<uint32_t>(me_)),
        board_(board),
        view_(board),
        outbox_(kOutbox),
        line_run_(view_, outbox_),
        board_run_(view_, outbox_),
        outbox_memory_(outbox_memory) {}

  // Empty, or what went wrong.
  std::string Run(int calls) {
    for (int n = 0; n < calls; ++n) {
      Delay();
      std::string error = RunCall(n);
      if (!error.empty()) {
        board_.Fail(absl::InternalError(error));  // the others end too
        return error;
      }
    }
    return "";
  }

 private:
  void Delay() {
    switch (random_() % 16) {
      case 0:
        usleep(random_() % 200);
        break;
      case 1:
        sched_yield();
        break;
      default:
        break;
    }
  }

  const Plan& PlanOf(const Mixed& mixed) {
    std::unique_ptr<Plan>& plan = plans_[{mixed.row, mixed.root}];
    if (plan == nullptr) {
      plan = std::make_unique<Plan>(
          *Bind(MakeCall(*mixed.row, ranks_, mixed.root).schedules, me_, true));
    }
    return *plan;
  }

  std::string RunCall(int n) {
    const Mixed mixed = CallOf(seed_, n, ranks_);
    const Place place{ranks_, me_, mixed.root};
    in_.resize(static_cast<size_t>(InBlocks(mixed.collective, place)) *
                   mixed.count +
               1);
    out_.assign(
        static_cast<size_t>(OutBlocks(mixed.collective, place)) * mixed.count +
            1,
        -1);
    for (size_t i = 0; i < in_.size(); ++i) in_[i] = Value(me_, i, n);
    CollectiveCall call;
    call.collective = mixed.collective;
    call.type = DataType::kInt32;
    call.in = reinterpret_cast<std::byte*>(in_.data());
    call.out = reinterpret_cast<std::byte*>(out_.data());
    call.in_layout.length = call.out_layout.length = mixed.count;
    call.root = mixed.root;
    if (IsReduction(mixed.collective)) {
      call.reduce = FindReduce(DataType::kInt32, ReduceOp::kSum);
    }
    Poll poll = Poll::kPending;
    Work& work = Start(mixed, call, &poll);
    if (poll != Poll::kReady && !RunToEnd(work))
      return std::string(board_.failure().message());
    // The caller may use its input again at once.
    std::fill(in_.begin(), in_.end(), -2);
    return Check(mixed, place, n);
  }

  uint64_t OutboxOffset() const {
    return static_cast<uint64_t>(outbox_memory_ - board_.member(me_).arena);
  }

  // What it stands at, if it is run at once, through `poll`.
  Work& Start(const Mixed& mixed, const CollectiveCall& call, Poll* poll) {
    const Signature signature{static_cast<uint8_t>(mixed.collective), 2, 0,
                              mixed.root, mixed.count};
    if (mixed.row == nullptr) {
      line_plan_ = LineRun::Compile(call, signature, ranks_, me_);
      line_plan_.outbox_memory = outbox_memory_;
      line_plan_.outbox_offset = OutboxOffset();
      if (random_() % 2 == 0) {
        *poll = line_run_.Run(line_plan_, call.in, call.out);
      } else {
        line_run_.Start(line_plan_, call.in, call.out);
      }
      return line_run_;
    }
    const Plan& plan = PlanOf(mixed);
    BoardRun::Setup setup;
    setup.plan = &plan;
    setup.call = call;
    setup.cutting = Cut(mixed.count, 4, plan.cuts,
                        MaxPieceBytes(plan, outbox_.size(), 1024));
    scratch_.resize(static_cast<size_t>(plan.scratch_pieces) *
                    setup.cutting.piece_bytes());
    setup.scratch = scratch_.data();
    setup.outbox_memory = outbox_memory_;
    setup.outbox_offset = OutboxOffset();
    setup.signature = signature;
    board_run_.Start(setup);
    return board_run_;
  }

  std::string Check(const Mixed& mixed, const Place& place, int n) const {
    for (size_t i = 0; i + 1 < out_.size(); ++i) {
      const Statement s =
          Holds(mixed.collective, place, static_cast<int>(i / mixed.count));
      const size_t at =
          static_cast<size_t>(s.source_block) * mixed.count + i % mixed.count;
      int32_t expected = s.source == kAllRanks ? 0 : Value(s.source, at, n);
      for (int r = 0; r < ranks_ && s.source == kAllRanks; ++r) {
        expected += Value(r, at, n);
      }
      if (out_[i] == expected) continue;
      return "call " + std::to_string(n) + " (" + Name(mixed.collective) +
             (mixed.row == nullptr ? " by line"
                                   : std::string(" ") + mixed.row->name) +
             "), rank " + std::to_string(me_) + ", element " +
             std::to_string(i) + ": " + std::to_string(out_[i]) + ", not " +
             std::to_string(expected);
    }
    return "";
  }

  const int me_, ranks_;
  const uint32_t seed_;
  std::mt19937 random_;
  Board& board_;
  BoardView view_;
  Outbox outbox_;
  LineRun line_run_;
  LinePlan line_plan_;
  BoardRun board_run_;
  std::byte* outbox_memory_;
  std::map<std::pair<const Algorithm*, int>, std::unique_ptr<Plan>> plans_;
  std::vector<int32_t> in_, out_;
  std::vector<std::byte> scratch_;
};

TEST(StressTest, Threads) {
  for (const int ranks : {2, 3, 4, 7}) {
    HeapBoard heap(ranks, 1 << 20, false);
    const auto seed = static_cast<uint32_t>(ranks);
    RunRanks(
        ranks,
        [&](int me) {
          StressRank rank(heap.board(me), heap.Allocate(me, kOutbox), seed);
          EXPECT_EQ(rank.Run(3000), "");
        },
        120,
        [&] {
          std::string text;
          for (int r = 0; r < ranks; ++r) {
            text += DescribeState(heap.board(0), r) + "\n";
          }
          return text;
        });
  }
}

// Nothing but the shortest calls, one after the other: the line that a rank
// misses comes while it prepares to wait.
std::string SmallSums(Board& board, int calls) {
  BoardView view(board);
  Outbox outbox(kOutbox);
  LineRun run(view, outbox);
  CollectiveCall call;
  call.collective = Collective::kAllReduce;
  call.type = DataType::kInt32;
  call.reduce = FindReduce(DataType::kInt32, ReduceOp::kSum);
  call.in_layout.length = call.out_layout.length = 2;
  const LinePlan plan = LineRun::Compile(call, Signature(0, 2, 0, -1, 2),
                                         board.ranks(), board.me());
  const int n = board.ranks();
  for (int i = 0; i < calls; ++i) {
    int32_t values[2] = {i, board.me()};
    auto* const bytes = reinterpret_cast<std::byte*>(values);
    if (run.Run(plan, bytes, bytes) != Poll::kReady && !RunToEnd(run)) {
      return std::string(board.failure().message());
    }
    if (values[0] != n * i || values[1] != n * (n - 1) / 2) {
      board.Fail(absl::InternalError("wrong"));
      return absl::StrFormat("call %d: %d, %d", i, values[0], values[1]);
    }
  }
  return "";
}

TEST(StressTest, SmallSums) {
  for (const int ranks : {2, 3}) {
    HeapBoard heap(ranks, 1 << 16, false);
    const auto results = RunThreads(
        ranks, [&](int rank) { return SmallSums(heap.board(rank), 100'000); });
    EXPECT_THAT(results, testing::Each(""));
  }
}

TEST(StressTest, Processes) {
  for (const int ranks : {2, 4}) {
    ArenaBoard arenas(ranks, 4 << 20);
    std::vector<std::byte*> outboxes;
    for (int r = 0; r < ranks; ++r) {
      auto memory = arenas.arena(r).Allocate(kOutbox);
      ASSERT_TRUE(memory.ok()) << memory.status();
      outboxes.push_back(*memory);
    }
    const std::vector<std::string> results =
        RunProcesses(ranks, 120'000, [&](int me) {
          Board& board = arenas.board(me);
          const auto offset =
              arenas.arena(me).OffsetOf(outboxes[static_cast<size_t>(me)]);
          StressRank rank(board, board.member(me).arena + offset, 99);
          return rank.Run(4000);
        });
    for (const std::string& result : results) EXPECT_EQ(result, "");
  }
}

}  // namespace
}  // namespace axon
