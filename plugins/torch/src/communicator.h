// SPDX-License-Identifier: Apache-2.0
// One communicator of the library with its streams: who may call it when, and
// how it ends. Shared by a process group and by the Works it has queued; known
// to a list of all that are open, so that ShutdownAll can end them before the
// interpreter goes. Calls from several threads take turns; Abort, AsyncError
// and LastError come from any thread at any time. The destructor frees memory
// only: it never waits and never takes Python's lock.
#pragma once

#include <c10/util/FunctionRef.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "axon/axon.h"

namespace torch_axon {

class Communicator {
 public:
  // What a call does with the communicator; `stream` NULL: done on return.
  using Body = c10::function_ref<axonResult_t(axonComm_t, axonStream_t)>;
  // Which stream a queued call uses. Messages have one per peer and direction,
  // so that none waits for another peer's.
  enum class Lane { kCollective, kSend, kRecv };

  // Meets the other ranks; throws what Check throws.
  static std::shared_ptr<Communicator> Create(
      const axonUniqueId& id, int rank, int size, const std::string& name,
      std::chrono::milliseconds timeout);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Runs `body` to its end on this thread. Where it fails, *detail is the text.
  axonResult_t Run(Body body, std::string* detail);

  // Queues `body` on the stream of `lane` (and `peer`), then one call of
  // `done(result, arg)`, which comes even where queueing fails: part of `body`
  // may have been queued, and its buffers must live that long.
  axonResult_t Queue(Lane lane, int peer, Body body, axonStreamCallback_t done,
                     void* arg, std::string* detail);
  // Ends what Queue began; the last thing that `done` does.
  void Finished(Lane lane);

  // True while sends or receives are queued. A blocking call would wait for
  // them, and their peers may be waiting for this call.
  bool HasMessages() const;

  axonResult_t SetTimeout(std::chrono::milliseconds timeout);
  std::chrono::milliseconds timeout() const;
  axonResult_t AsyncError();
  std::string LastError();

  // Waits for what is queued or running, at most for `limit`, then closes; what
  // is not done by then is aborted. Again: does nothing.
  void Shutdown(std::chrono::milliseconds limit);
  // Ends running calls with an error and closes; returns soon.
  void Abort();
  // Its process group goes: closes if nothing is queued, else leaves that to
  // the next Create or to ShutdownAll.
  void Release();
  bool closed() const;

  // Closes all that are open; they share `limit`.
  static void ShutdownAll(std::chrono::milliseconds limit);

 private:
  Communicator(int size, std::chrono::milliseconds timeout);

  axonResult_t StreamFor(Lane lane, int peer, axonStream_t* stream);
  axonResult_t Enter(Body body, axonStream_t stream, std::string* detail);
  void Started(Lane lane);
  bool WaitIdle(std::chrono::milliseconds limit);
  bool Idle() const;
  bool Close(std::chrono::milliseconds limit);

  // Writers: Create, and Abort and Close, which take it away with an exchange.
  // Readers: callers. Sequentially consistent with calling_: either a caller
  // sees the NULL or Abort sees that somebody may be calling.
  std::atomic<axonComm_t> comm_{nullptr};
  // Writer: the holder of call_mutex_. Reader: Abort. Order: see comm_.
  std::atomic<bool> calling_{false};
  // Milliseconds. Writer: SetTimeout. Readers: any thread, for limits and
  // texts; relaxed, as nothing else is published with it.
  std::atomic<int64_t> timeout_ms_;

  std::timed_mutex call_mutex_;        // one call at a time; guards streams_
  std::vector<axonStream_t> streams_;  // [0], sends by peer, receives by peer

  std::mutex query_mutex_;  // the communicator is not freed while it is held

  mutable std::mutex pending_mutex_;  // guards the two below
  std::condition_variable idle_;
  int pending_collectives_ = 0;
  int pending_messages_ = 0;
  bool released_ = false;  // guarded by the list's lock
};

}  // namespace torch_axon
