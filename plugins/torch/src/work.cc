// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include <ATen/core/jit_type.h>
#include <c10/util/Exception.h>

#include "completions.h"
#include "gil.h"

namespace torch_axon {

struct AxonWork::Part {
  c10::intrusive_ptr<AxonWork> work;
  Communicator::Lane lane;
};

AxonWork::AxonWork(std::shared_ptr<Communicator> comm, Origin origin, Call call,
                   const char* title)
    : Work(origin.rank, call.type, title),
      comm_(std::move(comm)),
      origin_(std::move(origin)),
      call_(std::move(call)) {}

void AxonWork::RunNow(Communicator::Body body) {
  const ReleaseGil release;
  std::string detail;
  const axonResult_t result = comm_->Run(body, &detail);
  std::exception_ptr error;
  if (result != axonSuccess) {
    error = MakeError(result, origin_, detail);
  } else {
    call_.WriteBack();
  }
  finish(error);
  if (error) std::rethrow_exception(error);
}

void AxonWork::Queue(Communicator::Lane lane, int peer,
                     Communicator::Body body) {
  const ReleaseGil release;
  auto* part = new Part{c10::intrusive_ptr<AxonWork>::reclaim_copy(this), lane};
  parts_.fetch_add(1, std::memory_order_relaxed);
  std::string detail;
  const axonResult_t result =
      comm_->Queue(lane, peer, body, &OnDone, part, &detail);
  if (result == axonSuccess) return;
  Fail(result);
  std::rethrow_exception(MakeError(result, origin_, detail));
}

void AxonWork::OnDone(axonResult_t result, void* arg) {
  const std::unique_ptr<Part> part(static_cast<Part*>(arg));
  const std::shared_ptr<Communicator> comm = part->work->comm_;
  const Communicator::Lane lane = part->lane;
  part->work->PartDone(result);
  part->work.reset();
  comm->Finished(lane);
}

void AxonWork::Fail(axonResult_t result) {
  axonResult_t none = axonSuccess;
  failure_.compare_exchange_strong(none, result, std::memory_order_relaxed);
}

void AxonWork::PartDone(axonResult_t result) {
  if (result != axonSuccess) Fail(result);
  if (parts_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const axonResult_t failure = failure_.load(std::memory_order_relaxed);
  std::exception_ptr error;
  if (failure != axonSuccess) {
    error = MakeError(failure, origin_, comm_->LastError());
  } else {
    try {
      call_.WriteBack();
    } catch (...) {
      error = std::current_exception();
    }
  }
  Complete(error);
}

void AxonWork::Complete(std::exception_ptr error) {
  finish(error);
  std::lock_guard lock(mutex_);
  if (future_ == nullptr) return;
  Completions::Get().Add([self = c10::intrusive_ptr<AxonWork>::reclaim_copy(
                              this)] { self->CompleteFuture(); });
}

void AxonWork::CompleteFuture() {
  if (exception_ != nullptr) {
    future_->setErrorIfNeeded(exception_);
  } else {
    future_->markCompleted(c10::IValue(call_.outputs));
  }
}

bool AxonWork::wait(std::chrono::milliseconds timeout) {
  const ReleaseGil release;
  std::unique_lock lock(mutex_);
  const auto done = [this] { return completed_; };
  if (timeout <= kNoTimeout) {
    cv_.wait(lock, done);
  } else if (!cv_.wait_for(lock, timeout, done)) {
    Origin origin = origin_;
    origin.timeout = timeout;
    lock.unlock();
    std::rethrow_exception(MakeError(axonTimeout, origin, ""));
  }
  if (exception_ != nullptr) std::rethrow_exception(exception_);
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> AxonWork::getFuture() {
  std::lock_guard lock(mutex_);
  if (future_ == nullptr) {
    future_ = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()));
    if (completed_) CompleteFuture();
  }
  return future_;
}

}  // namespace torch_axon
