// SPDX-License-Identifier: Apache-2.0
#include "tests/support/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

namespace axon {

uint16_t FreePort() {
  for (int i = 0; i < 1000; ++i) {
    const auto port = static_cast<uint16_t>(10000 + (getpid() + i * 7) % 20000);
    const Fd fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(port);
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof(any)) == 0) {
      return port;
    }
  }
  return 0;
}

}  // namespace axon
