// SPDX-License-Identifier: Apache-2.0
// Words that generators share: whole buffers, blocks, the other ranks. Pure
// functions.
#pragma once

#include <vector>

#include "schedule/group.h"
#include "schedule/schedule.h"

namespace axon {

// Pieces [first, first + count) of a buffer.
inline Span Pieces(Buffer buffer, int first, int count) {
  return {buffer, static_cast<uint16_t>(first), static_cast<uint16_t>(count)};
}
inline Span In(int first, int count) {
  return Pieces(Buffer::kIn, first, count);
}
inline Span Out(int first, int count) {
  return Pieces(Buffer::kOut, first, count);
}
inline Span Scratch(int first, int count) {
  return Pieces(Buffer::kScratch, first, count);
}

// The rank of the caller; also the number of its block.
inline int Self(const Group& group) { return group.at(group.me); }
inline int Root(const Group& group) { return group.at(group.root); }
inline bool AmRoot(const Group& group) { return group.me == group.root; }

// All other ranks, the next one after me first, so that not everybody begins
// with the same one.
inline std::vector<int> Others(const Group& group) {
  std::vector<int> others;
  for (int i = 1; i < group.size(); ++i)
    others.push_back(group.at(group.me + i));
  return others;
}

// The same ranks in ascending order, for algorithms that move runs of blocks.
// The ranks of `group` are 0 .. size-1 in some order.
inline Group InRankOrder(const Group& group) {
  return Group::World(group.size(), Self(group), Root(group));
}

}  // namespace axon
