// SPDX-License-Identifier: Apache-2.0
// The ranks of one proof, side by side: who has come how far, what each knows
// of the others, and what lies in outboxes, lines and buffers. Owned by Prove;
// one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/outbox.h"
#include "engine/prove.h"
#include "engine/prove_cells.h"
#include "engine/prove_pairs.h"

namespace axon {

struct SentMessage {
  uint64_t number = 0;             // 0: not sent yet
  uint32_t step = 0;               // of its sender
  std::vector<uint64_t> contents;  // of the buffer's cells, if read there
};

// What one call has besides its plans.
struct CallFacts {
  std::vector<RankPairs> pairs;                    // by rank
  std::vector<std::vector<SentMessage>> messages;  // by rank; slice by slice
  std::vector<std::vector<Cell>> memory;  // by rank: pieces of in and out
  std::vector<uint64_t> lease;            // by rank: as its line says
};

enum class RankState { kBegin, kEnter, kRun, kDrain };

struct ProofRank {
  ProofRank(size_t ranks, const ProveOptions& options)
      : clock(ranks, 0),
        outbox(options.outbox),
        box(outbox.size()),
        lines(options.lines),
        peer_count(ranks, Count(1, 0)),
        peer_line(ranks, 0) {
    progress.Store(Count(1, 0), clock);
  }

  size_t call = 0;  // its index
  RankState state = RankState::kBegin;
  uint32_t iteration = 0, op = 0;
  Outbox::Lease lease;
  size_t done = 0;  // operations of the call
  int outbox_slice = -1;
  std::vector<int> scratch;  // whose slice is in each piece
  uint64_t writes = 0;

  Clock clock;
  Published progress;
  std::vector<Clock> posted;  // when the line of each call was
  Outbox outbox;
  std::vector<Cell> box;
  std::vector<Cell> lines;

  // What it knows, as BoardView does.
  uint64_t floor = 0;
  std::vector<uint64_t> peer_count;
  std::vector<uint64_t> peer_line;
};

class Proof {
 public:
  Proof(absl::Span<const BoundCall* const> calls, const ProveOptions& options)
      : calls_(calls), options_(options), n_(calls[0]->plans.size()) {
    for (size_t r = 0; r < n_; ++r) ranks_.emplace_back(n_, options);
  }

  absl::Status Run();

 private:
  // Keeps the first error; false, for the caller to return.
  bool Fail(size_t r, absl::string_view what);

  const BoundCall& CallOf(size_t r) const { return *calls_[ranks_[r].call]; }
  CallFacts& FactsOf(size_t r) { return facts_[ranks_[r].call]; }
  // The rank's plan; what it believes of a peer.
  const Plan& PlanOf(size_t r) const { return CallOf(r).plans[r]; }
  const RankShape& ShapeOf(size_t r, size_t peer) const {
    return PlanOf(r).ranks[peer];
  }
  Reach ReachOf(size_t call, size_t r) const {
    const BoundCall& c = *calls_[call];
    return c.reach.empty() ? Reach{} : c.reach[r];
  }
  bool Reaches(size_t call, size_t r, Buffer buffer) const {
    const Reach reach = ReachOf(call, r);
    return buffer == Buffer::kIn ? reach.in
                                 : buffer == Buffer::kOut && reach.out;
  }
  SlicesIn SlicesOf(size_t r, size_t peer) const {
    return {ranks_[peer].box.size(), ShapeOf(r, peer).units * CallOf(r).unit,
            CallOf(r).slices};
  }
  uint32_t Number(size_t r) const {
    return static_cast<uint32_t>(ranks_[r].call) + 1;
  }

  absl::Status AddFacts(const BoundCall& call);
  // One step of BoardRun. False: it waits.
  bool Step(size_t r);

  uint32_t Iterations(size_t r) const {
    return static_cast<uint32_t>(CallOf(r).slices) + ShapeOf(r, r).stages - 1;
  }

  // How a rank moves and waits: as BoardRun, BoardView and Outbox do it. Those
  // that return bool return false where the rank waits or has failed.
  void Begin(size_t r);
  bool Enter(size_t r);
  bool AwaitFinished(size_t r, uint64_t call);
  bool AwaitCount(size_t r, size_t q, uint64_t target);
  bool AwaitDone(size_t r, size_t q, Milestone milestone, int slice) {
    return AwaitCount(
        r, q, Count(Number(r), DoneAt(ShapeOf(r, q), milestone, slice)));
  }
  bool AwaitLine(size_t r, size_t q);

  // The next operation of a slice that exists; false if it waits.
  bool RunNext(size_t r);
  bool AwaitIncoming(size_t r, const PlannedOp& op, int slice);
  bool AwaitOutbox(size_t r, int slice);

  // Until all have read what this rank sent in the slice.
  bool AwaitReaders(size_t r, int slice);
  bool Drain(size_t r);

  // The caller may write its buffers at once, and so does here.
  bool Leave(size_t r);

  // What an operation does to memory. The operation itself: reads, then writes,
  // then sends.
  bool Do(size_t r, const PlannedOp& op, int slice);

  // Scratch that is read must be of the same slice.
  bool OwnScratch(size_t r, Span span, int slice);
  bool Write(size_t r, Cell& cell);
  bool WriteSpan(size_t r, const PlannedOp& op, int slice);

  // The i-th piece of a span of `in` or `out` of rank q; null if there is none.
  Cell* CellOf(size_t q, size_t call, Span span, int i, int slice);
  bool Send(size_t r, const PlannedOp& op, int slice, int number);
  bool ReadMessage(size_t r, const Incoming& in, int slice, SendName name);
  bool ReadInPlace(size_t r, size_t q, Span span, int slice,
                   const SentMessage& message);
  bool ReadCopy(size_t r, size_t q, const Incoming& in, int slice,
                const SentMessage& message);

  const absl::Span<const BoundCall* const> calls_;
  const ProveOptions options_;
  const size_t n_;
  std::vector<ProofRank> ranks_;
  std::vector<CallFacts> facts_;  // by call
  uint64_t messages_ = 0;
  absl::Status status_;
};

}  // namespace axon
