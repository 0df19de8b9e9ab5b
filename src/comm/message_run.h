// SPDX-License-Identifier: Apache-2.0
// One message of the user over a channel: a header with its size, then the
// bytes in as many channel messages as they need. Belongs to the thread that
// runs it; one run at a time uses a half of a channel.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "base/poll.h"
#include "comm/call_args.h"
#include "transport/channel.h"

namespace axon {

class MessageRun {
 public:
  MessageRun(Channel& channel, const MessageArgs& args)
      : channel_(&channel), args_(args) {}

  Poll Step();
  int peer() const { return args_.peer; }
  int lane() const { return args_.lane; }
  bool sends() const { return args_.send; }
  size_t bytes() const { return args_.bytes; }
  // Of a failed run. A size that differs gives `mismatch()`.
  absl::Status status() const { return channel_->status(); }
  // The size that the peer sent, if it was not the expected one.
  bool mismatch() const { return mismatch_; }
  uint64_t sent_bytes() const { return sent_bytes_; }

 private:
  Poll Send();
  Poll Receive();

  Channel* channel_;
  MessageArgs args_;
  bool begun_ = false;
  bool mismatch_ = false;
  uint64_t sent_bytes_ = 0;
  size_t done_ = 0;  // bytes
};

}  // namespace axon
