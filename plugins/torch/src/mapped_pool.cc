// SPDX-License-Identifier: Apache-2.0
#include "mapped_pool.h"

#include <pthread.h>

#include <algorithm>
#include <bit>

#include "axon/axon.h"
#include "memory_left.h"

namespace torch_axon {
namespace {

constexpr size_t kPage = 4096;
// Sizes are cut into so many steps from one power of two to the next: few
// enough that blocks fit again, and an eighth is lost at most.
constexpr size_t kSteps = 8;
// What may be kept in any case.
constexpr size_t kFewBytes = size_t{64} << 20;
// After the system had no memory, it is not asked again for so long.
constexpr std::chrono::seconds kPause{1};

size_t SizeFor(size_t bytes) {
  const size_t step = std::max(kPage, std::bit_floor(bytes) / kSteps);
  return (bytes + step - 1) / step * step;
}

}  // namespace

MappedPool& MappedPool::Get() {
  static MappedPool* const pool = new MappedPool;
  return *pool;
}

MappedPool::MappedPool() {
  pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
}

void* MappedPool::Allocate(size_t bytes) {
  if (InForkedChild() || bytes > SIZE_MAX / 2) {
    return nullptr;
  }
  const size_t size = SizeFor(std::max<size_t>(bytes, 1));
  std::unique_lock lock(mutex_);
  void* block = TakeKept(size);
  if (block == nullptr && !held_.empty()) {
    LetGoHeld();
    block = TakeKept(size);
  }
  if (block != nullptr) return block;
  const uint64_t born = children_.forks();
  if (MayGrow(size)) {
    lock.unlock();
    block = Reserve(size);
    lock.lock();
    if (block == nullptr) closed_ = Clock::now() + kPause;
  }
  if (block == nullptr) {
    ++stats_.refused;
    return nullptr;
  }
  Widen(block, size);
  ++stats_.reserved;
  stats_.used += size;
  peak_ = std::max(peak_, stats_.used);
  used_[block] = {size, born};
  return block;
}

void MappedPool::Widen(void* block, size_t size) {
  const auto at = reinterpret_cast<uintptr_t>(block);
  constexpr auto kRelaxed = std::memory_order_relaxed;
  begin_.store(std::min(begin_.load(kRelaxed), at), kRelaxed);
  end_.store(std::max(end_.load(kRelaxed), at + size), kRelaxed);
}

bool MappedPool::Gave(const void* memory) {
  const auto at = reinterpret_cast<uintptr_t>(memory);
  return begin_.load(std::memory_order_relaxed) <= at &&
         at < end_.load(std::memory_order_relaxed);
}

void* MappedPool::TakeKept(size_t size) {
  const auto found = kept_.lower_bound(size);
  if (found == kept_.end() || found->first > size + size / 4) return nullptr;
  const size_t got = found->first;
  void* const block = found->second.back().block;
  found->second.pop_back();
  if (found->second.empty()) kept_.erase(found);
  stats_.kept -= got;
  stats_.used += got;
  peak_ = std::max(peak_, stats_.used);
  used_[block] = {got, children_.forks()};
  return block;
}

bool MappedPool::MayGrow(size_t size) {
  if (Clock::now() < closed_) return false;
  if (size > allowance_) {
    // Shared memory is taken at once, and more than there is would end the
    // process, or another one.
    const size_t left = MemoryLeft();
    if (size > left / 2) return false;
    allowance_ = std::max(size, left / 8);
  }
  allowance_ -= size;
  return true;
}

void* MappedPool::Reserve(size_t size) {
  void* block = nullptr;
  if (axonMemAlloc(&block, size) == axonSuccess) return block;
  Trim();
  return axonMemAlloc(&block, size) == axonSuccess ? block : nullptr;
}

void MappedPool::Free(void* block) {
  if (InForkedChild()) return;
  Blocks dropped;
  {
    std::lock_guard lock(mutex_);
    const auto found = used_.find(block);
    if (found == used_.end()) return;
    const auto [size, born] = found->second;
    used_.erase(found);
    stats_.used -= size;
    const uint64_t forks = children_.forks();
    if (children_.AnyAlive(born, forks)) {
      held_.push_back({block, size, born, forks});
      stats_.held += size;
      LetGoHeld();
    } else {
      kept_[size].push_back({block, ++frees_});
      stats_.kept += size;
    }
    dropped = DropKept(MostKept());
  }
  GiveBack(dropped);
}

void MappedPool::LetGoHeld() {
  children_.Look();
  const auto kept =
      std::partition(held_.begin(), held_.end(), [this](const Held& held) {
        return children_.AnyAlive(held.born, held.freed);
      });
  for (auto it = kept; it != held_.end(); ++it) {
    kept_[it->size].push_back({it->block, ++frees_});
    stats_.held -= it->size;
    stats_.kept += it->size;
  }
  held_.erase(kept, held_.end());
}

// A program that does the same again and again finds all its blocks here, and
// one that does not has at most half more than it needed at the worst moment.
size_t MappedPool::MostKept() const {
  const size_t whole = peak_ + peak_ / 2;
  const size_t rest = whole - std::min(whole, stats_.used + stats_.held);
  return std::min(limit_, std::max(rest, kFewBytes));
}

// The oldest first.
MappedPool::Blocks MappedPool::DropKept(size_t most) {
  Blocks dropped;
  while (stats_.kept > most) {
    const auto oldest = std::min_element(
        kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
          return a.second.front().age < b.second.front().age;
        });
    dropped.push_back(oldest->second.front().block);
    stats_.kept -= oldest->first;
    oldest->second.erase(oldest->second.begin());
    if (oldest->second.empty()) kept_.erase(oldest);
  }
  return dropped;
}

void MappedPool::GiveBack(const Blocks& blocks) {
  for (void* block : blocks) axonMemFree(block);
}

void MappedPool::Trim() {
  Blocks dropped;
  {
    std::lock_guard lock(mutex_);
    LetGoHeld();
    dropped = DropKept(0);
  }
  GiveBack(dropped);
}

void MappedPool::SetMostKept(size_t bytes) {
  if (InForkedChild()) return;
  Blocks dropped;
  {
    std::lock_guard lock(mutex_);
    limit_ = bytes;
    closed_ = {};
    dropped = DropKept(MostKept());
  }
  GiveBack(dropped);
}

size_t MappedPool::most_kept() {
  std::lock_guard lock(mutex_);
  return limit_;
}

MappedPool::Stats MappedPool::stats() {
  std::lock_guard lock(mutex_);
  if (!InForkedChild()) LetGoHeld();
  return stats_;
}

void MappedPool::BeforeFork() {
  MappedPool& pool = Get();
  pool.mutex_.lock();
  if (!InForkedChild()) {
    pool.children_.BeforeFork();
  }
}

void MappedPool::AfterForkInParent() {
  MappedPool& pool = Get();
  if (!InForkedChild()) {
    pool.children_.AfterForkInParent();
  }
  pool.mutex_.unlock();
}

void MappedPool::AfterForkInChild() {
  MappedPool& pool = Get();
  if (!in_child_.exchange(true, std::memory_order_relaxed)) {
    pool.children_.AfterForkInChild();
  }
  pool.mutex_.unlock();
}

}  // namespace torch_axon
