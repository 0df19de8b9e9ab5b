// SPDX-License-Identifier: Apache-2.0
// Runs a small call in one exchange: every rank that contributes shows its
// whole input, every rank that receives reads what it needs of it. Up to
// kInlineBytes lie in the call line itself; more lie in the outbox, and the
// line says where. It is a compiled plan: it does what the `one_shot` or `mesh`
// schedule of the collective does (a test compares them), without a walk over
// operations. Belongs to the thread that runs the rank's calls.
#pragma once

#include <utility>

#include "engine/board_view.h"
#include "engine/call.h"
#include "engine/outbox.h"

namespace axon {

// What is the same in all calls of one shape on one rank. A plain value.
struct LinePlan {
  CollectiveCall call;  // the buffers do not count
  Signature signature;
  size_t block_bytes = 0;   // of one rank's part
  size_t in_bytes = 0;      // of all input of a rank that contributes
  size_t mine_at = 0;       // where my block begins in a peer's input
  bool inlined = false;     // the input lies in the line
  bool writes = false;      // I contribute
  bool reads = false;       // I receive
  bool all_enter = false;   // everybody contributes, and I read them all
  bool at_once = false;     // so it is, and inlined: see Run
  int first = 0, last = 0;  // contributors: ranks [first, last)
  std::byte* outbox_memory = nullptr;  // unless inlined
  uint64_t outbox_offset = 0;          // of it in my arena
};

class LineRun final : public Work {
 public:
  // Outboxes have room for this much and more.
  static constexpr size_t kMostBytes = 16 << 10;

  LineRun(BoardView& view, Outbox& outbox);

  // The input of one rank that a call of `count` elements a block shows.
  static size_t InBytes(Collective collective, int ranks, size_t block_bytes);
  static LinePlan Compile(const CollectiveCall& call,
                          const Signature& signature, int ranks, int me);

  // `plan` and the buffers are borrowed until the run is done.
  // `plan.outbox_memory` is set by the caller where the call needs it (not
  // inlined, and writes).
  void Start(const LinePlan& plan, const std::byte* in, std::byte* out,
             double factor = 1);
  Poll Step() override;
  // Start and the first Step, of a call without a factor.
  Poll Run(const LinePlan& plan, const std::byte* in, std::byte* out);
  bool TookStep() override {
    const bool waits_for_another = view_.WaitsForAnother();
    return std::exchange(took_step_, false) || waits_for_another;
  }
  void AskToWake() override { view_.AskToWake(); }

 private:
  enum class State { kEnter, kRead, kDone };

  // What the steps to come must know.
  void Keep(const LinePlan& plan, const std::byte* in, std::byte* out,
            State state, int next);
  // In steps from here.
  Poll GoOn(const LinePlan& plan, const std::byte* in, std::byte* out,
            State state, int next);
  void Write();
  // Reads the lines that have come; kReady when all have.
  Poll Read();
  // Takes what rank q's line, which has come, tells of its outbox; false if
  // that cannot be true.
  bool TakeStaged(int q);
  void Combine(const LinePlan& plan);
  void Reduce(const CollectiveCall& call);
  void ReduceScaled(const CollectiveCall& call);
  void Copy(const LinePlan& plan);
  void Finish();

  BoardView& view_;
  Outbox& outbox_;
  const LinePlan* plan_ = nullptr;
  const std::byte* in_ = nullptr;
  void* out_ = nullptr;
  double factor_ = 1;
  Outbox::Lease lease_;
  State state_ = State::kDone;
  bool took_step_ = false;
  int next_ = 0;  // the next rank whose line is to be read
  // The block of each rank's input that is meant for me.
  const void* blocks_[kMaxLocalRanks] = {};
  ReduceArgs reduction_;  // of blocks_ into out_
};

}  // namespace axon
