// SPDX-License-Identifier: Apache-2.0
#include "api/result.h"

#include "api/handles.h"
#include "base/log.h"

namespace axon {
namespace {

// Written and read by its own thread.
thread_local std::string last_error;
thread_local std::string returned_text;

}  // namespace

axonResult_t CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return axonSuccess;
    case absl::StatusCode::kInvalidArgument:
      return axonInvalidArgument;
    case absl::StatusCode::kFailedPrecondition:
      return axonInvalidUsage;
    case absl::StatusCode::kUnavailable:
      return axonRemoteError;
    case absl::StatusCode::kDeadlineExceeded:
      return axonTimeout;
    case absl::StatusCode::kResourceExhausted:
      return axonSystemError;
    default:
      return axonInternalError;
  }
}

axonResult_t ToResult(const absl::Status& status, axonComm_t comm) {
  if (status.ok()) return axonSuccess;
  last_error = std::string(status.message());
  if (comm != nullptr) comm->SetLastError(last_error);
  Log(LogLevel::kInfo, "%s", last_error);
  return CodeOf(status);
}

}  // namespace axon

const char* axonGetLastError(axonComm_t comm) noexcept {
  // Another thread may end it, which is why this one asks.
  const axon::Held held(comm);
  axon::returned_text =
      held.status().ok() ? comm->LastError() : axon::last_error;
  return axon::returned_text.c_str();
}
