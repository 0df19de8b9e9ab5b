// SPDX-License-Identifier: Apache-2.0
// Ports for tests that must name one beforehand. Any thread.
#pragma once

#include <cstdint>

namespace axon {

// A port that was free a moment ago, below those that the kernel hands out.
uint16_t FreePort();

}  // namespace axon
