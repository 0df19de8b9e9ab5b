// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <unistd.h>

namespace axon {

void Fd::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

}  // namespace axon
