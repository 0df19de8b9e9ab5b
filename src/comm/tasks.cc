// SPDX-License-Identifier: Apache-2.0
#include "comm/tasks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/waiter.h"

namespace axon {

void CallTask::LookFor(absl::Span<const int> peers) {
  if (!timed_) {
    timed_ = true;
    wait_.deadline = Deadline::In(wait_.timeout_ms);
  }
  comm_.CheckWait(wait_, peers);
}

void CallTask::Behind(const std::string& head) {
  if (let_go_ || std::exchange(behind_, true)) return;
  comm_.SetBusyWith(head);
}

void CallTask::Begin() {
  if (std::exchange(behind_, false)) comm_.SetBusyWith("");
}

void CallTask::LetGo(const void* owner) {
  if (let_go_ || &comm_ != owner) return;
  status_ = comm_.status();
  let_go_ = true;
  comm_.CallDone();
}

bool CallTask::GivenUp() {
  if (let_go_) return true;
  if (!comm_.failed()) return false;
  status_ = comm_.status();
  return true;
}

CollectiveTask::CollectiveTask(Communicator& comm, CollectiveArgs args,
                               int64_t timeout_ms)
    : CallTask(comm, timeout_ms),
      args_(std::move(args)),
      ticket_(comm.collectives().Take()),
      messages_(comm) {
  for (const MessageArgs& message : args_.messages) messages_.Add(message);
  SetTexts();
  comm.NoteMade();
}

CollectiveTask::CollectiveTask(Communicator& comm,
                               const Communicator::Started& started)
    : CallTask(comm, -1),
      ticket_(started.ticket),
      work_(started.work),
      messages_(comm) {
  SetTexts();
}

void CollectiveTask::SetTexts() {
  wait_.what = [this] {
    return all_met_ ? absl::StrFormat("%s (%s)", comm_.DescribeCall(),
                                      messages_.DescribeUndone())
                    : comm_.DescribeCall();
  };
  wait_.others = [this] {
    return all_met_ ? messages_.DescribePeers() : comm_.DescribeLaggards();
  };
}

Poll CollectiveTask::Step() {
  if (work_ == nullptr) {
    if (GivenUp()) return Poll::kFailed;
    if (!comm_.collectives().MyTurn(ticket_)) return Poll::kPending;
    Begin();
    absl::StatusOr<Work*> work = comm_.Start(args_);
    if (!work.ok()) return End(work.status());
    work_ = *work;
    began_ = true;
  }
  if (!all_met_) {
    const Poll poll = work_->Step();
    if (poll == Poll::kPending && !comm_.failed()) return poll;
    if (poll != Poll::kReady) return End(comm_.status());
    if (messages_.empty()) return End(absl::OkStatus());
    all_met_ = began_ = true;
  }
  if (messages_.Step(&status_) == Poll::kPending) return Poll::kPending;
  return End(status_);
}

Poll CollectiveTask::End(absl::Status status) {
  work_ = nullptr;
  status_ = std::move(status);
  // A failed call's wait stays on record: dumps tell what it was.
  if (has_waited() && status_.ok()) comm_.NoteDone();
  comm_.Done(comm_.collectives());
  return status_.ok() ? Poll::kReady : Poll::kFailed;
}

bool CollectiveTask::TookStep() {
  // Having begun is a step: its peers were never asked to wake us.
  const bool began = std::exchange(began_, false);
  if (all_met_) return messages_.TookStep() || began;
  return (work_ != nullptr && work_->TookStep()) || began;
}

void CollectiveTask::Look() {
  if (work_ == nullptr) return;
  comm_.NoteWaiting();
  LookFor(all_met_ ? messages_.AwaitedPeers() : comm_.NeededPeers());
}

void CollectiveTask::AskToWake() {
  if (work_ == nullptr) return;
  if (all_met_) return messages_.AskToWake();
  work_->AskToWake();
}

std::string CollectiveTask::Describe() const {
  // Before its turn the present call is another's, and perhaps another
  // thread's.
  return absl::StrFormat(
      "%s of communicator '%s'",
      work_ != nullptr ? comm_.DescribeCall() : Name(args_.collective),
      comm_.name());
}

MessagesTask::MessagesTask(Communicator& comm,
                           absl::Span<const MessageArgs> messages,
                           int64_t timeout_ms)
    : CallTask(comm, timeout_ms), batch_(comm) {
  wait_.what = [this] { return batch_.DescribeUndone(); };
  wait_.others = [this] { return batch_.DescribePeers(); };
  for (const MessageArgs& message : messages) Add(message);
}

Poll MessagesTask::Step() {
  if (GivenUp()) return Poll::kFailed;
  Begin();
  return batch_.Step(&status_);
}

std::string MessagesTask::Describe() const {
  return absl::StrFormat("%s of communicator '%s'", batch_.DescribeUndone(),
                         comm_.name());
}

void MessagesTask::Look() { LookFor(batch_.AwaitedPeers()); }

void MessagesTask::AskToWake() { batch_.AskToWake(); }

namespace {

// Steps every task; true if something was done. Finished ones become null.
bool StepAll(std::vector<Task*>& tasks, absl::Status* first_error) {
  bool stepped = false;
  for (Task*& task : tasks) {
    if (task == nullptr) continue;
    const Poll poll = task->Step();
    if (poll == Poll::kPending) {
      stepped = task->TookStep() || stepped;
      continue;
    }
    if (poll == Poll::kFailed && first_error->ok()) {
      *first_error = task->status();
    }
    task = nullptr;
    stepped = true;
  }
  return stepped;
}

}  // namespace

absl::Status RunBlocking(CallTask& task) {
  const Poll poll = task.Step();
  if (poll == Poll::kReady) return absl::OkStatus();
  if (poll == Poll::kFailed) return task.status();
  CallTask* const one[] = {&task};
  return RunBlocking(one);
}

absl::Status RunBlocking(absl::Span<CallTask* const> calls) {
  absl::Status first_error;
  std::vector<Task*> tasks(calls.begin(), calls.end());
  if (tasks.empty()) return first_error;
  Communicator& comm = calls[0]->comm();
  Waiter waiter(comm.process().doorbell(), comm.wait_policy(),
                comm.learned_spins());
  const auto any = [&] {
    return std::any_of(tasks.begin(), tasks.end(),
                       [](const Task* t) { return t != nullptr; });
  };
  while (any()) {
    const bool look = StepAll(tasks, &first_error)
                          ? waiter.Stepped()
                          : waiter.Wait(
                                [&] {
                                  for (Task* task : tasks) {
                                    if (task != nullptr) task->AskToWake();
                                  }
                                },
                                [&] { return StepAll(tasks, &first_error); });
    if (!look) continue;
    for (Task* task : tasks) {
      if (task != nullptr) task->Look();
    }
  }
  return first_error;
}

}  // namespace axon
