// SPDX-License-Identifier: Apache-2.0
#include "process_group.h"

#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <climits>

#include "allocator.h"
#include "gil.h"
#include "meeting.h"

namespace torch_axon {

using std::chrono::milliseconds;

void ArmTimeout(milliseconds timeout) {
  if (timeout == c10d::kUnsetTimeout) return;
  axonSetCallTimeout(
      static_cast<int>(std::clamp<int64_t>(timeout.count(), 1, INT_MAX)));
}

ProcessGroupAxon::ProcessGroupAxon(const c10::intrusive_ptr<c10d::Store>& store,
                                   int rank, int size,
                                   c10::intrusive_ptr<Options> options)
    : Backend(rank, size), options_(std::move(options)) {
  TORCH_CHECK_VALUE(0 <= rank && rank < size, "axon: rank ", rank,
                    " is not within a group of ", size);
  const ReleaseGil release;
  const Origin origin{"init", options_->group_name, rank, size,
                      0,      options_->timeout};
  const axonUniqueId id = Meet(*store, origin);
  comm_ = Communicator::Create(id, rank, size, options_->group_name,
                               options_->timeout);
  Part(*store, origin);
  init();
}

ProcessGroupAxon::~ProcessGroupAxon() {
  if (comm_ != nullptr) comm_->Release();
}

const std::string ProcessGroupAxon::getBackendName() const {
  return options_->backend;
}

c10::intrusive_ptr<c10d::Backend::Options>
ProcessGroupAxon::getBackendOptions() {
  return options_;
}

void ProcessGroupAxon::setTimeout(milliseconds timeout) {
  options_->timeout = timeout;
  Check(comm_->SetTimeout(timeout), MakeOrigin("set_timeout", timeout, 0));
}

uint64_t ProcessGroupAxon::getSequenceNumberForGroup() {
  std::lock_guard lock(mutex_);
  return collectives_;
}

c10d::ErrorType ProcessGroupAxon::getError() {
  const ReleaseGil release;
  switch (comm_->AsyncError()) {
    case axonSuccess:
    case axonInProgress:
      return c10d::ErrorType::SUCCESS;
    case axonTimeout:
      return c10d::ErrorType::TIMEOUT;
    case axonRemoteError:
      return c10d::ErrorType::REMOTE_ERROR;
    default:
      return c10d::ErrorType::COMM_ERROR;
  }
}

void ProcessGroupAxon::abort() {
  const ReleaseGil release;
  comm_->Abort();
}

void ProcessGroupAxon::shutdown() {
  const ReleaseGil release;
  comm_->Shutdown(comm_->timeout());
}

// Memory that the ranks of this machine read in place.
at::Tensor ProcessGroupAxon::allocateTensor(long size,
                                            at::TensorOptions options) {
  TORCH_CHECK_VALUE(size >= 0, "axon allocate_tensor: size ", size,
                    " is negative");
  return NewMappedTensor(size, c10::typeMetaToScalarType(options.dtype()));
}

Origin ProcessGroupAxon::MakeOrigin(const char* op, milliseconds timeout,
                                    uint64_t sequence) const {
  const bool own = timeout != c10d::kUnsetTimeout;
  return {op,       options_->group_name,
          rank_,    size_,
          sequence, own ? timeout : comm_->timeout()};
}

int ProcessGroupAxon::CheckRoot(const char* op, int64_t root) const {
  TORCH_CHECK_VALUE(0 <= root && root < size_, "axon ", op, ": root ", root,
                    " is not within a group of ", size_);
  return static_cast<int>(root);
}

c10::intrusive_ptr<AxonWork> ProcessGroupAxon::NewWork(Call call,
                                                       uint64_t sequence) {
  Origin origin = MakeOrigin(call.name, call.timeout, sequence);
  std::string title;
  if (at::hasCallbacks()) title = options_->backend + ":" + call.name;
  return c10::make_intrusive<AxonWork>(comm_, std::move(origin),
                                       std::move(call),
                                       title.empty() ? nullptr : title.c_str());
}

ProcessGroupAxon::WorkPtr ProcessGroupAxon::Launch(Call call,
                                                   Communicator::Body body) {
  uint64_t sequence;
  c10::intrusive_ptr<AxonWork> batch;
  {
    std::lock_guard lock(mutex_);
    sequence = ++collectives_;
    batch = batch_;
  }
  const bool async = call.async;
  auto work = NewWork(std::move(call), sequence);
  if (!async && !comm_->HasMessages()) {
    work->RunNow(body);
    return work;
  }
  work->Queue(Communicator::Lane::kCollective, 0, body);
  work->Seal();
  if (!async) {
    work->wait(kNoTimeout);
  } else if (batch != nullptr) {  // the batch is done when this call is
    batch->Queue(Communicator::Lane::kCollective, 0,
                 [](axonComm_t, axonStream_t) { return axonSuccess; });
  }
  return work;
}

}  // namespace torch_axon
