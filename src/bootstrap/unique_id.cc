// SPDX-License-Identifier: Apache-2.0
// Layout: magic "AXID" (4), layout (1), kind (1), port (2), checksum (4),
// secret (16), then for addresses a count (1) and per address family (1: 4 or
// 6) and ip (16); for a fixed place the host's length (1) and name. The rest is
// zero. Numbers are little endian.
#include "bootstrap/unique_id.h"

#include <bit>
#include <cstring>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "bootstrap/random.h"

namespace axon {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kMagic[4] = {'A', 'X', 'I', 'D'};
constexpr char kLayout = 1;
constexpr char kAddresses = 0, kFixed = 1;
constexpr size_t kLayoutAt = 4, kKindAt = 5, kPortAt = 6, kSumAt = 8;
constexpr size_t kSecretAt = 12, kBodyAt = 28;
constexpr size_t kMaxHost = kUniqueIdSize - kBodyAt - 1;

// FNV-1a, 128 bits wide.
absl::uint128 Fnv(absl::string_view text) {
  absl::uint128 hash =
      absl::MakeUint128(0x6c62272e07bb0142, 0x62b821756295c58d);
  const absl::uint128 prime = absl::MakeUint128(0x1000000, 0x13b);
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * prime;
  }
  return hash;
}

uint32_t Checksum(std::string bytes) {
  bytes.replace(kSumAt, 4, 4, '\0');
  const absl::uint128 hash = Fnv(bytes);
  const uint64_t half = absl::Uint128Low64(hash) ^ absl::Uint128High64(hash);
  return static_cast<uint32_t>(half ^ half >> 32);
}

absl::Status Bad(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("these are not the bytes of a unique id: ", why,
                   "; pass all 128 bytes of axonGetUniqueId unchanged"));
}

absl::Status UnpackAddresses(absl::string_view body, uint16_t port,
                             UniqueId* id) {
  const size_t count = static_cast<unsigned char>(body[0]);
  if (count < 1 || count > kMaxIdAddresses) {
    return Bad(absl::StrCat("they claim ", count, " addresses"));
  }
  for (size_t i = 0; i < count; ++i) {
    const char* at = body.data() + 1 + i * 17;
    if (*at != 4 && *at != 6) return Bad("unknown address family");
    id->addresses.emplace_back(*at == 4 ? AF_INET : AF_INET6, at + 1, port);
  }
  return absl::OkStatus();
}

}  // namespace

std::string UniqueId::Text() const {
  if (fixed()) return absl::StrCat(place.host, ":", place.port);
  return absl::StrJoin(addresses, ", ",
                       [](std::string* out, const Address& address) {
                         absl::StrAppend(out, address.Text());
                       });
}

std::string PackUniqueId(const UniqueId& id) {
  std::string bytes(kUniqueIdSize, '\0');
  std::memcpy(bytes.data(), kMagic, sizeof(kMagic));
  bytes[kLayoutAt] = kLayout;
  bytes[kKindAt] = id.fixed() ? kFixed : kAddresses;
  const uint16_t port = id.fixed() ? id.place.port : id.addresses[0].port();
  std::memcpy(&bytes[kPortAt], &port, sizeof(port));
  id.secret.copy(&bytes[kSecretAt], kSecretSize);
  if (id.fixed()) {
    bytes[kBodyAt] = static_cast<char>(id.place.host.size());
    id.place.host.copy(&bytes[kBodyAt + 1], kMaxHost);
  } else {
    bytes[kBodyAt] = static_cast<char>(id.addresses.size());
    for (size_t i = 0; i < id.addresses.size(); ++i) {
      char* at = &bytes[kBodyAt + 1 + i * 17];
      *at = id.addresses[i].family() == AF_INET ? 4 : 6;
      id.addresses[i].ip().copy(at + 1, 16);
    }
  }
  const uint32_t sum = Checksum(bytes);
  std::memcpy(&bytes[kSumAt], &sum, sizeof(sum));
  return bytes;
}

absl::StatusOr<UniqueId> UnpackUniqueId(absl::string_view bytes) {
  if (bytes.size() != kUniqueIdSize) {
    return Bad(absl::StrCat(bytes.size(), " bytes"));
  }
  if (std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0) {
    return Bad("they do not begin as one");
  }
  if (bytes[kLayoutAt] != kLayout) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the unique id was made by another version of Axon (layout %d, not "
        "%d); use one version on all ranks",
        bytes[kLayoutAt], kLayout));
  }
  uint32_t sum = 0;
  std::memcpy(&sum, &bytes[kSumAt], sizeof(sum));
  if (sum != Checksum(std::string(bytes))) return Bad("the checksum is wrong");
  uint16_t port = 0;
  std::memcpy(&port, &bytes[kPortAt], sizeof(port));
  if (port == 0) return Bad("the port is 0");
  UniqueId id;
  id.secret = std::string(bytes.substr(kSecretAt, kSecretSize));
  const absl::string_view body = bytes.substr(kBodyAt);
  if (bytes[kKindAt] == kAddresses) {
    RETURN_IF_ERROR(UnpackAddresses(body, port, &id));
  } else if (bytes[kKindAt] == kFixed) {
    const size_t size = static_cast<unsigned char>(body[0]);
    if (size < 1 || size > kMaxHost) return Bad("the host's name is too long");
    id.place = {std::string(body.substr(1, size)), port};
  } else {
    return Bad("unknown kind");
  }
  return id;
}

absl::StatusOr<UniqueId> FixedUniqueId(absl::string_view place,
                                       absl::string_view secret_text) {
  UniqueId id;
  ASSIGN_OR_RETURN(id.place, ParseHostPort(place));
  if (id.place.host.size() > kMaxHost) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the host '%s' is longer than %d characters; use its address",
        id.place.host, kMaxHost));
  }
  id.secret.assign(kSecretSize, '\0');
  if (!secret_text.empty()) {
    const absl::uint128 hash = Fnv(secret_text);
    std::memcpy(id.secret.data(), &hash, kSecretSize);
  }
  return id;
}

}  // namespace axon
