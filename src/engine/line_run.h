// SPDX-License-Identifier: Apache-2.0
// Runs a call whose input fits into one call line: every rank that contributes
// writes its whole input into its line, every rank that receives reads the
// lines it needs. One exchange of one cache line, no outbox, no plan. It does
// what the `one_shot` or `mesh` schedule of the collective does (a test
// compares them). Belongs to the thread that runs the rank's calls.
#pragma once

#include <utility>

#include "engine/board_view.h"
#include "engine/call.h"

namespace axon {

class LineRun final : public Work {
 public:
  explicit LineRun(BoardView& view) : view_(view) {}

  // Whether a call with that much input (bytes of all blocks) can run here.
  static bool Fits(size_t in_bytes) { return in_bytes <= kInlineBytes; }

  void Start(const CollectiveCall& call, const Signature& signature);
  Poll Step() override;
  bool TookStep() override { return std::exchange(took_step_, false); }
  void AskToWake() override { view_.AskToWake(); }

 private:
  enum class State { kEnter, kRead, kDone };

  bool Contributes(int rank) const;
  bool Reads() const;
  void Write();
  void Finish();
  // The block of rank q's line that is meant for me.
  const std::byte* BlockOf(int q) const;

  BoardView& view_;
  CollectiveCall call_;
  State state_ = State::kDone;
  bool took_step_ = false;
  int next_ = 0;  // the next rank whose line is to be read
  size_t block_bytes_ = 0;
};

}  // namespace axon
