// SPDX-License-Identifier: Apache-2.0
// What one rank of a communicator shows to the ranks that share memory with it:
// standard layout, lock-free, in the arena of the rank's process, mapped by all
// peers. Except for `sleepers`, `failed_by` and `left` every word is written by
// its owner only.
//
// Memory orders: a word that publishes other memory is stored with release and
// loaded with acquire (call lines, progress, ring heads, `taken`); words for
// dumps and diagnosis are relaxed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "transport/note.h"

namespace axon {

constexpr int kMaxLocalRanks = 256;
// A rank may be this many calls ahead of the slowest reader of its lines.
constexpr uint32_t kCallLines = 8;
constexpr size_t kInlineBytes = 48;

// Counts are (call number << 32) + operations done in that call; they wrap.
// Count(c + 1, 0) also says that call c is finished.
constexpr uint64_t Count(uint32_t call, uint32_t done) {
  return (static_cast<uint64_t>(call) << 32) + done;
}
constexpr bool Reached(uint64_t count, uint64_t target) {
  return static_cast<int64_t>(count - target) >= 0;
}

// Where a buffer lies for peers: 0 for private memory.
using Ref = uint64_t;

// What a call line says besides the call: data themselves, or where they are.
struct LineBody {
  struct Place {
    uint64_t outbox;    // offset of the rank's outbox in its arena
    uint64_t position;  // of the call's first slice in the outbox
    Ref in, out;        // buffers that are read where they lie

    // What a peer's line says, each word read once: what is checked then is
    // what is used.
    Place Read() const {
      const auto read = [](const uint64_t& word) {
        return std::atomic_ref(const_cast<uint64_t&>(word))
            .load(std::memory_order_relaxed);
      };
      return {read(outbox), read(position), read(in), read(out)};
    }
  };
  union {
    std::byte data[kInlineBytes];
    Place place;
  };
  double factor;  // of this rank in a premultiplied sum
};
static_assert(sizeof(LineBody) == 56);

// A rank's entry into one call. `word` is (call number << 32) + signature hash,
// written by the owner with release after the body, polled by peers.
struct alignas(kCacheLine) CallLine {
  std::atomic<uint64_t> word;
  LineBody body;
};
static_assert(sizeof(CallLine) == kCacheLine);

// The call of a line in words, for texts. Relaxed; made visible by the line.
struct alignas(kCacheLine) CallRecord {
  std::atomic<uint64_t> word;   // as the line's will be; 0: none
  std::atomic<uint64_t> kind;   // collective, type, …: see Signature
  std::atomic<uint64_t> count;  // elements
  std::atomic<uint64_t> extra;  // hash of further arguments (counts of parts)
  std::atomic<uint64_t> began_ns;  // 0 unless the rank waits in it

  uint32_t call() const {
    return static_cast<uint32_t>(word.load(std::memory_order_relaxed) >> 32);
  }
  // The rolling hash after it.
  uint32_t hash() const {
    return static_cast<uint32_t>(word.load(std::memory_order_relaxed));
  }
};

// Lanes of channels: messages of the user, and those that a call sends for
// itself. They never mix, since users' messages are not ordered against calls.
constexpr int kUserLane = 0, kCallLane = 1;
constexpr int kChannelLanes = 2;

// Towards and from one peer, in one lane: written by the owner of the block.
struct alignas(kCacheLine) PeerLine {
  std::atomic<uint64_t> ring;   // offset of my ring to the peer; 0: none yet
  std::atomic<uint64_t> taken;  // bytes that I have popped from its ring to me
};

struct Block {
  static constexpr uint64_t kMagic = 0x41786f6e426c6b31;  // "AxonBlk1"

  uint64_t magic;
  uint32_t size;  // bytes of the block
  int32_t rank, ranks;
  int32_t pid;
  char host[64];

  // Operations done. Writer: the thread that runs the rank's call.
  alignas(kCacheLine) std::atomic<uint64_t> progress;
  // Bit r: rank r sleeps until I publish something. Set by r (seq_cst, before
  // it looks again), cleared by the owner when it wakes r.
  alignas(kCacheLine) std::atomic<uint64_t> sleepers[kMaxLocalRanks / 64];
  // 1 + the rank that failed first; 0: none. Only that of rank 0 is used, so
  // that all ranks see the failure at the same moment. Set once by any rank
  // (compare-exchange; release, after its text), read by all in every call.
  alignas(kCacheLine) std::atomic<uint32_t> failed_by;
  // Bit r: rank r will never touch this block or what it names again. Set by r
  // as its last act (release); the owner frees the memory when all have left or
  // died (acquire).
  std::atomic<uint64_t> left[kMaxLocalRanks / 64];
  // Not 0: the owner's part in the creation failed after peers had learned of
  // this block, so some may believe that it takes part. It never will, nor does
  // it touch theirs. Set once by the owner (release).
  std::atomic<uint32_t> given_up;
  std::atomic<uint32_t> failure_code;  // absl code; relaxed
  char failure_text[1024];
  char name[64];  // of the communicator
  // What the queue waits behind, and the calls made so far, queued ones
  // included: written in every call, so apart from what peers read in theirs.
  Note busy_with;
  std::atomic<uint32_t> calls_made;

  CallLine lines[kCallLines];
  CallRecord records[kCallLines];

  // PeerLine[ranks][kChannelLanes] follows.
  PeerLine* peer(int rank, int lane = kUserLane) {
    return reinterpret_cast<PeerLine*>(this + 1) +
           static_cast<ptrdiff_t>(rank) * kChannelLanes + lane;
  }
  static size_t SizeFor(int ranks) {
    return sizeof(Block) +
           sizeof(PeerLine) * kChannelLanes * static_cast<size_t>(ranks);
  }
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(Block) % kCacheLine == 0);

}  // namespace axon
