// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cstring>

#include "absl/strings/str_format.h"

namespace axon {

absl::Status ErrnoError(absl::string_view what, int error) {
  char text[128];
  // The GNU form: returns a pointer that may or may not be `text`.
  const char* reason = strerror_r(error, text, sizeof(text));
  return absl::ResourceExhaustedError(
      absl::StrFormat("%s: %s (errno %d)", what, reason, error));
}

}  // namespace axon
