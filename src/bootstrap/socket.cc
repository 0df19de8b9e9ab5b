// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace axon {
namespace {

constexpr int kBacklog = 4096;  // the kernel takes less where it allows less

void SetOption(int fd, int level, int name, int value) {
  // Only ever an improvement: what cannot be set stays as it is.
  (void)setsockopt(fd, level, name, &value, sizeof(value));
}

absl::StatusOr<Fd> NewSocket(int family) {
  Fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    return ErrnoError(family == AF_INET ? "opening an IPv4 socket"
                                        : "opening an IPv6 socket");
  }
  return fd;
}

absl::Status ConnectError(absl::string_view what, int error) {
  const absl::Status status = ErrnoError(what, error);
  return error == ECONNREFUSED ? absl::UnavailableError(status.message())
                               : status;
}

// One end of a connection, by getsockname or getpeername.
Address EndOf(int fd, int (*name)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  name(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  return Address(reinterpret_cast<const sockaddr*>(&storage));
}

bool IsSelf(int fd) {
  return EndOf(fd, getsockname).Text() == EndOf(fd, getpeername).Text();
}

absl::StatusOr<Fd> ListenOnce(const Address& at) {
  ASSIGN_OR_RETURN(Fd fd, NewSocket(at.family()));
  SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (at.family() == AF_INET6) {
    SetOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  }
  if (bind(fd.get(), at.get(), at.size()) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    const absl::Status status =
        ErrnoError(absl::StrCat("listening at ", at.Text()), error);
    return error == EADDRINUSE ? absl::AlreadyExistsError(status.message())
                               : status;
  }
  return fd;
}

}  // namespace

absl::StatusOr<PortRange> ParsePortRange(absl::string_view text) {
  if (text.empty()) return PortRange{};
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  int low = 0, high = 0;
  if (parts.size() > 2 || !absl::SimpleAtoi(parts.front(), &low) ||
      !absl::SimpleAtoi(parts.back(), &high) || low < 1 || high < low ||
      high > 65535) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "AXON_PORT_RANGE='%s' is not allowed; it takes low-high with ports "
        "from 1 to 65535",
        text));
  }
  return PortRange{static_cast<uint16_t>(low), static_cast<uint16_t>(high)};
}

absl::StatusOr<Fd> ListenTcp(const Address& at, PortRange range) {
  if (range.low == 0) return ListenOnce(at);
  if (range.low == range.high) return ListenOnce(at.WithPort(range.low));
  absl::Status last;
  for (int port = range.low; port <= range.high; ++port) {
    absl::StatusOr<Fd> fd =
        ListenOnce(at.WithPort(static_cast<uint16_t>(port)));
    if (fd.ok()) return fd;
    last = fd.status();
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "no port of AXON_PORT_RANGE=%d-%d can be used; the last attempt: %s; "
      "give a wider range",
      range.low, range.high, last.message()));
}

absl::StatusOr<Fd> ListenAnywhere(PortRange range) {
  absl::StatusOr<Fd> both = ListenTcp(Address::Any(AF_INET6, 0), range);
  if (both.ok()) return both;
  return ListenTcp(Address::Any(AF_INET, 0), range);
}

absl::StatusOr<Fd> ConnectTcp(const Address& to, Deadline deadline) {
  ASSIGN_OR_RETURN(Fd fd, NewSocket(to.family()));
  const std::string what = absl::StrCat("connecting to ", to.Text());
  // EINTR too leaves the attempt under way: poll tells how it ended.
  if (connect(fd.get(), to.get(), to.size()) != 0) {
    if (errno != EINPROGRESS && errno != EINTR)
      return ConnectError(what, errno);
    pollfd waiting{fd.get(), POLLOUT, 0};
    while (poll(&waiting, 1, static_cast<int>(deadline.LeftMs(1000))) <= 0) {
      if (deadline.passed()) return ErrnoError(what, ETIMEDOUT);
    }
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return ConnectError(what, error);
  }
  // Where nobody listens at a port that the kernel may also hand out, TCP can
  // connect a socket to itself.
  if (LocalPort(fd.get()) == to.port() && IsSelf(fd.get())) {
    return ConnectError(what, ECONNREFUSED);
  }
  TuneConnection(fd.get());
  return fd;
}

void TuneConnection(int fd) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

uint16_t LocalPort(int fd) { return EndOf(fd, getsockname).port(); }

}  // namespace axon
