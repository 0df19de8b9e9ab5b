// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/random.h"

#include <sys/random.h>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace axon {

absl::StatusOr<std::string> RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  size_t filled = 0;
  while (filled < size) {
    const ssize_t n = getrandom(bytes.data() + filled, size - filled, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return ErrnoError(absl::StrFormat("getrandom of %d bytes", size));
    }
    filled += static_cast<size_t>(n);
  }
  return bytes;
}

}  // namespace axon
