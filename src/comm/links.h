// SPDX-License-Identifier: Apache-2.0
// The processes with which this one shares memory: their arenas, mapped once
// however many communicators there are, and a pipe each that hangs up when the
// process ends. Owned by Process; thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/fd.h"
#include "transport/shm/mapping.h"

namespace axon {

struct Link {
  std::string uid;
  Mapping arena;
  Fd life;  // the read end of a pipe whose write end only the peer holds
  int users = 0;

  // Whether the process has ended. One system call.
  bool Dead() const;
};

class Links {
 public:
  // A link known by its process's uid, or null; counts a user.
  Link* Acquire(const std::string& uid);
  // Adds a link with one user; the existing one if there is one already.
  Link* Add(const std::string& uid, Mapping arena, Fd life);
  // The last user's release unmaps and closes.
  void Release(Link* link);

 private:
  std::mutex mutex_;  // guards what follows
  std::map<std::string, std::unique_ptr<Link>> links_;
};

}  // namespace axon
