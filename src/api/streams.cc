// SPDX-License-Identifier: Apache-2.0
// Streams, events and memory: calls on the process.
#include <memory>

#include "absl/strings/str_format.h"
#include "api/group.h"
#include "api/handles.h"
#include "api/result.h"
#include "axon/axon.h"

namespace axon {
namespace {

absl::Status CheckOut(const void* p, const char* name) {
  if (p != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("%s is NULL", name));
}

// The core, once a handle has shown that the process exists.
Core& TheCore() { return (*TheProcess())->core(); }

}  // namespace
}  // namespace axon

using axon::CheckHandle;
using axon::CheckOut;
using axon::TheCore;
using axon::TheProcess;
using axon::ToResult;

axonResult_t axonStreamCreate(axonStream_t* stream) noexcept {
  if (auto status = CheckOut(stream, "stream"); !status.ok()) {
    return ToResult(status);
  }
  const auto process = TheProcess();
  if (!process.ok()) return ToResult(process.status());
  *stream = new axonStream();
  (*stream)->stream = (*process)->core().NewStream();
  return axonSuccess;
}

axonResult_t axonStreamDestroy(axonStream_t stream) noexcept {
  if (auto status = CheckHandle(stream); !status.ok()) return ToResult(status);
  if (auto status = axon::CheckUnused(stream); !status.ok()) {
    return ToResult(status);
  }
  const absl::Status status = TheCore().DestroyStream(stream->stream);
  stream->magic = 0;
  delete stream;
  return ToResult(status);
}

axonResult_t axonStreamSynchronize(axonStream_t stream) noexcept {
  if (auto status = CheckHandle(stream); !status.ok()) return ToResult(status);
  return ToResult(TheCore().Synchronize(stream->stream));
}

axonResult_t axonStreamQuery(axonStream_t stream) noexcept {
  if (auto status = CheckHandle(stream); !status.ok()) return ToResult(status);
  absl::Status error;
  const axon::Poll poll = TheCore().Query(stream->stream, &error);
  return poll == axon::Poll::kPending ? axonInProgress : ToResult(error);
}

axonResult_t axonStreamAddCallback(axonStream_t stream,
                                   axonStreamCallback_t callback,
                                   void* arg) noexcept {
  if (auto status = CheckHandle(stream); !status.ok()) return ToResult(status);
  if (callback == nullptr) {
    return ToResult(absl::InvalidArgumentError("callback is NULL"));
  }
  TheCore().AddCallback(stream->stream,
                        [callback, arg](const absl::Status& status) {
                          // The text is the callback thread's last error.
                          callback(ToResult(status), arg);
                        });
  return axonSuccess;
}

axonResult_t axonEventCreate(axonEvent_t* event) noexcept {
  if (auto status = CheckOut(event, "event"); !status.ok()) {
    return ToResult(status);
  }
  const auto process = TheProcess();
  if (!process.ok()) return ToResult(process.status());
  *event = new axonEvent();
  (*event)->event = (*process)->core().NewEvent();
  return axonSuccess;
}

axonResult_t axonEventDestroy(axonEvent_t event) noexcept {
  if (auto status = CheckHandle(event); !status.ok()) return ToResult(status);
  TheCore().DestroyEvent(event->event);
  event->magic = 0;
  delete event;
  return axonSuccess;
}

axonResult_t axonEventRecord(axonEvent_t event, axonStream_t stream) noexcept {
  if (auto status = CheckHandle(event); !status.ok()) return ToResult(status);
  if (auto status = CheckHandle(stream); !status.ok()) return ToResult(status);
  TheCore().Record(event->event, stream->stream);
  return axonSuccess;
}

axonResult_t axonEventQuery(axonEvent_t event) noexcept {
  if (auto status = CheckHandle(event); !status.ok()) return ToResult(status);
  return TheCore().Done(event->event) ? axonSuccess : axonInProgress;
}

axonResult_t axonEventSynchronize(axonEvent_t event) noexcept {
  if (auto status = CheckHandle(event); !status.ok()) return ToResult(status);
  TheCore().Synchronize(event->event);
  return axonSuccess;
}

axonResult_t axonStreamWaitEvent(axonStream_t stream,
                                 axonEvent_t event) noexcept {
  if (auto status = CheckHandle(stream); !status.ok()) return ToResult(status);
  if (auto status = CheckHandle(event); !status.ok()) return ToResult(status);
  TheCore().WaitFor(stream->stream, event->event);
  return axonSuccess;
}

axonResult_t axonMemAlloc(void** ptr, size_t size) noexcept {
  if (auto status = CheckOut(ptr, "ptr"); !status.ok()) return ToResult(status);
  const auto process = TheProcess();
  if (!process.ok()) return ToResult(process.status());
  (*process)->Sweep();
  const auto memory = (*process)->arena().Allocate(size);
  if (!memory.ok()) return ToResult(memory.status());
  *ptr = *memory;
  return axonSuccess;
}

axonResult_t axonMemFree(void* ptr) noexcept {
  if (ptr == nullptr) return axonSuccess;
  const auto process = TheProcess();
  if (!process.ok()) return ToResult(process.status());
  if ((*process)->arena().Free(static_cast<std::byte*>(ptr))) {
    return axonSuccess;
  }
  return ToResult(absl::InvalidArgumentError(absl::StrFormat(
      "%p was not allocated by axonMemAlloc, or is freed", ptr)));
}
