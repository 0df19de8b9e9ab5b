// SPDX-License-Identifier: Apache-2.0
// One message of a local exchange: a fixed header and up to 250 descriptors
// over a Unix socket that keeps messages whole (SOCK_SEQPACKET). Thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/fd.h"
#include "base/poll.h"

namespace axon {

// The kernel takes 253 (SCM_MAX_FD).
constexpr int kMaxFdsPerMessage = 250;

enum class FdMessageKind : int32_t { kFds = 1, kRefusal = 2 };

struct FdMessage {
  char magic[8];
  char secret[16];
  FdMessageKind kind;
  int32_t code;    // kRefusal: status code
  int32_t owner;   // whose descriptors these are
  int32_t total;   // how many it has
  int32_t first;   // the number of this message's first one
  int32_t count;   // how many come with this message
  char text[256];  // kRefusal: why, ends with 0
};

// kPending: the socket is full for now; kFailed: the peer has gone.
absl::StatusOr<Poll> SendFds(int socket, const FdMessage& message,
                             absl::Span<const int> fds);

// Takes one message and owns what comes with it. kPending: none is there;
// kFailed: the peer has gone, or sent what is not a message of this secret.
absl::StatusOr<Poll> ReceiveFds(int socket, absl::string_view secret,
                                FdMessage* message, std::vector<Fd>* fds);

}  // namespace axon
