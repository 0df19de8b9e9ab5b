// SPDX-License-Identifier: Apache-2.0
// Runs a plan over a board: one call of one rank, from its entry to the point
// where its buffers belong to the caller again. Belongs to the thread that runs
// the rank's calls; reused from call to call, allocates nothing.
//
// A message is copied into the sender's outbox, unless the sender's buffer can
// be read where it lies; the sender alone decides and says so in its line.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "engine/board_view.h"
#include "engine/call.h"
#include "engine/outbox.h"
#include "engine/pass.h"
#include "engine/plan.h"

namespace axon {

// The largest piece for which the slices that a pipeline holds fit side by side
// in an outbox of `outbox_size` bytes.
size_t MaxPieceBytes(const Plan& plan, size_t outbox_size, size_t preferred);

class BoardRun final : public Work {
 public:
  BoardRun(BoardView& view, Outbox& outbox)
      : view_(view),
        outbox_(outbox),
        told_(static_cast<size_t>(view.board().ranks())) {}

  // `outbox_memory` lies at `outbox_offset` in this rank's arena; both 0 if the
  // call stages nothing. `in_place_reads`: buffers that peers can map may be
  // read where they lie. `scratch` has plan.scratch_pieces pieces.
  struct Setup {
    const Plan* plan = nullptr;
    CollectiveCall call;
    Signature signature;
    Cutting cutting;
    std::byte* outbox_memory = nullptr;
    uint64_t outbox_offset = 0;
    bool mapped_reads = false;
    std::byte* scratch = nullptr;
  };
  // Whether the call writes to the outbox.
  static bool Stages(const Setup& setup, const Board& board);

  void Start(const Setup& setup);
  Poll Step() override;
  bool TookStep() override {
    const bool waits_for_another = view_.WaitsForAnother();
    return std::exchange(took_step_, false) || waits_for_another;
  }
  void AskToWake() override { view_.AskToWake(); }

 private:
  enum class State { kEnter, kRun, kDrain, kDone };
  // Operations after which others get their turn: some 100 us.
  static constexpr int kOpsPerStep = 16;

  static Ref MappedRef(const Setup& setup, const Board& board,
                       const std::byte* buffer);
  Poll Enter();
  Poll RunOps(uint32_t until_iteration, uint32_t until_op);
  Poll RunOp(const PlannedOp& op, int slice);
  Poll AwaitIncoming(const PlannedOp& op, int slice);
  // Reads where the peer's data are, once a call, from its line, which has
  // come; whether that can be true of the message.
  bool Believe(const Incoming& incoming);
  Poll AwaitOutbox(int slice);
  Poll Drain();
  void Move(const PlannedOp& op, int slice);
  void Combine(const PlannedOp& op, int slice);
  void AddSources(const PlannedOp& op, int slice);
  void AddDestinations(const PlannedOp& op, int slice);

  static Ref RefOf(const LineBody::Place& place, Buffer buffer) {
    return buffer == Buffer::kIn    ? place.in
           : buffer == Buffer::kOut ? place.out
                                    : 0;
  }
  bool ReadInPlace(Buffer buffer) const {
    return buffer == Buffer::kIn ? in_ref_ != 0
                                 : buffer == Buffer::kOut && out_ref_ != 0;
  }
  Walker Mine(Span span, int slice) const {
    return MemoryOf(setup_.call, setup_.cutting, setup_.scratch, span, slice);
  }
  // Which is believed.
  Walker Message(const Incoming& incoming, int slice) const;
  Walker Box(const PlannedOp& op, int slice) const;
  // Of a rank's outbox.
  SlicesIn SlicesOf(int rank) const {
    return {outbox_.size(), setup_.plan->ranks[rank].units * unit_bytes_,
            setup_.cutting.slices};
  }
  uint32_t DoneBy(int rank, Milestone milestone, int slice) const {
    return DoneAt(setup_.plan->ranks[rank], milestone, slice);
  }
  uint32_t iterations() const {
    return static_cast<uint32_t>(setup_.cutting.slices) +
           setup_.plan->ranks[setup_.plan->me].stages - 1;
  }

  BoardView& view_;
  Outbox& outbox_;
  Setup setup_;
  State state_ = State::kDone;
  bool took_step_ = false;
  int budget_ = 0;  // operations left in this step
  Ref in_ref_ = 0, out_ref_ = 0;
  Outbox::Lease lease_;
  size_t unit_bytes_ = 0;
  uint32_t iteration_ = 0, op_ = 0;
  // What the peers' lines said; of the present call where `call` is.
  struct Told {
    uint64_t call = 0;
    LineBody::Place place;
  };
  std::vector<Told> told_;
  int drained_ = 0;
  int outbox_slice_ = -1;  // space of slices up to this one is free
  Pass pass_;
};

}  // namespace axon
