// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/local_listener.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "bootstrap/random.h"

namespace axon {
namespace {

constexpr int kBacklog = 4096;  // the kernel takes less where it allows less

struct UnixAddress {
  sockaddr_un address;
  socklen_t size;
};

// "@name" or a path.
absl::StatusOr<UnixAddress> ToUnix(absl::string_view text) {
  UnixAddress result{};
  result.address.sun_family = AF_UNIX;
  if (text.size() < 2 || text.size() >= sizeof(result.address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "'%s' cannot name a Unix socket: it must have 2 to %d characters", text,
        sizeof(result.address.sun_path) - 1));
  }
  text.copy(result.address.sun_path, text.size());
  if (text[0] == '@') result.address.sun_path[0] = '\0';
  result.size =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
  return result;
}

absl::StatusOr<Fd> NewSocket() {
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoError("opening a Unix socket");
  return fd;
}

}  // namespace

absl::StatusOr<LocalListener> LocalListener::Open(absl::string_view directory) {
  LocalListener self;
  ASSIGN_OR_RETURN(self.secret_, RandomBytes(kSecretSize));
  ASSIGN_OR_RETURN(const std::string name, RandomBytes(12));
  self.address_ =
      absl::StrCat(directory.empty() ? "@" : absl::StrCat(directory, "/"),
                   "axon-", absl::BytesToHexString(name));
  ASSIGN_OR_RETURN(const UnixAddress at, ToUnix(self.address_));
  ASSIGN_OR_RETURN(Fd fd, NewSocket());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&at.address), at.size) !=
          0 ||
      listen(fd.get(), kBacklog) != 0) {
    return ErrnoError(absl::StrCat("listening at ", self.address_));
  }
  self.fd_ = std::move(fd);
  return self;
}

LocalListener::~LocalListener() {
  if (fd_.valid() && address_[0] != '@') unlink(address_.c_str());
}

absl::StatusOr<Fd> ConnectLocal(const std::string& address, Deadline deadline) {
  ASSIGN_OR_RETURN(const UnixAddress to, ToUnix(address));
  ASSIGN_OR_RETURN(Fd fd, NewSocket());
  while (connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.address),
                 to.size) != 0) {
    // EAGAIN: the leader's queue of connections is full.
    if (errno == ECONNREFUSED || errno == ENOENT) {
      return absl::UnavailableError(absl::StrFormat(
          "nobody listens at %s: that process has ended, or lives in another "
          "network namespace",
          address));
    }
    if (errno != EAGAIN && errno != EINTR) {
      return ErrnoError(absl::StrCat("connecting to ", address));
    }
    if (deadline.passed()) {
      return absl::DeadlineExceededError(
          absl::StrCat(address, " does not accept connections"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return fd;
}

}  // namespace axon
