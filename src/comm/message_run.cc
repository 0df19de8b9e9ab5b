// SPDX-License-Identifier: Apache-2.0
#include "comm/message_run.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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
  const size_t until = done_ + std::min(args_.bytes - done_, kBytesPerStep);
  while (!begun_ || done_ < until) {
    const size_t head = begun_ ? 0 : sizeof(Header);
    const size_t n = std::min(until - done_, channel_->max_message() - head);
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
    begun_ = took_step_ = true;
    done_ += n;
  }
  return done_ == args_.bytes ? Poll::kReady : Poll::kPending;
}

Poll MessageRun::Receive() {
  const size_t until = done_ + std::min(args_.bytes - done_, kBytesPerStep);
  while (!begun_ || done_ < until) {
    Bytes piece;
    Poll poll = channel_->TryPeek(&piece);
    if (poll != Poll::kReady) return poll;
    if (!begun_) {
      poll = TakeHeader(&piece);
      if (poll != Poll::kReady) return poll;
    }
    // What the peer wrote is believed as far as it can be true.
    const size_t left = args_.bytes - done_;
    if (piece.size() > left || (piece.empty() && left > 0)) {
      return Refuse(piece.size());
    }
    if (!piece.empty()) {
      CopyBytes(static_cast<std::byte*>(args_.buffer) + done_, piece.data(),
                piece.size());
    }
    channel_->Pop();
    begun_ = took_step_ = true;
    done_ += piece.size();
  }
  return done_ == args_.bytes ? Poll::kReady : Poll::kPending;
}

Poll MessageRun::TakeHeader(Bytes* piece) {
  Header header{};
  if (piece->size() < sizeof(header)) return Refuse(piece->size());
  std::memcpy(&header, piece->data(), sizeof(header));
  sent_bytes_ = header.bytes;
  if (header.bytes != args_.bytes) {
    mismatch_ = true;
    return Poll::kFailed;
  }
  piece->remove_prefix(sizeof(header));
  return Poll::kReady;
}

Poll MessageRun::Refuse(size_t piece_bytes) {
  status_ = absl::InternalError(absl::StrFormat(
      "rank %d sent a piece of %u bytes %s of a message of %u bytes: its "
      "memory has been overwritten",
      args_.peer, piece_bytes,
      begun_ ? absl::StrCat("after ", done_) : "at the begin", args_.bytes));
  return Poll::kFailed;
}

}  // namespace axon
