// SPDX-License-Identifier: Apache-2.0
// A board over real arenas. Every rank maps the others' by itself, so the same
// memory has other addresses on other ranks, as between processes; ranks may
// also be forked. Owned by the test.
#pragma once

#include <memory>
#include <vector>

#include "transport/board.h"
#include "transport/shm/arena.h"

namespace axon {

class ArenaBoard {
 public:
  ArenaBoard(int ranks, size_t arena_size);

  int ranks() const { return static_cast<int>(boards_.size()); }
  Board& board(int rank) { return *boards_[static_cast<size_t>(rank)]; }
  Arena& arena(int rank) { return *arenas_[static_cast<size_t>(rank)]; }

 private:
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<Mapping> mappings_;
  std::vector<std::unique_ptr<Board>> boards_;
};

}  // namespace axon
