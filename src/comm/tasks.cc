// SPDX-License-Identifier: Apache-2.0
#include "comm/tasks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
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

bool CallTask::Aborted() {
  if (let_go_) return true;
  if (!comm_.aborted()) return false;
  status_ = comm_.status();
  return true;
}

CollectiveTask::CollectiveTask(Communicator& comm, CollectiveArgs args,
                               int64_t timeout_ms)
    : CallTask(comm, timeout_ms),
      args_(std::move(args)),
      ticket_(comm.collectives().Take()) {
  SetTexts();
  comm.NoteMade();
}

CollectiveTask::CollectiveTask(Communicator& comm,
                               const Communicator::Quick& started)
    : CallTask(comm, -1), ticket_(started.ticket), work_(started.work) {
  SetTexts();
}

void CollectiveTask::SetTexts() {
  wait_.what = [this] { return comm_.DescribeCall(); };
  wait_.others = [this] { return comm_.DescribeLaggards(); };
}

Poll CollectiveTask::Step() {
  if (work_ == nullptr) {
    if (Aborted()) return Poll::kFailed;
    if (!comm_.collectives().MyTurn(ticket_)) return Poll::kPending;
    Begin();
    absl::StatusOr<Work*> work = comm_.Start(args_);
    if (!work.ok()) return End(work.status());
    work_ = *work;
    began_ = true;
  }
  const Poll poll = work_->Step();
  if (poll == Poll::kReady) return End(absl::OkStatus());
  if (poll == Poll::kPending && !comm_.failed()) return poll;
  return End(comm_.status());
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
  return (work_ != nullptr && work_->TookStep()) || began;
}

void CollectiveTask::Look() {
  if (work_ == nullptr) return;
  comm_.NoteWaiting();
  LookFor(comm_.NeededPeers());
}

void CollectiveTask::AskToWake() {
  if (work_ != nullptr) work_->AskToWake();
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
    : CallTask(comm, timeout_ms) {
  wait_.what = [this] { return DescribeUndone(); };
  wait_.others = [this] { return DescribePeers(); };
  for (const MessageArgs& message : messages) Add(message);
}

void MessagesTask::Add(const MessageArgs& message) {
  parts_.push_back(
      {MessageRun(comm_.channel(message.peer, message.lane), message),
       comm_.messages(message.peer, message.lane, message.send).Take()});
  ++left_;
}

Turnstile& MessagesTask::TurnstileOf(const Part& part) {
  return comm_.messages(part.run.peer(), part.run.lane(), part.run.sends());
}

Poll MessagesTask::Step() {
  if (Aborted()) return Poll::kFailed;
  Begin();
  for (Part& part : parts_) {
    if (part.done || !StepPart(part)) continue;
    part.done = took_step_ = true;
    --left_;
    comm_.Done(TurnstileOf(part));
  }
  if (left_ > 0) return Poll::kPending;
  return status_.ok() ? Poll::kReady : Poll::kFailed;
}

bool MessagesTask::StepPart(Part& part) {
  // A failed communicator's messages end in their order too.
  if (!TurnstileOf(part).MyTurn(part.ticket)) return false;
  const Poll poll = comm_.failed() ? Poll::kPending : part.run.Step();
  if (poll == Poll::kReady) return true;
  if (poll == Poll::kFailed && part.run.mismatch()) {
    const Board& board = comm_.board();
    comm_.board().Fail(absl::FailedPreconditionError(absl::StrFormat(
        "message sizes differ: %s sends %u bytes to %s, which expects %u",
        board.Describe(part.run.peer()), part.run.sent_bytes(),
        board.Describe(board.me()), part.run.bytes())));
  } else if (poll == Poll::kFailed) {
    comm_.board().Fail(part.run.status());
  }
  if (!comm_.failed()) return false;
  status_ = comm_.status();
  return true;
}

std::vector<int> MessagesTask::Peers() const {
  std::vector<int> peers;
  for (const Part& part : parts_) {
    if (!part.done) peers.push_back(part.run.peer());
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

std::string MessagesTask::Describe(const Part& part) const {
  return absl::StrFormat("%s of %u bytes %s %s",
                         part.run.sends() ? "a send" : "a receive",
                         part.run.bytes(), part.run.sends() ? "to" : "from",
                         comm_.board().Describe(part.run.peer()));
}

std::string MessagesTask::DescribeUndone() const {
  const auto first = std::find_if(parts_.begin(), parts_.end(),
                                  [](const Part& p) { return !p.done; });
  if (first == parts_.end()) return "messages";
  if (left_ == 1) return Describe(*first);
  return absl::StrFormat("%s and %d more message%s", Describe(*first),
                         left_ - 1, left_ == 2 ? "" : "s");
}

std::string MessagesTask::Describe() const {
  return absl::StrFormat("%s of communicator '%s'", DescribeUndone(),
                         comm_.name());
}

std::string MessagesTask::DescribePeers() const {
  std::vector<std::string> texts;
  for (int peer : Peers()) texts.push_back(comm_.DescribePeer(peer));
  return absl::StrJoin(texts, "; ");
}

void MessagesTask::Look() { LookFor(Peers()); }

void MessagesTask::AskToWake() {
  for (int peer : Peers()) comm_.board().AskToWake(peer);
}

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
    if (StepAll(tasks, &first_error)) {
      waiter.Reset();
      continue;
    }
    const bool look = waiter.Wait(
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
