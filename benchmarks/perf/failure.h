// SPDX-License-Identifier: Apache-2.0
// How a perf program gives up: an exception whose text names object, value and
// remedy, caught once per rank in driver.cc.
#pragma once

#include <stdexcept>
#include <string>

#include "axon/axon.h"

namespace axon::perf {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws, with the library's text, if `result` is an error of `what`. `comm`
// may be null.
inline void Require(axonResult_t result, axonComm_t comm,
                    const std::string& what) {
  if (result == axonSuccess) return;
  throw Failure(what + ": " + axonGetErrorString(result) + ": " +
                axonGetLastError(comm));
}

}  // namespace axon::perf
