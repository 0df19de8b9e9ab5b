// SPDX-License-Identifier: Apache-2.0
// The messages of a sequence of calls as the checker sees them, and what each
// rank knows of the others' progress: vector clocks. Events of a rank are
// numbered from 1 over the whole sequence; entering a call and each operation
// are one. Owned by one check; one thread.
#pragma once

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "schedule/check.h"
#include "schedule/expression.h"
#include "schedule/walk.h"

namespace axon {

// clock[q] = k: q's events up to k are known to be done.
using Clock = std::vector<int>;

struct Reader {
  int rank = 0;
  int event = 0;  // of the reader; 0 until it has read
};

struct Message {
  int call = 0;
  std::vector<Expressions::Id> values;
  Clock clock;  // the sender's, once it was sent
  std::vector<Reader> readers;
};

class Traffic {
 public:
  Traffic(int ranks, int calls, const CheckOptions& options);

  void Enter(int rank, int call);
  void Advance(int rank) { ++ranks_[rank].clock[rank]; }

  // A rank may send if peers have credits left and, before its first message of
  // a call, the readers of the slot's last run have entered the run after it.
  bool CanSend(int rank, int call, absl::Span<const int16_t> peers) const;
  // Copied messages: takes the slot of a call, which peers must not be reading:
  // returns one that may, or -1. Before the first message of a call.
  int TakeSlot(int rank, int call);
  bool HasSent(int rank, int call) const {
    return !ranks_[rank].sent[call].empty();
  }
  // One event; returns the message's number.
  int Send(int rank, int call, absl::Span<const int16_t> peers,
           std::vector<Expressions::Id> values);

  bool CanReceive(int rank, absl::Span<const int16_t> peers) const;
  // Part of the rank's present event; the reference holds until the next Send.
  const Message& Receive(int rank, int peer);

  // A rank that `rank` does not know to be done with its message, or -1.
  int MayStillRead(int rank, int message) const;
  // The same for all messages of a call.
  int MayStillReadOf(int rank, int call) const;
  // Waits for the readers of all messages of a call: false while one is not
  // done, else the rank knows that they are.
  bool Flush(int rank, int call);

  // A rank that may not have entered the call as far as `rank` knows, or -1.
  int MayBeMissing(int rank, int call) const;
  // Is there a message that nobody has taken? Its ends.
  std::optional<std::pair<int, int>> Unread() const;

 private:
  // What is on the wire: which message, and which of its readers this is.
  struct Delivery {
    int message = 0;
    int reader = 0;
  };
  struct Rank {
    Clock clock;
    std::vector<std::vector<int>> sent;         // messages, by call
    std::vector<std::optional<Clock>> entries;  // clock on entering, by call
  };

  // The call whose messages lie in the slot of `call`, or -1.
  int RunBefore(int call) const;
  // The call that its readers must have entered, or -1.
  int AwaitedEntry(int call) const;

  const CheckOptions options_;
  std::vector<Rank> ranks_;
  std::vector<Message> messages_;
  Wire<Delivery> wire_;
};

}  // namespace axon
