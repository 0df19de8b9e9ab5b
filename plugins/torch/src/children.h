// SPDX-License-Identifier: Apache-2.0
// Knows which children of fork are alive. A child sees shared memory that it
// inherited as the parent goes on using it, where of ordinary memory it would
// have a copy; so what the parent frees must stay as it is for as long as a
// child may look at it. Each child holds the write end of a pipe, which closes
// when it and all its descendants have ended or called exec. Owned by the pool,
// whose lock guards it; the lock is held from BeforeFork until an After.
#pragma once

#include <cstdint>
#include <vector>

namespace torch_axon {

class Children {
 public:
  // How often this process has forked.
  uint64_t forks() const { return forks_; }

  // True if a child was forked after fork number `since`, up to number `until`,
  // and was alive at the last Look.
  bool AnyAlive(uint64_t since, uint64_t until) const;
  // Forgets those that have ended.
  void Look();

  // The handlers of pthread_atfork.
  void BeforeFork();
  void AfterForkInParent();
  void AfterForkInChild();

 private:
  struct Child {
    uint64_t number;
    int read_end;  // -1: it has no pipe, and is taken for alive
  };

  uint64_t forks_ = 0;
  std::vector<Child> alive_;
  int ends_[2] = {-1, -1};  // of the pipe of the child that is being made
};

}  // namespace torch_axon
