// SPDX-License-Identifier: Apache-2.0
// The collective core: the thread that runs queued calls, one for all streams
// and communicators of a process. It steps the head of every stream in turn, so
// streams progress independently; with nothing to do it sleeps. A second thread
// runs callbacks. Owned by the process; every call may come from any thread but
// the two of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "engine/stream.h"
#include "engine/waiter.h"
#include "transport/doorbell.h"

namespace axon {

class Core {
 public:
  using Callback = std::function<void(const absl::Status&)>;

  // `doorbell`: of this process; outlives the core. Threads start when needed.
  explicit Core(Doorbell& doorbell) : doorbell_(doorbell) {}
  // Threads run to the end of the process: a Core is never destroyed while they
  // exist.
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  Stream* NewStream();
  absl::Status DestroyStream(Stream* stream);
  void Enqueue(Stream* stream, std::unique_ptr<Task> task);
  // Waits until all that is queued now is done; the first error since the last
  // synchronize.
  absl::Status Synchronize(Stream* stream);
  // kPending while tasks are queued; the error through `error` if kFailed.
  Poll Query(Stream* stream, absl::Status* error);
  void AddCallback(Stream* stream, Callback callback);
  // Queued tasks of an owner that is given up will not be run; those at the
  // heads of their streams are being run, and end by themselves.
  void LetGo(const void* owner);

  Event* NewEvent();
  void DestroyEvent(Event* event);
  void Record(Event* event, Stream* stream);
  bool Done(Event* event);
  void Synchronize(Event* event);
  void WaitFor(Stream* stream, Event* event);

  // Waits, yielding and then sleeping, until `ready` (cheap) is true. For
  // threads that wait for the core.
  void WaitUntil(const std::function<bool()>& ready);

 private:
  friend class RecordTask;
  friend class WaitTask;
  friend class CallbackTask;

  void StartThread();
  void Run();
  void RunCallbacks();
  // Steps every stream's head once; whether anything was done.
  bool Pass();
  bool StepStream(Stream* stream, Task* task);
  void LookAll();
  void FinishHead(Stream* stream, const absl::Status& status);
  void PostCallback(Callback callback, absl::Status status);
  void Unuse(Event* event);
  // Wakes threads in WaitUntil.
  void Announce() { Ring(doorbell_); }

  struct Posted {
    Callback callback;
    absl::Status status;
  };

  Doorbell& doorbell_;
  std::mutex mutex_;  // guards streams, what is in them, and events
  std::vector<std::unique_ptr<Stream>> streams_;
  bool started_ = false;
  std::condition_variable work_;  // something was queued while all was idle
  // Heads to step, taken anew in each pass; the core's thread only.
  std::vector<std::pair<Stream*, Task*>> heads_;

  std::mutex callback_mutex_;  // guards what follows
  std::condition_variable callback_posted_;
  bool callback_thread_ = false;
  std::deque<Posted> posted_;
};

}  // namespace axon
