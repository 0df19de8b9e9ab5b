// SPDX-License-Identifier: Apache-2.0
#include "comm/message_run.h"

#include <algorithm>
#include <cstring>

#include "engine/kernels.h"

namespace axon {
namespace {

// Stands before the first bytes of a message.
struct Header {
  uint64_t bytes;
};

}  // namespace

Poll MessageRun::Step() { return args_.send ? Send() : Receive(); }

Poll MessageRun::Send() {
  while (!begun_ || done_ < args_.bytes) {
    const size_t head = begun_ ? 0 : sizeof(Header);
    const size_t n =
        std::min(args_.bytes - done_, channel_->max_message() - head);
    std::byte* to = nullptr;
    const Poll poll = channel_->Reserve(head + n, &to);
    if (poll != Poll::kReady) return poll;
    if (head > 0) {
      const Header header{args_.bytes};
      std::memcpy(to, &header, sizeof(header));
    }
    if (n > 0) {
      CopyBytes(to + head, static_cast<const std::byte*>(args_.buffer) + done_,
                n);
    }
    channel_->Commit();
    begun_ = true;
    done_ += n;
  }
  return Poll::kReady;
}

Poll MessageRun::Receive() {
  while (!begun_ || done_ < args_.bytes) {
    Bytes message;
    const Poll poll = channel_->TryPeek(&message);
    if (poll != Poll::kReady) return poll;
    if (!begun_) {
      Header header{};
      std::memcpy(&header, message.data(), sizeof(header));
      sent_bytes_ = header.bytes;
      if (header.bytes != args_.bytes) {
        mismatch_ = true;
        return Poll::kFailed;
      }
      message.remove_prefix(sizeof(header));
      begun_ = true;
    }
    const size_t n = std::min(message.size(), args_.bytes - done_);
    if (n > 0) {
      CopyBytes(static_cast<std::byte*>(args_.buffer) + done_, message.data(),
                n);
    }
    channel_->Pop();
    done_ += n;
  }
  return Poll::kReady;
}

}  // namespace axon
