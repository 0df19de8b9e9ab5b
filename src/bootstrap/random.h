// SPDX-License-Identifier: Apache-2.0
// Random bytes from the kernel, for secrets and names that nobody may guess.
// Thread-safe.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace axon {

constexpr size_t kSecretSize = 16;

absl::StatusOr<std::string> RandomBytes(size_t size);

}  // namespace axon
