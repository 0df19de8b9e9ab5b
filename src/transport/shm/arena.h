// SPDX-License-Identifier: Apache-2.0
// The memory that a process shares with its peers: one sparse file, mapped
// whole by every peer once, of which ranges are reserved and released. Blocks,
// outboxes, rings and the memory of axonMemAlloc lie here, so that a
// communicator more costs no descriptor and no mapping. Owned by the process;
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "transport/doorbell.h"
#include "transport/shm/mapping.h"

namespace axon {

// Stands at the begin of every arena; peers check it before they believe
// anything else.
struct ArenaHeader {
  static constexpr uint64_t kMagic = 0x41786f6e4172656e;  // "AxonAren"

  uint64_t magic;
  uint32_t version;
  uint32_t header_size;
  uint64_t arena_size;
  char uid[16];  // of the process
  Doorbell doorbell;
};

class Arena {
 public:
  static absl::StatusOr<std::unique_ptr<Arena>> Create(ShmKind kind,
                                                       const std::string& dir,
                                                       size_t size,
                                                       const char uid[16]);
  // Maps the arena of a peer and checks its header against what the peer said
  // of itself.
  static absl::StatusOr<Mapping> MapPeer(const Fd& fd, size_t size,
                                         const char uid[16]);

  // Zeroed memory at a page boundary, reserved: writing to it cannot fail.
  absl::StatusOr<std::byte*> Allocate(size_t bytes);
  // False if `p` was not allocated here.
  bool Free(std::byte* p);

  // In a child of fork: its writes no longer reach the parent and its peers.
  void MakePrivate() { mapping_.MakePrivate(file_.fd); }

  std::byte* base() const { return mapping_.base(); }
  size_t size() const { return mapping_.size(); }
  uint64_t OffsetOf(const std::byte* p) const {
    return static_cast<uint64_t>(p - base());
  }
  ArenaHeader& header() const {
    return *reinterpret_cast<ArenaHeader*>(base());
  }
  const Fd& fd() const { return file_.fd; }
  size_t allocated_bytes() const;

 private:
  Arena(SharedFile file, Mapping mapping);
  // Makes the used range at this offset, which reads as zeros, a free one. The
  // caller holds mutex_.
  void GiveBack(size_t at);

  SharedFile file_;
  Mapping mapping_;
  mutable std::mutex mutex_;  // guards what follows
  // Offset to size; free ranges are coalesced.
  std::map<size_t, size_t> free_;
  std::map<size_t, size_t> used_;
};

}  // namespace axon
