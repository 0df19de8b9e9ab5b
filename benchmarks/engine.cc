// SPDX-License-Identifier: Apache-2.0
// What the engine costs by itself: binding, an operation, a call.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "base/cpu.h"
#include "engine/bind.h"
#include "engine/board_run.h"
#include "engine/line_run.h"
#include "engine/prove.h"
#include "schedule/check.h"

namespace axon {
namespace {

constexpr size_t kOutbox = 4 << 20;

// Ranks in one process whose private buffers their peers do not see.
class Boards {
 public:
  explicit Boards(int ranks) {
    std::vector<Board::Member> members;
    for (int r = 0; r < ranks; ++r) {
      const size_t size = RoundUp(Block::SizeFor(ranks), 4096) + kOutbox;
      auto* arena = static_cast<std::byte*>(std::aligned_alloc(4096, size));
      std::memset(arena, 0, size);
      arenas_.emplace_back(arena);
      doorbells_.push_back(std::make_unique<Doorbell>());
      auto* block = new (arena) Block();
      block->rank = r;
      block->ranks = ranks;
      block->progress.store(Count(1, 0));
      members.push_back({block, arena, size, doorbells_.back().get(), false});
    }
    for (int r = 0; r < ranks; ++r) boards_.emplace_back(r, members);
  }
  Board& board(int rank) { return boards_[static_cast<size_t>(rank)]; }
  std::byte* outbox(int rank) {
    return arenas_[static_cast<size_t>(rank)].get() + outbox_offset();
  }
  uint64_t outbox_offset() const {
    return RoundUp(Block::SizeFor(static_cast<int>(boards_.size())), 4096);
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::vector<std::unique_ptr<std::byte, Free>> arenas_;
  std::vector<std::unique_ptr<Doorbell>> doorbells_;
  std::deque<Board> boards_;  // they do not move
};

Call AllReduce(const char* name, int ranks) {
  return MakeCall(*FindAlgorithm(Collective::kAllReduce, name), ranks, 0);
}

void BM_Bind(benchmark::State& state) {
  const Call call = AllReduce("mesh", static_cast<int>(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(Bind(call.schedules, 0, true));
  }
}
BENCHMARK(BM_Bind)->Arg(2)->Arg(8)->Arg(64);

void BM_Prove(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  absl::StatusOr<BoundCall> bound = BindAll(AllReduce("mesh", ranks), true);
  bound->slices = 6;
  const BoundCall* const calls[] = {&*bound, &*bound};
  for (auto _ : state) {
    const absl::Status status = Prove(calls, {SmallestOutbox(*bound)});
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
}
BENCHMARK(BM_Prove)->Arg(2)->Arg(8)->Arg(32)->Unit(benchmark::kMillisecond);

CollectiveCall SumOf(const std::vector<float>& in, std::vector<float>& out) {
  CollectiveCall call;
  call.collective = Collective::kAllReduce;
  call.type = DataType::kFloat32;
  call.in = reinterpret_cast<const std::byte*>(in.data());
  call.out = reinterpret_cast<std::byte*>(out.data());
  call.in_layout.length = call.out_layout.length = in.size();
  call.reduce = FindReduce(DataType::kFloat32, ReduceOp::kSum);
  return call;
}
Signature SignatureOf(const CollectiveCall& call) {
  return {0, static_cast<uint8_t>(call.type), 0, -1, call.in_layout.length};
}

// A list of copies of one element on one rank: the price of an operation.
void BM_Operation(benchmark::State& state) {
  constexpr int kOps = 256;
  Schedule schedule;
  for (int i = 0; i < kOps; ++i) {
    schedule.Copy({Buffer::kIn, 0, 1}, {Buffer::kOut, 0, 1});
  }
  const Plan plan = *Bind({schedule}, 0, true);
  Boards boards(1);
  BoardView view(boards.board(0));
  Outbox outbox(kOutbox);
  BoardRun run(view, outbox);
  const std::vector<float> in(1);
  std::vector<float> out(1);
  BoardRun::Setup setup;
  setup.plan = &plan;
  setup.call = SumOf(in, out);
  setup.signature = SignatureOf(setup.call);
  setup.cutting = Cut(1, 4, 1, 32768);
  for (auto _ : state) {
    run.Start(setup);
    while (run.Step() == Poll::kPending) {
    }
  }
  state.SetItemsProcessed(state.iterations() * kOps);
}
BENCHMARK(BM_Operation);

// An 8-byte all-reduce of one rank.
void BM_OneRankLine(benchmark::State& state) {
  Boards boards(1);
  BoardView view(boards.board(0));
  Outbox outbox(kOutbox);
  LineRun run(view, outbox);
  const std::vector<float> in(2);
  std::vector<float> out(2);
  const CollectiveCall call = SumOf(in, out);
  const LinePlan plan = LineRun::Compile(call, SignatureOf(call), 1, 0);
  for (auto _ : state) {
    run.Start(plan, call.in, call.out);
    benchmark::DoNotOptimize(run.Step());
  }
}
BENCHMARK(BM_OneRankLine);

// So many calls of one rank, begun by `start`.
template <typename Run>
void MakeCalls(Run&& start, Work& work, int calls) {
  for (int i = 0; i < calls; ++i) {
    start();
    while (work.Step() == Poll::kPending) CpuPause();
  }
}

void BM_TwoThreadsLine(benchmark::State& state) {
  constexpr int kCalls = 1000;
  for (auto _ : state) {
    Boards boards(2);
    const auto rank = [&](int me) {
      BoardView view(boards.board(me));
      Outbox outbox(kOutbox);
      LineRun run(view, outbox);
      const std::vector<float> in(2);
      std::vector<float> out(2);
      const CollectiveCall call = SumOf(in, out);
      const LinePlan plan = LineRun::Compile(call, SignatureOf(call), 2, me);
      MakeCalls([&] { run.Start(plan, call.in, call.out); }, run, kCalls);
    };
    std::thread other(rank, 1);
    rank(0);
    other.join();
  }
  state.SetItemsProcessed(state.iterations() * kCalls);
}
BENCHMARK(BM_TwoThreadsLine)->UseRealTime();

void BM_TwoThreadsPlan(benchmark::State& state) {
  constexpr int kCalls = 1000;
  const auto elements = static_cast<size_t>(state.range(0)) / sizeof(float);
  for (auto _ : state) {
    Boards boards(2);
    const auto rank = [&](int me) {
      const Plan plan = *Bind(AllReduce("one_shot", 2).schedules, me, true);
      BoardView view(boards.board(me));
      Outbox outbox(kOutbox);
      BoardRun run(view, outbox);
      const std::vector<float> in(elements);
      std::vector<float> out(elements);
      BoardRun::Setup setup;
      setup.plan = &plan;
      setup.call = SumOf(in, out);
      setup.signature = SignatureOf(setup.call);
      setup.cutting =
          Cut(elements, 4, plan.cuts, MaxPieceBytes(plan, kOutbox, 32768));
      setup.outbox_memory = boards.outbox(me);
      setup.outbox_offset = boards.outbox_offset();
      MakeCalls([&] { run.Start(setup); }, run, kCalls);
    };
    std::thread other(rank, 1);
    rank(0);
    other.join();
  }
  state.SetItemsProcessed(state.iterations() * kCalls);
}
BENCHMARK(BM_TwoThreadsPlan)->Arg(8)->Arg(1024)->UseRealTime();

}  // namespace
}  // namespace axon

BENCHMARK_MAIN();
