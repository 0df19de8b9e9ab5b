// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace axon {
namespace {

bool IsLinkLocal(const Address& address) {
  const std::string ip = address.ip();
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(ip[i]); };
  if (address.family() == AF_INET) return byte(0) == 169 && byte(1) == 254;
  return byte(0) == 0xfe && (byte(1) & 0xc0) == 0x80;
}

bool IsVirtual(const std::string& name) {
  for (const char* prefix : {"docker", "veth", "br-", "virbr"}) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

// One item of a filter: a name, or a subnet where `bits` >= 0.
struct Pattern {
  std::string name;
  bool exact = false;
  int bits = -1;
  std::string network;  // in network order

  bool Matches(const Interface& i) const {
    if (bits < 0) {
      return exact ? i.name == name : absl::StartsWith(i.name, name);
    }
    const std::string ip = i.address.ip();
    if (ip.size() != network.size()) return false;
    const size_t whole = static_cast<size_t>(bits) / 8;
    if (ip.compare(0, whole, network, 0, whole) != 0) return false;
    if (bits % 8 == 0) return true;
    const int mask = 0xff << (8 - bits % 8);
    return ((ip[whole] ^ network[whole]) & mask & 0xff) == 0;
  }
};

absl::StatusOr<Pattern> ParsePattern(absl::string_view item, bool exact) {
  Pattern pattern{std::string(item), exact, -1, ""};
  const size_t slash = item.find('/');
  if (slash == absl::string_view::npos) return pattern;
  const std::string ip(item.substr(0, slash));
  char bytes[16];
  const bool v4 = inet_pton(AF_INET, ip.c_str(), bytes) == 1;
  if (!(v4 || inet_pton(AF_INET6, ip.c_str(), bytes) == 1) ||
      !absl::SimpleAtoi(item.substr(slash + 1), &pattern.bits) ||
      pattern.bits < 0 || pattern.bits > (v4 ? 32 : 128)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "AXON_SOCKET_IFNAME: '%s' is not a subnet; write for example "
        "10.1.0.0/16 or fd00::/8",
        item));
  }
  pattern.network.assign(bytes, v4 ? 4 : 16);
  return pattern;
}

std::string Present(const std::vector<Interface>& all) {
  std::set<std::string> texts;
  for (const Interface& i : all) {
    const std::string text = i.address.Text();
    texts.insert(absl::StrCat(i.name, " (", text.substr(0, text.rfind(':')),
                              i.up ? ")" : ", down)"));
  }
  return absl::StrJoin(texts, ", ");
}

std::vector<Interface> ChooseByItself(const std::vector<Interface>& all) {
  std::vector<Interface> best, containers, loopback;
  for (const Interface& i : all) {
    if (!i.up) continue;
    if (i.loopback) {
      loopback.push_back(i);
    } else if (!IsLinkLocal(i.address)) {
      (IsVirtual(i.name) ? containers : best).push_back(i);
    }
  }
  if (!best.empty()) return best;
  return containers.empty() ? loopback : containers;
}

}  // namespace

absl::StatusOr<std::vector<Interface>> ListInterfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return ErrnoError("getifaddrs");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    const Address address(i->ifa_addr);
    if (address.family() != AF_INET && address.family() != AF_INET6) continue;
    all.push_back({i->ifa_name, address, (i->ifa_flags & IFF_UP) != 0,
                   (i->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return all;
}

absl::StatusOr<std::vector<Interface>> ChooseInterfaces(
    const std::vector<Interface>& all, absl::string_view filter) {
  if (filter.empty()) {
    std::vector<Interface> chosen = ChooseByItself(all);
    if (!chosen.empty()) return chosen;
    return absl::ResourceExhaustedError(absl::StrFormat(
        "no network interface is up, not even loopback; present: %s",
        Present(all)));
  }
  absl::string_view items = filter;
  const bool exclude = absl::ConsumePrefix(&items, "^");
  const bool exact = absl::ConsumePrefix(&items, "=");
  std::vector<Interface> named, rest = all;
  for (absl::string_view item :
       absl::StrSplit(items, ',', absl::SkipWhitespace())) {
    ASSIGN_OR_RETURN(const Pattern pattern, ParsePattern(item, exact));
    const auto matches = [&](const Interface& i) { return pattern.Matches(i); };
    if (!exclude && std::none_of(all.begin(), all.end(), matches)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "AXON_SOCKET_IFNAME='%s': interface %s not found; present: %s",
          filter, item, Present(all)));
    }
    const auto middle =
        std::stable_partition(rest.begin(), rest.end(), std::not_fn(matches));
    std::copy_if(middle, rest.end(), std::back_inserter(named),
                 [](const Interface& i) { return i.up; });
    rest.erase(middle, rest.end());
  }
  const std::vector<Interface> chosen = exclude ? ChooseByItself(rest) : named;
  if (!chosen.empty()) return chosen;
  return absl::InvalidArgumentError(absl::StrFormat(
      "AXON_SOCKET_IFNAME='%s' leaves no interface that is up; present: %s",
      filter, Present(all)));
}

}  // namespace axon
