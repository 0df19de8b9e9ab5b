// SPDX-License-Identifier: Apache-2.0
// Places in a rank's outbox. The outbox is walked round from call to call, so
// that a writer does not store into lines that a reader still has in its cache,
// and so that what a call overwrites was read long ago. Local bookkeeping of
// the thread that runs the rank's calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace axon {

// Its size is a multiple of this.
constexpr size_t kOutboxZones = 16;

class Outbox {
 public:
  // What does not divide into zones is left unused.
  explicit Outbox(size_t size) : size_(size / kZones * kZones) {}

  struct Lease {
    uint64_t position = 0;  // bytes from the outbox's begin
    uint64_t after = 0;     // peers must have finished this call before I write
  };

  // Space for `total` bytes of call `call` > 0. A call that wants more than the
  // outbox has begins at 0 and walks round itself (SlicesIn). `before` is a
  // call that all peers are known to have finished: the answer where nothing is
  // overwritten. Calls are numbered without end here: the outbox may rest for
  // more calls than 32 bits can tell apart.
  Lease Take(size_t total, uint64_t call, uint64_t before);

  size_t size() const { return size_; }

 private:
  static constexpr size_t kZones = kOutboxZones;

  size_t size_;
  uint64_t cursor_ = 0;   // absolute: grows for ever
  uint64_t claimed_ = 0;  // absolute: up to here what was there has been read
  std::array<uint64_t, kZones> last_writer_{};  // call, per zone; 0: none
};

// Where the slices of one call lie in an outbox: side by side from the lease's
// position on, or, where they do not all fit, round and round from 0.
struct SlicesIn {
  size_t outbox = 0;       // bytes
  size_t slice_bytes = 0;  // at most `outbox`
  int slices = 1;

  size_t total() const { return slice_bytes * static_cast<size_t>(slices); }
  // So many slices lie there at once: slice s overwrites slice s - held().
  int held() const { return static_cast<int>(outbox / slice_bytes); }
  uint64_t PositionOf(int slice, uint64_t lease_position) const {
    const auto s = static_cast<size_t>(slice);
    return total() <= outbox ? lease_position + s * slice_bytes
                             : s % (outbox / slice_bytes) * slice_bytes;
  }
};

}  // namespace axon
