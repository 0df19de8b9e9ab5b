// SPDX-License-Identifier: Apache-2.0
// IP addresses with ports and their texts: a plain value. Host names are looked
// up by Resolve(), which may take as long as the system's resolver.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace axon {

class Address {
 public:
  Address() = default;
  // `from` as the kernel gives it, AF_INET or AF_INET6; others become empty.
  explicit Address(const sockaddr* from);
  // Of AF_INET (4 bytes) or AF_INET6 (16 bytes), in network order.
  Address(int family, const void* ip, uint16_t port);
  static Address Any(int family, uint16_t port);

  int family() const { return storage_.ss_family; }
  uint16_t port() const;
  Address WithPort(uint16_t port) const;
  // The address alone in network order: 4 or 16 bytes.
  std::string ip() const;
  // "10.0.0.1:80", "[fe80::1]:80".
  std::string Text() const;

  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&storage_);
  }
  socklen_t size() const;

 private:
  sockaddr_storage storage_{};
};

struct HostPort {
  std::string host;  // a name or an address without brackets
  uint16_t port = 0;
};

// "host:port", "1.2.3.4:port" or "[v6]:port".
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

// True for "1.2.3.4" and "::1", false for names.
bool IsNumeric(const std::string& host);

absl::StatusOr<std::vector<Address>> Resolve(const HostPort& place);

}  // namespace axon
