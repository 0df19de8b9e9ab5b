// SPDX-License-Identifier: Apache-2.0
// All ranks of a communicator that share memory, as one rank sees them: their
// blocks, their arenas, and the calls that every writer and every waiter needs.
// Owned by the communicator; the memory belongs to arenas that outlive it.
// Thread-safe: calls and messages of a rank may be run by different threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "transport/block.h"
#include "transport/doorbell.h"

namespace axon {

class Board {
 public:
  struct Member {
    Block* block = nullptr;
    std::byte* arena = nullptr;  // where the rank's arena is mapped here
    size_t arena_size = 0;
    Doorbell* doorbell = nullptr;  // of the rank's process
    bool same_process = false;
  };

  Board(int me, std::vector<Member> members);

  int me() const { return me_; }
  int ranks() const { return static_cast<int>(members_.size()); }
  const Member& member(int rank) const { return members_[rank]; }
  Block& block(int rank) const { return *members_[rank].block; }
  Block& mine() const { return *mine_; }
  bool one_process() const { return one_process_; }

  // The reference by which peers find `p`, or 0 if they cannot.
  Ref RefOf(const void* p, size_t size) const;
  // The address of a peer's reference plus `size` bytes of it; null if it does
  // not lie in the peer's arena (never trusted).
  std::byte* Address(int rank, Ref ref, size_t size) const;
  // Of a peer's arena; null if out of range.
  std::byte* InArena(int rank, uint64_t offset, size_t size) const;

  // To be called after every publishing store: wakes the ranks that sleep until
  // this one publishes. One load where nobody sleeps.
  void Published() {
    // The processor's order is made by the sleeper's HeavyFence().
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (mine_->sleepers[0].load(std::memory_order_relaxed) != 0) Wake(0);
    for (int i = 1; i < sleeper_words_; ++i) {
      if (mine_->sleepers[i].load(std::memory_order_relaxed) != 0) Wake(i);
    }
  }
  // Asks `rank` to wake this process at its next publication. The caller looks
  // at its condition again after HeavyFence() and before it sleeps.
  void AskToWake(int rank);

  // Records this rank's error and, if it is the first of the communicator,
  // tells every rank: all see it from the same moment on.
  void Fail(const absl::Status& error);
  // The cheap question.
  bool failed() const {
    return failed_by_->load(std::memory_order_acquire) != 0;
  }
  // That of who has read peers' memory: if not, then no rank had returned from
  // its call with an error, and given its memory up, before the reads.
  bool FailedMeanwhile() const {
    // The processor's order is made by the HeavyFence() in failure(), which
    // comes before such a return.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return failed();
  }
  // The first error of the communicator; OK if none.
  absl::Status failure() const;

  // This rank will not touch any peer's memory for this board again.
  void Leave();
  bool HasLeft(int rank) const {
    return (mine_->left[rank / 64].load(std::memory_order_acquire) >>
                (rank % 64) &
            1) != 0 ||
           HasGivenUp(rank);
  }
  // It never took part: creating the communicator has failed on it only.
  bool HasGivenUp(int rank) const {
    return block(rank).given_up.load(std::memory_order_acquire) != 0;
  }

  // "rank 3 (host node7, pid 1234)".
  std::string Describe(int rank) const;

 private:
  void Wake(int word);

  int me_;
  std::vector<Member> members_;
  Block* mine_;
  std::atomic<uint32_t>* failed_by_;
  std::mutex text_mutex_;  // of threads that write this rank's error
  int sleeper_words_;
  bool one_process_;
};

}  // namespace axon
