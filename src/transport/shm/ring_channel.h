// SPDX-License-Identifier: Apache-2.0
// A channel in shared memory: a ring of messages in the sender's arena, made
// when the first message is sent, read by one peer. The sender alone writes the
// ring; the receiver's progress stands in the receiver's own block, so neither
// writes into the other's memory. Each half belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "transport/board.h"
#include "transport/channel.h"

namespace axon {

// The begin of a ring; `capacity` bytes of messages follow.
struct RingHeader {
  // Bytes sent since the ring was made. Writer: the sender, with release after
  // the message; reader: the receiver, with acquire.
  alignas(kCacheLine) std::atomic<uint64_t> sent;
  uint64_t capacity;
};

class RingChannel final : public Channel {
 public:
  // Gives memory of this rank's arena; it is kept as long as the communicator.
  using Allocate = std::function<absl::StatusOr<std::byte*>(size_t)>;

  // `ring_size` is the same on all ranks.
  RingChannel(Board& board, int peer, size_t ring_size, Allocate allocate,
              int lane = kUserLane);

  size_t max_message() const override;
  Poll Reserve(size_t size, std::byte** message) override;
  void Commit() override;
  Poll TryPeek(Bytes* message) override;
  void Pop() override;
  Poll Flush() override;
  absl::Status status() const override;

 private:
  Poll OpenForSending();
  Poll OpenForReceiving();
  // Keeps the first reason; kFailed.
  Poll Die(absl::Status why);
  // The peer's ring or block holds what cannot be.
  Poll Refuse(const std::string& what);
  // Looks how much the peer has taken: kReady, or kFailed.
  Poll LookForTaken();

  Board& board_;
  const int peer_;
  const int lane_;
  const size_t ring_size_;
  Allocate allocate_;
  mutable std::mutex status_mutex_;  // guards what follows: both halves fail
  absl::Status status_;
  // Sending half.
  RingHeader* ring_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t sent_ = 0;
  uint64_t taken_ = 0;     // as last seen
  uint64_t reserved_ = 0;  // end of the reserved message
  // Receiving half.
  const RingHeader* peer_ring_ = nullptr;
  const std::byte* peer_data_ = nullptr;
  uint64_t received_ = 0;
  uint64_t peer_sent_ = 0;  // as last seen
  uint64_t peeked_ = 0;     // end of the peeked message
};

}  // namespace axon
