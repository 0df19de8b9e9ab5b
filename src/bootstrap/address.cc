// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace axon {
namespace {

sockaddr_in* V4(sockaddr_storage* s) {
  return reinterpret_cast<sockaddr_in*>(s);
}
sockaddr_in6* V6(sockaddr_storage* s) {
  return reinterpret_cast<sockaddr_in6*>(s);
}
const sockaddr_in* V4(const sockaddr_storage* s) {
  return reinterpret_cast<const sockaddr_in*>(s);
}
const sockaddr_in6* V6(const sockaddr_storage* s) {
  return reinterpret_cast<const sockaddr_in6*>(s);
}

}  // namespace

Address::Address(const sockaddr* from) {
  if (from == nullptr) return;
  if (from->sa_family == AF_INET) {
    std::memcpy(&storage_, from, sizeof(sockaddr_in));
  } else if (from->sa_family == AF_INET6) {
    std::memcpy(&storage_, from, sizeof(sockaddr_in6));
  }
}

Address::Address(int family, const void* ip, uint16_t port) {
  storage_.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET) {
    std::memcpy(&V4(&storage_)->sin_addr, ip, 4);
    V4(&storage_)->sin_port = htons(port);
  } else {
    std::memcpy(&V6(&storage_)->sin6_addr, ip, 16);
    V6(&storage_)->sin6_port = htons(port);
  }
}

Address Address::Any(int family, uint16_t port) {
  constexpr char kZeros[16] = {};
  return Address(family, kZeros, port);
}

uint16_t Address::port() const {
  return ntohs(family() == AF_INET ? V4(&storage_)->sin_port
                                   : V6(&storage_)->sin6_port);
}

Address Address::WithPort(uint16_t port) const {
  Address copy = *this;
  (family() == AF_INET ? V4(&copy.storage_)->sin_port
                       : V6(&copy.storage_)->sin6_port) = htons(port);
  return copy;
}

std::string Address::ip() const {
  if (family() == AF_INET) {
    return {reinterpret_cast<const char*>(&V4(&storage_)->sin_addr), 4};
  }
  return {reinterpret_cast<const char*>(&V6(&storage_)->sin6_addr), 16};
}

std::string Address::Text() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (family() != AF_INET && family() != AF_INET6) return text;
  inet_ntop(family(), ip().data(), text, sizeof(text));
  return family() == AF_INET ? absl::StrCat(text, ":", port())
                             : absl::StrCat("[", text, "]:", port());
}

socklen_t Address::size() const {
  return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

absl::StatusOr<HostPort> ParseHostPort(absl::string_view text) {
  const size_t colon = text.rfind(':');
  HostPort place;
  int port = 0;
  bool good = colon != absl::string_view::npos &&
              absl::SimpleAtoi(text.substr(colon + 1), &port) && port > 0 &&
              port <= 65535;
  if (good) {
    absl::string_view host = text.substr(0, colon);
    const bool brackets =
        host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (brackets) host = host.substr(1, host.size() - 2);
    place = {std::string(host), static_cast<uint16_t>(port)};
    // A bare IPv6 address would swallow its last group as the port.
    good = !host.empty() &&
           brackets == (host.find(':') != absl::string_view::npos);
  }
  if (!good) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "'%s' is not a place to meet; write host:port or [IPv6]:port with a "
        "port from 1 to 65535",
        text));
  }
  return place;
}

bool IsNumeric(const std::string& host) {
  char ip[16];
  return inet_pton(AF_INET, host.c_str(), ip) == 1 ||
         inet_pton(AF_INET6, host.c_str(), ip) == 1;
}

absl::StatusOr<std::vector<Address>> Resolve(const HostPort& place) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(place.host.c_str(), nullptr, &hints, &list);
  if (error != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the host '%s' cannot be looked up: %s", place.host,
                        gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list,
                                                             freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* i = list; i != nullptr; i = i->ai_next) {
    if (i->ai_family != AF_INET && i->ai_family != AF_INET6) continue;
    addresses.push_back(Address(i->ai_addr).WithPort(place.port));
  }
  if (addresses.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the host '%s' has neither an IPv4 nor an IPv6 address", place.host));
  }
  return addresses;
}

}  // namespace axon
