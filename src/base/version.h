// SPDX-License-Identifier: Apache-2.0
// The version as axon.h counts it (held equal by src/api).
#pragma once

namespace axon {

constexpr int kVersionCode = 100;

}  // namespace axon
