// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/ring_channel.h"

#include <algorithm>
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
  uint64_t size;  // bytes of the message, or kSkip
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
    // acquire: the receiver's reads of what will be overwritten come before.
    taken_ = board_.block(peer_)
                 .peer(board_.me(), lane_)
                 ->taken.load(std::memory_order_acquire);
    if (sent_ + skip + need - taken_ > ring_size_) return Poll::kPending;
  }
  if (skip > 0) {
    reinterpret_cast<MessageHeader*>(data_ + sent_ % ring_size_)->size = kSkip;
  }
  std::byte* at = data_ + (sent_ + skip) % ring_size_;
  reinterpret_cast<MessageHeader*>(at)->size = size;
  reserved_ = sent_ + skip + need;
  *message = at + sizeof(MessageHeader);
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
  if (memory == nullptr ||
      reinterpret_cast<RingHeader*>(memory)->capacity != ring_size_) {
    return Die(absl::InternalError(
        absl::StrFormat("the ring of %s lies outside its arena or has another "
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
    const uint64_t size = reinterpret_cast<const MessageHeader*>(at)->size;
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
  taken_ = board_.block(peer_)
               .peer(board_.me(), lane_)
               ->taken.load(std::memory_order_acquire);
  return taken_ == sent_ ? Poll::kReady : Poll::kPending;
}

}  // namespace axon
