// SPDX-License-Identifier: Apache-2.0
// Unix sockets that keep messages whole (SOCK_SEQPACKET), at random names: how
// the processes of one machine talk before they share memory. Non-blocking,
// closed on exec. The caller owns them; used by one thread at a time.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/fd.h"

namespace axon {

// A socket that listens, and a secret for those who may come. It has an
// abstract name, which ends with it; with `directory` it is a file there, for
// systems without abstract names, unlinked by the destructor.
class LocalListener {
 public:
  static absl::StatusOr<LocalListener> Open(absl::string_view directory = "");
  LocalListener(LocalListener&&) = default;
  LocalListener& operator=(LocalListener&&) = delete;
  ~LocalListener();

  int fd() const { return fd_.get(); }
  const std::string& address() const { return address_; }
  const std::string& secret() const { return secret_; }

 private:
  LocalListener() = default;
  Fd fd_;
  std::string address_;  // "@name" (abstract) or a path
  std::string secret_;
};

// Connects to the address of a LocalListener. Unavailable: nobody listens.
absl::StatusOr<Fd> ConnectLocal(const std::string& address, Deadline deadline);

}  // namespace axon
