// SPDX-License-Identifier: Apache-2.0
// Which of the machine's addresses to tell to other ranks. Plain values and
// functions without state; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bootstrap/address.h"

namespace axon {

// One address of a network interface.
struct Interface {
  std::string name;
  Address address;  // port 0
  bool up = false;
  bool loopback = false;
};

absl::StatusOr<std::vector<Interface>> ListInterfaces();

// Those of `all` that `filter` (AXON_SOCKET_IFNAME) names: beginnings of names
// or subnets separated by commas, '^' first excludes them, '=' first takes
// names as exact. Without a filter: what is up and neither loopback, link-local
// nor made for containers and virtual machines (docker*, veth*, br-*, virbr*);
// then those; then loopback, so that one machine without a network works.
absl::StatusOr<std::vector<Interface>> ChooseInterfaces(
    const std::vector<Interface>& all, absl::string_view filter);

}  // namespace axon
