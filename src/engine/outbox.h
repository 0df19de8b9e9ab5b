// SPDX-License-Identifier: Apache-2.0
// Places in a rank's outbox. The outbox is walked round from call to call, so
// that a writer does not store into lines that a reader still has in its cache,
// and so that what a call overwrites was read long ago. Local bookkeeping of the
// thread that runs the rank's calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace axon {

// The later of two call numbers, which wrap.
constexpr uint32_t LaterCall(uint32_t a, uint32_t b) {
  return static_cast<int32_t>(a - b) >= 0 ? a : b;
}

class Outbox {
 public:
  explicit Outbox(size_t size) : size_(size) {}

  struct Lease {
    uint64_t position = 0;  // bytes from the outbox's begin
    uint32_t after = 0;     // peers must have finished this call before I write
  };

  // Space for `total` bytes of call `call`. A call that wants more than the
  // outbox has begins at 0 and walks round itself. `before` is a call that all
  // peers are known to have finished: the answer where nothing is overwritten.
  Lease Take(size_t total, uint32_t call, uint32_t before);

  size_t size() const { return size_; }

 private:
  static constexpr size_t kZones = 16;

  size_t size_;
  uint64_t cursor_ = 0;   // absolute: grows for ever
  uint64_t claimed_ = 0;  // absolute: up to here what was there has been read
  std::array<uint32_t, kZones> last_writer_{};  // call, per zone
  std::array<bool, kZones> written_{};
};

}  // namespace axon
