// SPDX-License-Identifier: Apache-2.0
// absl::Status to result codes, and the text of the last error of each thread
// and communicator. The only place where a code is chosen.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "axon/axon.h"

namespace axon {

// Keeps the text for the thread (and for `comm`, which may be null), logs it
// once, and returns the code. OK changes nothing.
axonResult_t ToResult(const absl::Status& status, axonComm_t comm = nullptr);
// Only the code.
axonResult_t CodeOf(const absl::Status& status);

}  // namespace axon
