// SPDX-License-Identifier: Apache-2.0
// Who this machine and this process are, for texts and for guessing which ranks
// may share memory (the guess is proved later by sharing a segment). Plain
// functions without state; thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace axon {

// The host's name; "?" where the system does not tell.
std::string HostName();

// `override_text` (AXON_HOST_ID) where it is not empty, else the kernel's boot
// id, which two machines never share, else the host's name.
std::string HostId(absl::string_view override_text);

// 128 fresh random bits as 32 hexadecimal digits. The process's owner makes one
// at start: unlike a pid it is never used again.
absl::StatusOr<std::string> NewProcessUid();

}  // namespace axon
