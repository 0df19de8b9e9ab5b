// SPDX-License-Identifier: Apache-2.0
// What a step on a polling path returns. The text of a failure is kept by the
// object that failed and read once, off the polling path.
#pragma once

#include <cstdint>

namespace axon {

enum class Poll : uint8_t { kReady, kPending, kFailed };

}  // namespace axon
