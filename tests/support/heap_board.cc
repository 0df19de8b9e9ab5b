// SPDX-License-Identifier: Apache-2.0
#include "tests/support/heap_board.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace axon {

void HeapBoard::Free::operator()(std::byte* p) const { std::free(p); }

HeapBoard::HeapBoard(int ranks, size_t arena_size, bool shared) {
  // aligned_alloc wants whole alignments.
  arena_size = RoundUp(arena_size, 4096);
  std::vector<Board::Member> members;
  for (int r = 0; r < ranks; ++r) {
    auto* arena =
        static_cast<std::byte*>(std::aligned_alloc(4096, arena_size + kBehind));
    std::memset(arena, 0, arena_size);
    arenas_.emplace_back(arena);
    doorbells_.push_back(std::make_unique<Doorbell>());
    auto* block = new (arena) Block();
    block->magic = Block::kMagic;
    block->rank = r;
    block->ranks = ranks;
    block->pid = getpid();
    std::strcpy(block->host, "test");
    block->progress.store(Count(1, 0), std::memory_order_relaxed);
    used_.push_back(RoundUp(Block::SizeFor(ranks), 4096));
    members.push_back(
        {block, arena, arena_size, doorbells_.back().get(), shared});
  }
  for (int r = 0; r < ranks; ++r) {
    boards_.push_back(std::make_unique<Board>(r, members));
  }
}

std::byte* HeapBoard::Allocate(int rank, size_t bytes) {
  std::byte* p = arenas_[rank].get() + used_[rank];
  used_[rank] += RoundUp(bytes, 4096);
  return p;
}

std::byte* HeapBoard::BehindArena(int rank) {
  const Board::Member& member = board(rank).member(rank);
  return member.arena + member.arena_size;
}

}  // namespace axon
