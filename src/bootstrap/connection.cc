// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace axon {
namespace {

constexpr size_t kReadSize = 64 << 10;

}  // namespace

// NOLINTBEGIN(google-runtime-int): pollfd has one
short Connection::events() const {
  return static_cast<short>(drained() ? POLLIN : POLLIN | POLLOUT);
}
// NOLINTEND(google-runtime-int)

bool Connection::Receive() {
  in_.erase(0, std::exchange(in_at_, 0));
  // Not into `in_`: a connection that is silent holds no memory.
  char bytes[kReadSize];
  ssize_t n = 0;
  do {
    n = recv(fd(), bytes, sizeof(bytes), MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n > 0) in_.append(bytes, static_cast<size_t>(n));
  if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
  return n > 0;
}

Poll Connection::NextFrame(Frame* frame) {
  const absl::string_view bytes = received();
  if (bytes.size() < kFrameHeader) return Poll::kPending;
  uint32_t header[2];
  std::memcpy(header, bytes.data(), sizeof(header));
  if (header[1] > kMaxFrame) return Poll::kFailed;
  if (bytes.size() - kFrameHeader < header[1]) return Poll::kPending;
  *frame = {static_cast<FrameKind>(header[0]),
            bytes.substr(kFrameHeader, header[1])};
  Consume(kFrameHeader + header[1]);
  return Poll::kReady;
}

void Connection::Send(std::string bytes) {
  out_.emplace_back(std::move(bytes), absl::string_view());
}

bool Connection::Flush() {
  while (!out_.empty()) {
    const auto& [own, borrowed] = out_.front();
    const absl::string_view bytes = borrowed.empty() ? own : borrowed;
    const ssize_t n = send(fd(), bytes.data() + out_at_, bytes.size() - out_at_,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    out_at_ += static_cast<size_t>(n);
    if (out_at_ == bytes.size()) {
      out_.pop_front();
      out_at_ = 0;
    }
  }
  return true;
}

}  // namespace axon
