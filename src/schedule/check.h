// SPDX-License-Identifier: Apache-2.0
// The exact checker: proves that a set of schedules does what its collective
// states, or says which operation of which rank does not. It runs the lists of
// all ranks once, which decides every interleaving (see walk.h), with an
// ordered expression in each piece and a vector clock on each rank:
//
//   - every piece of `out` holds what the collective states, each contribution
//     once, finished once (`completes`), the same expression on every rank, and
//     in rank order where the algorithm claims it;
//   - nobody waits for ever with so many messages in flight;
//   - nothing is overwritten while a peer may still read it, nothing is read
//     before it is defined, `in` is never written, nothing is out of range;
//   - every message is read, by an operation of the same call and size;
//   - nobody leaves a barrier before all have come.
//
// Whether a rank calls in place changes nothing for the others, so proving all
// ranks in place and none in place proves every mixture. Pure functions.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/types.h"
#include "schedule/algorithms.h"
#include "schedule/schedule.h"

namespace axon {

// One collective call on ranks 0 .. n-1.
struct Call {
  Collective collective = Collective::kAllReduce;
  int root = 0;
  bool rank_order = false;          // claims Algorithm::rank_order
  std::vector<Schedule> schedules;  // of every rank
};

// How messages travel.
enum class Sending {
  // A message is read where it lies. A rank leaves a call when all that it sent
  // has been read (the flush), for its caller may write the buffers at once.
  kByReference,
  // A message is copied when it is sent, into the sender's outbox, and read
  // there. An outbox has `slots` slots; run n writes slot n mod `slots`, and
  // before its first write the rank waits until the readers of run n - slots
  // have announced that they entered the run after that.
  kCopied,
};

struct CheckOptions {
  int credits =
      0;  // messages in flight from one rank to another; 0: any number
  bool in_place = false;
  Sending sending = Sending::kByReference;
  int slots = 0;  // 0: any number
  // Faults that must be found: by how many runs a rank enters a slot too early,
  // and whether it leaves a call without the flush.
  int early = 0;
  bool flush = true;
};

// Ok if `call` is proved. The calls of a sequence follow one another on the
// same ranks, and no rank waits at their borders but as `options` says.
absl::Status Check(const Call& call, const CheckOptions& options);
absl::Status CheckSequence(absl::Span<const Call> calls,
                           const CheckOptions& options);

// A call of a row of the table on ranks used in the given order, 0 .. n-1 if it
// is empty. `root` is a rank.
Call MakeCall(const Algorithm& algorithm, int ranks, int root,
              absl::Span<const int> order = {});

}  // namespace axon
