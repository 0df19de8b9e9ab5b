// SPDX-License-Identifier: Apache-2.0
// One message of the user over a channel: a header with its size, then the
// bytes in as many channel messages as they need. A step moves no more than
// kBytesPerStep, so that others get their turn. Belongs to the thread that runs
// it; one run at a time uses a half of a channel.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "base/poll.h"
#include "comm/call_args.h"
#include "transport/channel.h"

namespace axon {

class MessageRun {
 public:
  // Some 100 us.
  static constexpr size_t kBytesPerStep = 512 << 10;

  MessageRun(Channel& channel, const MessageArgs& args)
      : channel_(&channel), args_(args) {}

  Poll Step();
  // Whether something has been moved since this was asked last.
  bool TookStep() { return std::exchange(took_step_, false); }
  int peer() const { return args_.peer; }
  int lane() const { return args_.lane; }
  bool sends() const { return args_.send; }
  size_t bytes() const { return args_.bytes; }
  // Of a failed run. A size that differs gives `mismatch()`.
  absl::Status status() const {
    return status_.ok() ? channel_->status() : status_;
  }
  // The size that the peer sent, if it was not the expected one.
  bool mismatch() const { return mismatch_; }
  uint64_t sent_bytes() const { return sent_bytes_; }

 private:
  Poll Send();
  Poll Receive();
  // Takes the message's size off its first piece.
  Poll TakeHeader(Bytes* piece);
  // The piece holds what cannot be.
  Poll Refuse(size_t piece_bytes);

  Channel* channel_;
  MessageArgs args_;
  bool begun_ = false;
  bool mismatch_ = false;
  bool took_step_ = false;
  uint64_t sent_bytes_ = 0;
  size_t done_ = 0;  // bytes
  absl::Status status_;
};

}  // namespace axon
