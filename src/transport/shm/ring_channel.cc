// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/ring_channel.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace axon {
namespace {

// Before every message; also fills the rest of the ring where a message does
// not fit before its end.
struct MessageHeader {
  // Bytes of the message, or kSkip. Writer: the sender; reader: the receiver.
  // Relaxed: `sent` publishes it; atomic, so that what was checked is what is
  // used, whoever overwrites it.
  std::atomic<uint64_t> size;
};
constexpr uint64_t kSkip = ~uint64_t{0};

// A message with its header, rounded so that the next header is aligned and a
// small message has a cache line of its own.
uint64_t Footprint(uint64_t size) {
  return RoundUp(sizeof(MessageHeader) + size, kCacheLine);
}

}  // namespace

RingChannel::RingChannel(Board& board, int peer, size_t ring_size,
                         Allocate allocate, int lane)
    : board_(board),
      peer_(peer),
      lane_(lane),
      ring_size_(ring_size / kCacheLine * kCacheLine),
      allocate_(std::move(allocate)) {}

size_t RingChannel::max_message() const {
  // Half the ring, so that a message fits whatever the place.
  return (ring_size_ / 2) / kCacheLine * kCacheLine - sizeof(MessageHeader);
}

Poll RingChannel::OpenForSending() {
  absl::StatusOr<std::byte*> memory =
      allocate_(sizeof(RingHeader) + ring_size_);
  if (!memory.ok()) return Die(memory.status());
  ring_ = new (*memory) RingHeader();
  ring_->capacity = ring_size_;
  data_ = *memory + sizeof(RingHeader);
  const auto offset =
      static_cast<uint64_t>(*memory - board_.member(board_.me()).arena);
  // release: the header comes before.
  board_.mine()
      .peer(peer_, lane_)
      ->ring.store(offset, std::memory_order_release);
  return Poll::kReady;
}

Poll RingChannel::Reserve(size_t size, std::byte** message) {
  if (ring_ == nullptr && OpenForSending() != Poll::kReady) {
    return Poll::kFailed;
  }
  if (size > max_message()) {
    return Die(absl::InternalError(absl::StrFormat(
        "a message of %u bytes is larger than %u", size, max_message())));
  }
  const uint64_t need = Footprint(size);
  const uint64_t to_end = ring_size_ - sent_ % ring_size_;
  const uint64_t skip = need > to_end ? to_end : 0;
  if (sent_ + skip + need - taken_ > ring_size_) {
    if (LookForTaken() == Poll::kFailed) return Poll::kFailed;
    if (sent_ + skip + need - taken_ > ring_size_) return Poll::kPending;
  }
  const auto put = [this](uint64_t position, uint64_t value) {
    std::byte* at = data_ + position % ring_size_;
    reinterpret_cast<MessageHeader*>(at)->size.store(value,
                                                     std::memory_order_relaxed);
    return at;
  };
  if (skip > 0) put(sent_, kSkip);
  std::byte* at = put(sent_ + skip, size);
  reserved_ = sent_ + skip + need;
  *message = at + sizeof(MessageHeader);
  return Poll::kReady;
}

Poll RingChannel::LookForTaken() {
  // acquire: the receiver's reads of what will be overwritten come before.
  const uint64_t taken = board_.block(peer_)
                             .peer(board_.me(), lane_)
                             ->taken.load(std::memory_order_acquire);
  // What the peer wrote is believed as far as it can be true.
  if (taken - taken_ > sent_ - taken_) {
    return Refuse(absl::StrFormat(
        "has taken %u bytes of messages after %u, of %u that were sent", taken,
        taken_, sent_));
  }
  taken_ = taken;
  return Poll::kReady;
}

void RingChannel::Commit() {
  sent_ = reserved_;
  ring_->sent.store(sent_, std::memory_order_release);
  board_.Published();
}

Poll RingChannel::OpenForReceiving() {
  // acquire: the ring's header comes before its offset.
  const uint64_t offset = board_.block(peer_)
                              .peer(board_.me(), lane_)
                              ->ring.load(std::memory_order_acquire);
  if (offset == 0) return Poll::kPending;
  std::byte* memory =
      board_.InArena(peer_, offset, sizeof(RingHeader) + ring_size_);
  if (memory == nullptr || offset % kCacheLine != 0 ||
      reinterpret_cast<RingHeader*>(memory)->capacity != ring_size_) {
    return Die(absl::InternalError(
        absl::StrFormat("the ring of %s lies where none can be or has another "
                        "size",
                        board_.Describe(peer_))));
  }
  peer_ring_ = reinterpret_cast<RingHeader*>(memory);
  peer_data_ = memory + sizeof(RingHeader);
  return Poll::kReady;
}

Poll RingChannel::TryPeek(Bytes* message) {
  if (peer_ring_ == nullptr) {
    const Poll open = OpenForReceiving();
    if (open != Poll::kReady) return open;
  }
  for (;;) {
    if (peer_sent_ == received_) {
      peer_sent_ = peer_ring_->sent.load(std::memory_order_acquire);
      if (peer_sent_ == received_) return Poll::kPending;
    }
    // What the peer wrote is believed as far as it can be true.
    const std::byte* at = peer_data_ + received_ % ring_size_;
    const uint64_t to_end = ring_size_ - received_ % ring_size_;
    const uint64_t there = peer_sent_ - received_;
    if (there > ring_size_ || there % kCacheLine != 0) {
      return Refuse(absl::StrFormat(
          "has sent %u bytes of messages after %u in a ring of %u", peer_sent_,
          received_, ring_size_));
    }
    const uint64_t size = reinterpret_cast<const MessageHeader*>(at)->size.load(
        std::memory_order_relaxed);
    if (size == kSkip) {
      // A message follows at the ring's begin.
      if (to_end == ring_size_ || there <= to_end) {
        return Refuse(absl::StrFormat("skips %u bytes of %u", to_end, there));
      }
      received_ += to_end;
      continue;
    }
    if (size > max_message() || Footprint(size) > std::min(to_end, there)) {
      return Refuse(absl::StrFormat(
          "sent a message of %u bytes where at most %u can be", size,
          std::min<uint64_t>(max_message(),
                             std::min(to_end, there) - sizeof(MessageHeader))));
    }
    peeked_ = received_ + Footprint(size);
    *message = Bytes(at + sizeof(MessageHeader), size);
    return Poll::kReady;
  }
}

Poll RingChannel::Refuse(const std::string& what) {
  return Die(absl::InternalError(absl::StrCat(
      board_.Describe(peer_), " ", what, ": its memory has been overwritten")));
}

Poll RingChannel::Die(absl::Status why) {
  std::lock_guard<std::mutex> lock(status_mutex_);
  if (status_.ok()) status_ = std::move(why);
  return Poll::kFailed;
}

absl::Status RingChannel::status() const {
  std::lock_guard<std::mutex> lock(status_mutex_);
  return status_;
}

void RingChannel::Pop() {
  received_ = peeked_;
  // release: my reads of the message come before the sender may overwrite it.
  board_.mine()
      .peer(peer_, lane_)
      ->taken.store(received_, std::memory_order_release);
  board_.Published();
}

Poll RingChannel::Flush() {
  if (taken_ == sent_) return Poll::kReady;
  if (LookForTaken() == Poll::kFailed) return Poll::kFailed;
  return taken_ == sent_ ? Poll::kReady : Poll::kPending;
}

}  // namespace axon
