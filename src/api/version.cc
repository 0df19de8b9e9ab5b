// SPDX-License-Identifier: Apache-2.0
// Calls that need no communicator and cannot fail.
#include "axon/axon.h"

axonResult_t axonGetVersion(int* version) noexcept {
  if (version == nullptr) return axonInvalidArgument;
  *version = AXON_VERSION_CODE;
  return axonSuccess;
}

const char* axonGetErrorString(axonResult_t result) noexcept {
  switch (result) {
    case axonSuccess:
      return "no error";
    case axonUnhandledCudaError:
      return "unhandled device error";
    case axonSystemError:
      return "the operating system refused a request";
    case axonInternalError:
      return "internal error: please report it";
    case axonInvalidArgument:
      return "invalid argument";
    case axonInvalidUsage:
      return "invalid usage";
    case axonRemoteError:
      return "a peer died, aborted or failed";
    case axonInProgress:
      return "operation in progress";
    case axonTimeout:
      return "a peer did not take part in time";
    case axonNumResults:
      break;
  }
  return "unknown result code";
}
