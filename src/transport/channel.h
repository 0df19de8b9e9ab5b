// SPDX-License-Identifier: Apache-2.0
// Ordered messages to and from one peer. A transport makes one for each (peer,
// lane); it belongs to its communicator and its sending and its receiving half
// may each be used by one thread at a time.
//
// Nothing here waits: kPending means try again, kFailed means that the channel
// is dead and status() says why.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "base/bytes.h"
#include "base/poll.h"

namespace axon {

class Channel {
 public:
  virtual ~Channel() = default;

  // The largest message, in bytes; the same on both sides.
  virtual size_t max_message() const = 0;

  // Space for the next message of `size` <= max_message() bytes, to be written
  // in place. kPending: no credit. Reserving again before Commit gives the same
  // place.
  virtual Poll Reserve(size_t size, std::byte** message) = 0;
  // Sends the reserved message.
  virtual void Commit() = 0;

  // The next message where it lies, valid until Pop.
  virtual Poll TryPeek(Bytes* message) = 0;
  // Gives the peeked message's space back.
  virtual void Pop() = 0;

  // kReady when the peer has popped all that was committed.
  virtual Poll Flush() = 0;

  // Why a call returned kFailed; either half may ask.
  virtual absl::Status status() const = 0;
};

// The copying forms.
Poll TrySend(Channel& channel, Bytes message);
// The message must have exactly `to.size()` bytes, else kFailed.
Poll TryRecv(Channel& channel, MutableBytes to);

}  // namespace axon
