// SPDX-License-Identifier: Apache-2.0
// One TCP connection that carries frames without ever blocking: whoever owns
// it polls the descriptor and calls Receive() and Flush(). Used by one thread
// at a time.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/fd.h"
#include "base/poll.h"
#include "bootstrap/wire.h"

namespace axon {

class Connection {
 public:
  explicit Connection(Fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  // What to poll for.
  short events() const;  // NOLINT(google-runtime-int): pollfd has one

  // Reads what is there, at most 64 KiB; false: the peer has closed, or the
  // connection broke.
  bool Receive();
  absl::string_view received() const {
    return absl::string_view(in_).substr(in_at_);
  }
  void Consume(size_t size) { in_at_ += size; }
  // Takes the next whole frame; kFailed: its length is not allowed.
  Poll NextFrame(Frame* frame);

  // Queues bytes; the second form needs them unchanged until drained().
  void Send(std::string bytes);
  void SendBorrowed(absl::string_view bytes) { out_.push_back({"", bytes}); }
  // Writes what the kernel takes; false: the connection broke.
  bool Flush();
  bool drained() const { return out_.empty(); }

 private:
  Fd fd_;
  std::string in_;
  size_t in_at_ = 0;  // how much of in_ has been consumed
  // Own bytes, or where the second is not empty a borrowed view.
  std::deque<std::pair<std::string, absl::string_view>> out_;
  size_t out_at_ = 0;  // how much of out_.front() has been written
};

}  // namespace axon
