// SPDX-License-Identifier: Apache-2.0
// The 128 bytes that name one communicator to be: where its ranks meet and the
// secret without which nobody may join. A plain value; bytes come from outside
// and are trusted in nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bootstrap/address.h"

namespace axon {

constexpr size_t kUniqueIdSize = 128;
constexpr size_t kMaxIdAddresses = 4;

struct UniqueId {
  std::string secret;              // kSecretSize bytes
  std::vector<Address> addresses;  // 1 to kMaxIdAddresses with one port; or
  HostPort place;                  // a fixed place, where rank 0 will listen

  bool fixed() const { return !place.host.empty(); }
  // "10.0.0.1:4000, 10.1.0.1:4000" or "host:port".
  std::string Text() const;
};

// Exactly kUniqueIdSize bytes.
std::string PackUniqueId(const UniqueId& id);
absl::StatusOr<UniqueId> UnpackUniqueId(absl::string_view bytes);

// The id of a fixed place ("host:port", AXON_COMM_ID) with a secret made from
// any text (AXON_COMM_SECRET); equal texts give equal ids in every process.
absl::StatusOr<UniqueId> FixedUniqueId(absl::string_view place,
                                       absl::string_view secret_text);

}  // namespace axon
