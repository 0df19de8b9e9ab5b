// SPDX-License-Identifier: Apache-2.0
#include "allocator.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <mutex>

namespace torch_axon {
namespace {

void FreeMapped(void* block) {
  c10::profiledCPUMemoryReporter().Delete(block);
  MappedPool::Get().Free(block);
}

// oneDNN frees by the deleter of torch's allocator of that moment, whichever
// the memory came from.
c10::DeleterFnPtr free_ordinary = nullptr;

void FreeEither(void* memory) {
  if (MappedPool::Gave(memory)) {
    FreeMapped(memory);
  } else {
    free_ordinary(memory);
  }
}

// Takes blocks of the pool, and what is too small for it, or what it has not,
// from torch's own allocator. Never destroyed: storages point to it.
class MappedAllocator final : public c10::Allocator {
 public:
  MappedAllocator(c10::Allocator* ordinary, size_t minimum)
      : ordinary_(ordinary), minimum_(minimum) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (bytes < minimum_.load(std::memory_order_relaxed) || bytes == 0) {
      return ordinary_->allocate(bytes);
    }
    void* const block = MappedPool::Get().Allocate(bytes);
    if (block == nullptr) return Ordinary(bytes);
    c10::profiledCPUMemoryReporter().New(block, bytes);
    return {block, block, &FreeMapped, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override {
    return free_ordinary == nullptr ? nullptr : &FreeEither;
  }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  size_t minimum() const { return minimum_.load(std::memory_order_relaxed); }
  void set_minimum(size_t bytes) {
    minimum_.store(bytes, std::memory_order_relaxed);
  }

 private:
  c10::DataPtr Ordinary(size_t bytes) {
    if (!MappedPool::InForkedChild()) {
      TORCH_WARN_ONCE(
          "axon: there is not enough shared memory for a tensor of ", bytes,
          " bytes, which gets ordinary memory, as others may; calls work the "
          "same on both, and are slower on ordinary memory");
    }
    return ordinary_->allocate(bytes);
  }

  c10::Allocator* const ordinary_;
  // The fewest bytes that come from the pool. Writers: any thread. Readers: all
  // threads. Relaxed: nothing else depends on it.
  std::atomic<size_t> minimum_;
};

// The one that torch uses once SetMinimumMappedBytes was called; does nothing
// until then.
MappedAllocator& ForAll() {
  static auto* const made = [] {
    c10::Allocator* const ordinary = c10::GetAllocator(c10::kCPU);
    free_ordinary = ordinary->raw_deleter();
    return new MappedAllocator(ordinary, SIZE_MAX);
  }();
  return *made;
}

MappedAllocator& ForAllocateTensor() {
  static auto* const made =
      new MappedAllocator(c10::GetDefaultCPUAllocator(), 1);
  return *made;
}

}  // namespace

at::Tensor NewMappedTensor(int64_t elements, c10::ScalarType dtype) {
  return at::detail::empty_generic({elements}, &ForAllocateTensor(),
                                   c10::DispatchKeySet(c10::DispatchKey::CPU),
                                   dtype, std::nullopt);
}

bool IsMapped(const at::Tensor& tensor) {
  return tensor.has_storage() &&
         tensor.storage().data_ptr().get_deleter() == &FreeMapped;
}

void SetMinimumMappedBytes(size_t bytes) {
  static std::once_flag installed;
  if (bytes != SIZE_MAX) {
    std::call_once(installed, [] {
      // Torch reads this table without a lock, so it is written once only.
      c10::SetAllocator(c10::kCPU, &ForAll());
    });
  }
  ForAll().set_minimum(bytes);
}

size_t MinimumMappedBytes() { return ForAll().minimum(); }

}  // namespace torch_axon
