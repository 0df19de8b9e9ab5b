// SPDX-License-Identifier: Apache-2.0
#include "comm/links.h"

#include <poll.h>

#include <utility>

namespace axon {

bool Link::Dead() const {
  pollfd p{life.get(), 0, 0};
  return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

Link* Links::Acquire(const std::string& uid) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = links_.find(uid);
  if (found == links_.end()) return nullptr;
  ++found->second->users;
  return found->second.get();
}

Link* Links::Add(const std::string& uid, Mapping arena, Fd life) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<Link>& link = links_[uid];
  if (link == nullptr) {
    link = std::make_unique<Link>();
    link->uid = uid;
    link->arena = std::move(arena);
    link->life = std::move(life);
  }
  ++link->users;
  return link.get();
}

void Links::Release(Link* link) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (--link->users == 0) links_.erase(link->uid);
}

}  // namespace axon
