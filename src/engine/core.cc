// SPDX-License-Identifier: Apache-2.0
#include "engine/core.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace axon {
namespace {

// Library threads take no signals: they are the host program's.
template <typename Body>
void StartDetached(const char* name, Body body) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  std::thread thread(std::move(body));
  pthread_setname_np(thread.native_handle(), name);
  thread.detach();
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

// Tasks that only mark a place in a stream: no waiting for peers.
class MarkTask : public Task {
 public:
  bool TookStep() override { return false; }
  void Look() override {}
  void AskToWake() override {}
  absl::Status status() const override { return absl::OkStatus(); }
  bool communicates() const override { return false; }
};

}  // namespace

class RecordTask final : public MarkTask {
 public:
  RecordTask(Core& core, Event* event, uint64_t record)
      : core_(core), event_(event), record_(record) {}
  Poll Step() override {
    std::lock_guard<std::mutex> lock(core_.mutex_);
    event_->pending.erase(record_);
    core_.Unuse(event_);
    return Poll::kReady;
  }

 private:
  Core& core_;
  Event* event_;
  uint64_t record_;
};

class WaitTask final : public MarkTask {
 public:
  WaitTask(Core& core, Event* event, uint64_t record)
      : core_(core), event_(event), record_(record) {}
  Poll Step() override {
    std::lock_guard<std::mutex> lock(core_.mutex_);
    if (event_->pending.count(record_) != 0) return Poll::kPending;
    core_.Unuse(event_);
    return Poll::kReady;
  }

 private:
  Core& core_;
  Event* event_;
  uint64_t record_;
};

class CallbackTask final : public MarkTask {
 public:
  CallbackTask(Core& core, Stream* stream, Core::Callback callback)
      : core_(core), stream_(stream), callback_(std::move(callback)) {}
  Poll Step() override {
    absl::Status last;
    {
      std::lock_guard<std::mutex> lock(core_.mutex_);
      last = stream_->last;
    }
    core_.PostCallback(std::move(callback_), std::move(last));
    return Poll::kReady;
  }

 private:
  Core& core_;
  Stream* stream_;
  Core::Callback callback_;
};

Stream* Core::NewStream() {
  std::lock_guard<std::mutex> lock(mutex_);
  streams_.push_back(std::make_unique<Stream>());
  return streams_.back().get();
}

absl::Status Core::DestroyStream(Stream* stream) {
  absl::Status status = Synchronize(stream);
  std::lock_guard<std::mutex> lock(mutex_);
  streams_.erase(
      std::find_if(streams_.begin(), streams_.end(),
                   [&](const auto& owned) { return owned.get() == stream; }));
  return status;
}

void Core::StartThread() {
  if (started_) return;
  started_ = true;
  StartDetached("axon-core", [this] { Run(); });
}

void Core::Enqueue(Stream* stream, std::unique_ptr<Task> task) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stream->tasks.push_back(std::move(task));
    ++stream->made;
    StartThread();
    work_.notify_one();
  }
  // The core may be asleep on behalf of another stream's task.
  Announce();
}

absl::Status Core::Synchronize(Stream* stream) {
  uint64_t until = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    until = stream->made;
  }
  WaitUntil([&] {
    std::lock_guard<std::mutex> lock(mutex_);
    return stream->done >= until;
  });
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(stream->first_error, absl::OkStatus());
}

Poll Core::Query(Stream* stream, absl::Status* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!stream->first_error.ok()) {
    *error = stream->first_error;
    return Poll::kFailed;
  }
  return stream->done == stream->made ? Poll::kReady : Poll::kPending;
}

void Core::AddCallback(Stream* stream, Callback callback) {
  Enqueue(stream,
          std::make_unique<CallbackTask>(*this, stream, std::move(callback)));
}

void Core::LetGo(const void* owner) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& stream : streams_) {
    for (size_t i = 1; i < stream->tasks.size(); ++i) {
      stream->tasks[i]->LetGo(owner);
    }
  }
}

Event* Core::NewEvent() { return new Event(); }

void Core::DestroyEvent(Event* event) {
  std::lock_guard<std::mutex> lock(mutex_);
  event->destroyed = true;
  ++event->users;
  Unuse(event);
}

void Core::Unuse(Event* event) {
  if (--event->users == 0 && event->destroyed) delete event;
}

