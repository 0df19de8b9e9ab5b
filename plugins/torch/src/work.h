// SPDX-License-Identifier: Apache-2.0
// The handle of one call, or of one batch of messages. Owned by torch and by
// the library's queue together; it keeps the call's tensors alive and is
// completed by the library's callback thread, or is complete from the start.
// Any thread may wait for it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "call.h"
#include "communicator.h"
#include "errors.h"

namespace torch_axon {

class AxonWork final : public c10d::Work {
 public:
  // `title` names it to the profiler; NULL if none is running.
  AxonWork(std::shared_ptr<Communicator> comm, Origin origin, Call call,
           const char* title);

  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override { wait(kNoTimeout); }
  void blockCurrentStream() override { wait(kNoTimeout); }
  std::vector<at::Tensor> result() override { return call_.outputs; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return origin_.sequence; }

  Call& call() { return call_; }
  const Origin& origin() const { return origin_; }

  // Runs the call on this thread; throws if it fails.
  void RunNow(Communicator::Body body);
  // Queues the call, or one more part of it; throws if that fails. The Work is
  // complete when all its parts and the one it began with (Seal) are.
  void Queue(Communicator::Lane lane, int peer, Communicator::Body body);
  // No more parts will be queued.
  void Seal() { PartDone(axonSuccess); }

 private:
  struct Part;  // what the library's callback is given
  static void OnDone(axonResult_t result, void* arg);

  void Fail(axonResult_t result);
  void PartDone(axonResult_t result);
  void Complete(std::exception_ptr error);
  void CompleteFuture();

  const std::shared_ptr<Communicator> comm_;
  const Origin origin_;
  Call call_;
  // Parts not done, and one until Seal. Writers: the queueing thread and the
  // library's callback thread; each decrement is acquire and release, so that
  // the last one sees what the others stored.
  std::atomic<int> parts_{1};
  // The first error of a part. Written by callbacks and, where queueing failed,
  // by the queueing thread; read by who takes parts_ to zero. Relaxed: parts_
  // orders it.
  std::atomic<axonResult_t> failure_{axonSuccess};
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // guarded by mutex_
};

}  // namespace torch_axon
