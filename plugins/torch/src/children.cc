// SPDX-License-Identifier: Apache-2.0
#include "children.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>

namespace torch_axon {
namespace {

bool HasEnded(int read_end) {
  if (read_end < 0) return false;
  pollfd entry{read_end, 0, 0};  // a hang-up is reported in any case
  return poll(&entry, 1, 0) == 1 && (entry.revents & POLLHUP) != 0;
}

}  // namespace

bool Children::AnyAlive(uint64_t since, uint64_t until) const {
  return std::any_of(alive_.begin(), alive_.end(), [=](const Child& child) {
    return since < child.number && child.number <= until;
  });
}

void Children::Look() {
  const auto ended = [](const Child& child) {
    if (!HasEnded(child.read_end)) return false;
    close(child.read_end);
    return true;
  };
  alive_.erase(std::remove_if(alive_.begin(), alive_.end(), ended),
               alive_.end());
}

void Children::BeforeFork() {
  Look();
  if (pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
}

void Children::AfterForkInParent() {
  ++forks_;
  alive_.push_back({forks_, ends_[0]});
  if (ends_[1] >= 0) close(ends_[1]);
}

void Children::AfterForkInChild() {
  // The write end stays open: it says that this process is alive.
  for (const Child& child : alive_) {
    if (child.read_end >= 0) close(child.read_end);
  }
  if (ends_[0] >= 0) close(ends_[0]);
}

}  // namespace torch_axon
