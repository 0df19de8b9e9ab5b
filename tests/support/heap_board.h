// SPDX-License-Identifier: Apache-2.0
// A board whose ranks are threads of the test, in ordinary memory: the engine
// without processes, segments or set-up. Owned by the test.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "transport/board.h"

namespace axon {

class HeapBoard {
 public:
  // Each rank has an arena of `arena_size` bytes, its block at its begin.
  // `shared`: ranks find each other's private buffers (threads of a process).
  HeapBoard(int ranks, size_t arena_size, bool shared);

  int ranks() const { return static_cast<int>(boards_.size()); }
  Board& board(int rank) { return *boards_[rank]; }
  // Free memory of a rank's arena, behind its block.
  std::byte* Allocate(int rank, size_t bytes);
  // kBehind bytes of private memory of a rank that begin where its arena ends.
  static constexpr size_t kBehind = 16 << 10;
  std::byte* BehindArena(int rank);

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::vector<std::unique_ptr<std::byte, Free>> arenas_;
  std::vector<size_t> used_;
  std::vector<std::unique_ptr<Doorbell>> doorbells_;
  std::vector<std::unique_ptr<Board>> boards_;
};

}  // namespace axon