void Core::Record(Event* event, Stream* stream) {
  uint64_t record = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    record = ++event->recorded;
    event->pending.insert(record);
    ++event->users;
  }
  Enqueue(stream, std::make_unique<RecordTask>(*this, event, record));
}

bool Core::Done(Event* event) {
  std::lock_guard<std::mutex> lock(mutex_);
  return event->pending.count(event->recorded) == 0;
}

void Core::Synchronize(Event* event) {
  uint64_t record = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    record = event->recorded;
  }
  WaitUntil([&] {
    std::lock_guard<std::mutex> lock(mutex_);
    return event->pending.count(record) == 0;
  });
}

void Core::WaitFor(Stream* stream, Event* event) {
  uint64_t record = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    record = event->recorded;
    ++event->users;
  }
  Enqueue(stream, std::make_unique<WaitTask>(*this, event, record));
}

void Core::WaitUntil(const std::function<bool()>& ready) {
  // The core needs a processor to make `ready` true: give it ours.
  Waiter waiter(doorbell_, {0, 200});
  while (!ready()) waiter.Wait([] {}, ready);
}

void Core::Run() {
  // Yields from the start: the threads that queue calls are busy beside it.
  Waiter waiter(doorbell_, {0, 2000});
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      const auto busy = [&] {
        return std::any_of(streams_.begin(), streams_.end(),
                           [](const auto& s) { return !s->tasks.empty(); });
      };
      while (!busy()) {
        work_.wait(lock);
        waiter.Reset();
      }
    }
    if (Pass()) {
      if (waiter.Stepped()) LookAll();
      continue;
    }
    const bool look = waiter.Wait(
        [this] {
          for (const auto& [stream, task] : heads_) task->AskToWake();
        },
        [this] { return Pass(); });
    if (look) LookAll();
  }
}

bool Core::Pass() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    heads_.clear();
    for (const auto& stream : streams_) {
      if (!stream->tasks.empty()) {
        heads_.emplace_back(stream.get(), stream->tasks.front().get());
      }
    }
  }
  bool stepped = false;
  for (size_t i = 0; i < heads_.size();) {
    const auto [stream, task] = heads_[i];
    const bool finished_or_worked = StepStream(stream, task);
    stepped = stepped || finished_or_worked;
    // A finished task is gone: nobody must ask it to wake anything.
    if (heads_[i].second == nullptr) {
      heads_.erase(heads_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  return stepped;
}

bool Core::StepStream(Stream* stream, Task* task) {
  // The first step is something: its peers were never asked to wake us.
  const bool first = std::exchange(stream->stepped, task) != task;
  const Poll poll = task->Step();
  if (poll == Poll::kPending) return task->TookStep() || first;
  FinishHead(stream, poll == Poll::kReady ? absl::OkStatus() : task->status());
  return true;
}

void Core::LookAll() {
  for (const auto& [stream, task] : heads_) task->Look();
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [stream, head] : heads_) {
    if (stream->tasks.size() < 2) continue;
    const std::string what = head->Describe();
    for (const auto& task : stream->tasks) {
      if (task.get() != head) task->Behind(what);
    }
  }
}

void Core::FinishHead(Stream* stream, const absl::Status& status) {
  std::unique_ptr<Task> task;
  for (auto& head : heads_) {
    if (head.first == stream) head.second = nullptr;
  }
  stream->stepped = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    task = std::move(stream->tasks.front());
    stream->tasks.pop_front();
    if (task->communicates()) {
      stream->last = status;
      if (stream->first_error.ok()) stream->first_error = status;
    }
  }
  // The task goes before `done` says so: what it holds may be freed then.
  task.reset();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++stream->done;
  }
  Announce();
}

void Core::PostCallback(Callback callback, absl::Status status) {
  std::lock_guard<std::mutex> lock(callback_mutex_);
  posted_.push_back({std::move(callback), std::move(status)});
  callback_posted_.notify_one();
  if (callback_thread_) return;
  callback_thread_ = true;
  StartDetached("axon-callbacks", [this] { RunCallbacks(); });
}

void Core::RunCallbacks() {
  for (;;) {
    Posted next;
    {
      std::unique_lock<std::mutex> lock(callback_mutex_);
      callback_posted_.wait(lock, [this] { return !posted_.empty(); });
      next = std::move(posted_.front());
      posted_.pop_front();
    }
    next.callback(next.status);
  }
}

}  // namespace axon
