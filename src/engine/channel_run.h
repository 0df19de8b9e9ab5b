// SPDX-License-Identifier: Apache-2.0
// Runs one rank's schedule over channels, one to each peer: one call from its
// begin to the point where its buffers belong to the caller again. Belongs to
// the thread that runs the rank's calls; reused from call to call.
//
// A message of the schedule is one message of a channel, so that what the
// checker proves for so many credits holds here; long vectors run slice by
// slice, cut so that the longest message fits. Copies and reductions write into
// the message itself and read from it. Where the result of an operation is sent
// next, both are written in one pass, if there is a credit at once.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/call.h"
#include "engine/pass.h"
#include "schedule/schedule.h"
#include "transport/channel.h"

namespace axon {

// The largest piece, for Cut(), with which every message of these schedules,
// one of each rank, fits into `max_message` bytes; 0 if none does.
size_t MaxPieceBytes(absl::Span<const Schedule> all, const CollectiveCall& call,
                     size_t max_message);

class ChannelRun final : public Work {
 public:
  // channels[r] leads to rank r; the one of `me` is not used.
  ChannelRun(int me, std::vector<Channel*> channels)
      : me_(me), channels_(std::move(channels)) {}

  // The same on all ranks, but for schedule and buffers. `scratch` has
  // schedule->scratch_pieces pieces.
  struct Setup {
    const Schedule* schedule = nullptr;
    CollectiveCall call;
    Cutting cutting;
    std::byte* scratch = nullptr;
  };
  void Start(const Setup& setup);

  Poll Step() override;
  bool TookStep() override { return std::exchange(took_step_, false); }
  // Channels ring no doorbell: who waits for one looks at it again.
  void AskToWake() override {}
  // Why Step() returned kFailed: what a channel says, or a message that does
  // not belong here.
  const absl::Status& status() const { return status_; }
  // "slice 1 of 3, operation 4 of 9", for dumps.
  std::string Describe() const;

 private:
  // Operations after which others get their turn.
  static constexpr int kOpsPerStep = 16;

  Poll RunOp(const Op& op);
  Poll RunSend(const Op& op);
  Poll AwaitIncoming(const Op& op);
  // The send of `op`'s result that follows it at once, or null.
  const Op* SendOfResult(const Op& op) const;
  // Makes the messages to peers that have not got theirs destinations of this
  // pass, as far as there are credits.
  Poll ReserveMessages(const Op& send);
  void CommitMessages(const Op& send);
  void Write(const Op& op);
  Poll Fail(int peer, const char* doing);

  size_t BytesOf(Span span) const;
  Walker Mine(Span span) const {
    return MemoryOf(setup_.call, setup_.cutting, setup_.scratch, span, slice_);
  }

  const int me_;
  const std::vector<Channel*> channels_;
  Setup setup_;
  absl::Status status_;
  bool took_step_ = false;
  int slice_ = 0;
  size_t op_ = 0;
  // Peers of the present send, or of the one next, whose messages have gone
  // out; and those whose messages are reserved in this pass.
  size_t sent_ = 0, reserved_ = 0;
  std::vector<Bytes> incoming_;
  Pass pass_;
};

}  // namespace axon
