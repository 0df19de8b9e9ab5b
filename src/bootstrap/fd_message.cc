// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/fd_message.h"

#include <sys/socket.h>

#include <cstring>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace axon {
namespace {

constexpr char kMagic[9] = "AXONFDS1";

// Room for the most descriptors that one message may bring.
union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(kMaxFdsPerMessage * sizeof(int))];
};

msghdr Header(iovec* part, Control* control, size_t control_size) {
  msghdr header{};
  header.msg_iov = part;
  header.msg_iovlen = 1;
  header.msg_control = control_size > 0 ? control->bytes : nullptr;
  header.msg_controllen = control_size;
  return header;
}

void TakeFds(msghdr* header, std::vector<Fd>* fds) {
  for (cmsghdr* c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
      fds->emplace_back(fd);
    }
  }
}

bool IsValid(const FdMessage& m, absl::string_view secret) {
  return std::memcmp(m.magic, kMagic, sizeof(m.magic)) == 0 &&
         secret == absl::string_view(m.secret, sizeof(m.secret)) &&
         m.total >= 0 && m.first >= 0 && m.count >= 0 &&
         m.count <= kMaxFdsPerMessage && m.first <= m.total - m.count &&
         m.text[sizeof(m.text) - 1] == '\0';
}

}  // namespace

absl::StatusOr<Poll> SendFds(int socket, const FdMessage& message,
                             absl::Span<const int> fds) {
  FdMessage copy = message;
  std::memcpy(copy.magic, kMagic, sizeof(copy.magic));
  copy.count = static_cast<int32_t>(fds.size());
  iovec part{&copy, sizeof(copy)};
  Control control{};
  const size_t bytes = fds.size() * sizeof(int);
  msghdr header = Header(&part, &control, fds.empty() ? 0 : CMSG_SPACE(bytes));
  if (cmsghdr* c = CMSG_FIRSTHDR(&header)) {
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(c), fds.data(), bytes);
  }
  while (sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    switch (errno) {
      case EINTR:
        continue;
      // Too many descriptors are under way: readers will take some.
      case ETOOMANYREFS:
      case ENOBUFS:
      case EAGAIN:
        return Poll::kPending;
      case EPIPE:
      case ECONNRESET:
        return Poll::kFailed;
      default:
        return ErrnoError(
            absl::StrFormat("passing %d file descriptors", fds.size()));
    }
  }
  return Poll::kReady;
}

absl::StatusOr<Poll> ReceiveFds(int socket, absl::string_view secret,
                                FdMessage* message, std::vector<Fd>* fds) {
  fds->clear();
  iovec part{message, sizeof(*message)};
  Control control{};
  msghdr header = Header(&part, &control, sizeof(control.bytes));
  ssize_t n = 0;
  do {
    n = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return Poll::kPending;
  }
  if (n < 0) return Poll::kFailed;
  TakeFds(&header, fds);
  if (n != sizeof(*message) || (header.msg_flags & MSG_TRUNC) ||
      !IsValid(*message, secret)) {
    return Poll::kFailed;
  }
  if (fds->size() != static_cast<size_t>(message->count)) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "took only %d of %d file descriptors that a peer passed: too many are "
        "open; raise the limit (ulimit -n)",
        fds->size(), message->count));
  }
  return Poll::kReady;
}

}  // namespace axon
