// SPDX-License-Identifier: Apache-2.0
// Words that generators share: whole buffers, blocks, the other ranks. Pure
// functions.
#pragma once

#include <algorithm>
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

// My distance from the root, going up; and the rank at such a distance.
inline int FromRoot(const Group& group) {
  return (group.me - group.root + group.size()) % group.size();
}
inline int AtDistance(const Group& group, int distance) {
  return group.at(group.root + distance);
}

// In a binomial tree over 0 .. size-1 the parent of v is v without its lowest
// bit, and v stands for the indices v .. v + Subtree(v, size) - 1.
inline int LowBit(int v, int size) {
  int bit = 1;
  while (bit < size && (v & bit) == 0) bit *= 2;
  return bit;
}
inline int Subtree(int v, int size) {
  return std::min(LowBit(v, size), size - v);
}

// Blocks first .. first+count-1 modulo `size`, as one or two runs.
inline std::vector<Span> Runs(Buffer buffer, int first, int count, int size) {
  first %= size;
  const int until_end = std::min(count, size - first);
  std::vector<Span> runs = {Pieces(buffer, first, until_end)};
  if (count > until_end) runs.push_back(Pieces(buffer, 0, count - until_end));
  return runs;
}

// The same ranks in ascending order, for algorithms that move runs of blocks.
// The ranks of `group` are 0 .. size-1 in some order.
inline Group InRankOrder(const Group& group) {
  return Group::World(group.size(), Self(group), Root(group));
}

}  // namespace axon
