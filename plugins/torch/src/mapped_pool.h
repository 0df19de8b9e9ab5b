// SPDX-License-Identifier: Apache-2.0
// Blocks of memory that peers can read where it lies (axonMemAlloc). Getting
// such memory from the system and giving it back costs much more than with
// ordinary memory, so freed blocks are kept and used again. One pool a process,
// made at the first use and never destroyed: tensors outlive everything. Any
// thread may use it; a child of fork gets nothing from it, and may free what it
// inherited.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "children.h"

namespace torch_axon {

class MappedPool {
 public:
  static MappedPool& Get();

  // At least `bytes` at a page boundary, with any content. NULL if there is no
  // such memory: too little of it, or a child of fork.
  void* Allocate(size_t bytes);
  // What Allocate gave.
  void Free(void* block);
  // True if it is Allocate that gave `memory`.
  static bool Gave(const void* memory);

  static bool InForkedChild() {
    return in_child_.load(std::memory_order_relaxed);
  }

  // Never keeps more than this.
  void SetMostKept(size_t bytes);
  size_t most_kept();

  struct Stats {
    size_t used;        // bytes that tensors have
    size_t kept;        // bytes that wait to be used again
    size_t held;        // bytes freed, but children of fork may look at them
    uint64_t reserved;  // how often the system gave memory
    uint64_t refused;   // how often there was none
  };
  Stats stats();

 private:
  using Clock = std::chrono::steady_clock;
  using Blocks = std::vector<void*>;
  struct Used {
    size_t size;
    uint64_t born;  // the number of forks before
  };
  struct Kept {
    void* block;
    uint64_t age;  // lower: freed earlier
  };
  struct Held {
    void* block;
    size_t size;
    uint64_t born, freed;  // numbers of forks
  };

  MappedPool();
  static void BeforeFork();
  static void AfterForkInParent();
  static void AfterForkInChild();

  // Without the lock.
  void* Reserve(size_t size);
  void Trim();
  static void GiveBack(const Blocks& blocks);
  // With the lock.
  bool MayGrow(size_t size);
  void* TakeKept(size_t size);
  static void Widen(void* block, size_t size);
  void LetGoHeld();
  Blocks DropKept(size_t most);
  size_t MostKept() const;

  // Writer: the child, in fork's handler, when it has one thread. Relaxed.
  static inline std::atomic<bool> in_child_{false};

  // From the first to the end of the last block there ever was; between them is
  // nothing else, as the library's shared memory is one mapping. Writers: who
  // holds mutex_. Relaxed: who asks about a block was given it before.
  static inline std::atomic<uintptr_t> begin_{UINTPTR_MAX};
  static inline std::atomic<uintptr_t> end_{0};

  std::mutex mutex_;  // guards all below
  std::unordered_map<void*, Used> used_;
  std::map<size_t, std::vector<Kept>> kept_;  // by size, oldest first
  std::vector<Held> held_;
  Children children_;
  Stats stats_{};
  size_t peak_ = 0;  // of stats_.used
  size_t limit_ = SIZE_MAX;
  uint64_t frees_ = 0;
  size_t allowance_ = 0;      // bytes to reserve before looking at what is left
  Clock::time_point closed_;  // nothing is reserved until then
};

}  // namespace torch_axon
