// SPDX-License-Identifier: Apache-2.0
#include "tests/support/arena_board.h"

#include <unistd.h>

#include <cstring>
#include <new>

namespace axon {
namespace {

constexpr char kUid[] = "a test's process";
static_assert(sizeof(kUid) == 17);

Block* NewBlock(Arena& arena, int rank, int ranks) {
  // value() of a failed allocation ends the test with its text.
  std::byte* memory = arena.Allocate(Block::SizeFor(ranks)).value();
  auto* block = new (memory) Block();
  for (int q = 0; q < ranks; ++q) {
    for (int lane = 0; lane < kChannelLanes; ++lane) {
      new (block->peer(q, lane)) PeerLine();
    }
  }
  block->magic = Block::kMagic;
  block->rank = rank;
  block->ranks = ranks;
  block->pid = getpid();
  std::strcpy(block->host, "test");
  block->progress.store(Count(1, 0), std::memory_order_relaxed);
  return block;
}

}  // namespace

ArenaBoard::ArenaBoard(int ranks, size_t arena_size) {
  std::vector<uint64_t> offsets;
  for (int r = 0; r < ranks; ++r) {
    arenas_.push_back(
        Arena::Create(ShmKind::kMemfd, "", arena_size, kUid).value());
    Block* block = NewBlock(*arenas_.back(), r, ranks);
    offsets.push_back(
        arenas_.back()->OffsetOf(reinterpret_cast<std::byte*>(block)));
  }
  for (int r = 0; r < ranks; ++r) {
    std::vector<Board::Member> members;
    for (int q = 0; q < ranks; ++q) {
      Board::Member member;
      member.arena = arena(q).base();
      if (q != r) {
        mappings_.push_back(
            Arena::MapPeer(arena(q).fd(), arena_size, kUid).value());
        member.arena = mappings_.back().base();
      }
      member.arena_size = arena_size;
      member.block = reinterpret_cast<Block*>(member.arena +
                                              offsets[static_cast<size_t>(q)]);
      member.doorbell = &reinterpret_cast<ArenaHeader*>(member.arena)->doorbell;
      member.same_process = q == r;
      members.push_back(member);
    }
    boards_.push_back(std::make_unique<Board>(r, members));
  }
}

}  // namespace axon
