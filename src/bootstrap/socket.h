// SPDX-License-Identifier: Apache-2.0
// TCP sockets: non-blocking, closed on exec, without SIGPIPE. Free functions;
// the caller owns the descriptors. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/fd.h"
#include "bootstrap/address.h"

namespace axon {

struct PortRange {
  uint16_t low = 0, high = 0;  // both 0: any free port
};

// AXON_PORT_RANGE: "low-high", one number, or nothing.
absl::StatusOr<PortRange> ParsePortRange(absl::string_view text);

// Listens at `at`; its port is replaced by the first free one of `range` where
// that is not empty. AlreadyExists: the one port that was asked for is taken.
absl::StatusOr<Fd> ListenTcp(const Address& at, PortRange range);

// Listens on all interfaces for both families, or for IPv4 where the system
// has no IPv6.
absl::StatusOr<Fd> ListenAnywhere(PortRange range);

// One attempt to connect; the error names the address and errno. Unavailable:
// nobody listens there.
absl::StatusOr<Fd> ConnectTcp(const Address& to, Deadline deadline);

// Unsent data leave at once, and a peer whose machine is gone is noticed within
// half a minute even if nothing is sent.
void TuneConnection(int fd);

// The port that a socket is bound to.
uint16_t LocalPort(int fd);

}  // namespace axon
