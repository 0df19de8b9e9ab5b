// SPDX-License-Identifier: Apache-2.0
// A call on its way: made by one thread, run in steps by that thread or by the
// collective core. Owned by whoever runs it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/poll.h"

namespace axon {

class Task {
 public:
  virtual ~Task() = default;

  // Goes on until it is done, has failed or would wait; kPending also when it
  // has worked for a while, so that others get their turn.
  virtual Poll Step() = 0;
  // Whether something has been done or has come since the last time this was
  // asked. If not, AskToWake() still asks the same peers.
  virtual bool TookStep() = 0;
  // Looks at deadlines and dead peers, now and then while it waits. What it
  // finds fails the communicator, and so the next Step().
  virtual void Look() = 0;
  // Asks the peers that it waits for to ring this process's doorbell.
  virtual void AskToWake() = 0;
  // Why it failed.
  virtual absl::Status status() const = 0;
  // Communication counts for a stream's result; events and callbacks do not.
  virtual bool communicates() const { return true; }
  // What it is, for those that wait behind it in a stream.
  virtual std::string Describe() const { return ""; }
  // It waits behind `head` in its stream.
  virtual void Behind(const std::string& head) { (void)head; }
  // If it is one of `owner`'s, it will not be run and touches the owner no
  // more: its next Step() fails. It is not at the head of its stream.
  virtual void LetGo(const void* owner) { (void)owner; }
};

}  // namespace axon
