// SPDX-License-Identifier: Apache-2.0
// The calls of a communicator as tasks: a collective, or a batch of messages
// that progress together. Made by the caller's thread (which fixes their
// order), run by it or by the collective core.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "comm/communicator.h"
#include "comm/message_batch.h"
#include "engine/task.h"

namespace axon {

// What collectives and batches share: counting, deadlines, the first error.
class CallTask : public Task {
 public:
  ~CallTask() override {
    if (!let_go_) comm_.CallDone();
  }
  absl::Status status() const override { return status_; }
  Communicator& comm() const { return comm_; }
  void Behind(const std::string& head) override;
  void LetGo(const void* owner) override;
  // Before it is run: the time runs already.
  void SetDeadline(Deadline deadline) {
    wait_.deadline = deadline;
    timed_ = true;
  }

 protected:
  // The call's limit is `timeout_ms`, or the communicator's if negative.
  CallTask(Communicator& comm, int64_t timeout_ms) : comm_(comm) {
    wait_.timeout_ms = timeout_ms >= 0 ? timeout_ms : comm.timeout_ms();
    comm.CallMade();
  }
  // Looks for what ends the wait; the time runs from the first look.
  void LookFor(absl::Span<const int> peers);
  bool has_waited() const { return timed_; }

  // Its turn has come: it is behind nothing.
  void Begin();
  // Whether it ends before its turn: the communicator has failed, so there is
  // no order to keep, and the turn may never come. status_ says why.
  bool GivenUp();

  Communicator& comm_;
  absl::Status status_;
  Communicator::Wait wait_;

 private:
  bool timed_ = false;
  bool behind_ = false;  // was said to be behind another
  bool let_go_ = false;  // `comm_` may be gone
};

class CollectiveTask final : public CallTask {
 public:
  CollectiveTask(Communicator& comm, CollectiveArgs args,
                 int64_t timeout_ms = -1);
  // Goes on with what the communicator has run quickly so far.
  CollectiveTask(Communicator& comm, const Communicator::Started& started);

  Poll Step() override;
  bool TookStep() override;
  void Look() override;
  void AskToWake() override;
  std::string Describe() const override;

 private:
  Poll End(absl::Status status);
  void SetTexts();

  CollectiveArgs args_;
  uint64_t ticket_;
  Work* work_ = nullptr;  // while it runs
  bool began_ = false;    // a stage of it, since TookStep() was asked
  // Those of args_, sent and received once all ranks have met in the call, and
  // before the next collective's turn.
  MessageBatch messages_;
  bool all_met_ = false;  // so it runs the messages
};

class MessagesTask final : public CallTask {
 public:
  MessagesTask(Communicator& comm, absl::Span<const MessageArgs> messages,
               int64_t timeout_ms = -1);
  // Before it is run: one more message of the same group.
  void Add(const MessageArgs& message) { batch_.Add(message); }

  Poll Step() override;
  bool TookStep() override { return batch_.TookStep(); }
  void Look() override;
  void AskToWake() override;
  std::string Describe() const override;

 private:
  MessageBatch batch_;
};

// Runs tasks on this thread, together, until all are done; the first error.
absl::Status RunBlocking(absl::Span<CallTask* const> tasks);
absl::Status RunBlocking(CallTask& task);

}  // namespace axon
