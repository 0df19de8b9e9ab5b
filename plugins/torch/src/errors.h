// SPDX-License-Identifier: Apache-2.0
// Errors of the library as exceptions of torch. Plain functions, callable from
// any thread; nothing here is kept.
#pragma once

#include <chrono>
#include <exception>
#include <string>

#include "axon/axon.h"

namespace torch_axon {

// Which call of which group failed; goes into every text.
struct Origin {
  const char* op = "";  // "all_reduce"
  std::string group;    // torch's group name
  int rank = 0;
  int size = 0;
  uint64_t sequence = 0;  // of the call in its group; 0 outside calls
  std::chrono::milliseconds timeout{0};  // in force for the call
};

// The exception for `result`: DistNetworkError where the operating system
// refused, else DistBackendError. `detail` is the library's own text. A timeout
// says "Timed out waiting <n>ms", which torch's users and tests look for.
std::exception_ptr MakeError(axonResult_t result, const Origin& origin,
                             const std::string& detail);

// Throws MakeError with the calling thread's last error text, unless
// `result` is axonSuccess.
void Check(axonResult_t result, const Origin& origin);

}  // namespace torch_axon
