// SPDX-License-Identifier: Apache-2.0
// Messages of one communicator that progress together, each in its order among
// those of its peer, direction and lane, which is fixed when it is added. Part
// of the call that it belongs to; run by the thread that runs the call.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "comm/communicator.h"
#include "comm/message_run.h"

namespace axon {

class MessageBatch {
 public:
  explicit MessageBatch(Communicator& comm) : comm_(comm) {}

  // By the thread that makes calls, before the first Step().
  void Add(const MessageArgs& message);
  bool empty() const { return parts_.empty(); }

  // kFailed once all messages have ended and one not well: `*status` says why.
  Poll Step(absl::Status* status);
  bool TookStep() { return std::exchange(took_step_, false); }
  void AskToWake();

  // Of the messages that found nothing to do in the last Step() though it was
  // their turn: whose end is the end of the wait. Each once.
  std::vector<int> AwaitedPeers() const;
  // Those messages, and what their peers do, in words.
  std::string DescribeUndone() const;
  std::string DescribePeers() const;

 private:
  struct Part {
    MessageRun run;
    uint64_t ticket;
    bool done = false;
    bool waits = false;  // for its peer
  };
  Turnstile& TurnstileOf(const Part& part);
  // Whether the part is done, well or not: then `*status` says why.
  bool StepPart(Part& part, absl::Status* status);
  std::string Describe(const Part& part) const;
  // Of the parts that `matter`, each once.
  template <typename Matters>
  std::vector<int> PeersOf(Matters matters) const;
  std::vector<int> UndonePeers() const;

  Communicator& comm_;
  std::vector<Part> parts_;
  size_t left_ = 0;
  bool took_step_ = false;
};

}  // namespace axon
