// SPDX-License-Identifier: Apache-2.0
// Gather and scatter along a binomial tree: log2(size) steps at the root, at
// the price of moving most blocks several times. For small blocks and many
// ranks. Ranks between hold the blocks of their subtree in scratch, by distance
// from the root; at the root a subtree may pass the last rank and is two runs
// then.
#include "schedule/parts.h"

namespace axon {
namespace {

// The spans of a message between v's subtree and its parent, at the root's end
// (blocks of `buffer` by rank) or at the other (scratch, by distance).
std::vector<Span> AtRoot(const Group& group, Buffer buffer, int v) {
  const int n = group.size();
  return Runs(buffer, group.root + v, Subtree(v, n), n);
}
std::vector<Span> InScratch(const Group& group, int v, int first) {
  std::vector<Span> spans;
  const bool child_of_root = v == LowBit(v, group.size());
  if (!child_of_root) return {Scratch(first, Subtree(v, group.size()))};
  for (Span run : AtRoot(group, Buffer::kScratch, v)) {
    spans.push_back(Scratch(first, run.count));
    first += run.count;
  }
  return spans;
}

}  // namespace

Schedule BinomialGather(const Group& any_order) {
  const Group group = InRankOrder(any_order);
  const int n = group.size();
  const int v = FromRoot(group);
  const int count = Subtree(v, n);
  Schedule s;
  if (v != 0 && count == 1) {
    s.Send(AtDistance(group, v - LowBit(v, n)), In(0, 1));
    return s;
  }
  s.scratch_pieces = static_cast<uint16_t>(v == 0 ? 0 : count);
  s.Copy(In(0, 1), v == 0 ? Out(group.me, 1) : Scratch(0, 1));
  for (int d = 1; d < LowBit(v, n) && v + d < n; d *= 2) {
    for (Span span :
         v == 0 ? AtRoot(group, Buffer::kOut, d) : InScratch(group, v + d, d)) {
      s.Recv(AtDistance(group, v + d), span);
    }
  }
  if (v == 0) return s;
  for (Span span : InScratch(group, v, 0)) {
    s.Send(AtDistance(group, v - LowBit(v, n)), span);
  }
  return s;
}

Schedule BinomialScatter(const Group& any_order) {
  const Group group = InRankOrder(any_order);
  const int n = group.size();
  const int v = FromRoot(group);
  const int count = Subtree(v, n);
  Schedule s;
  if (v != 0 && count == 1) {
    s.Recv(AtDistance(group, v - LowBit(v, n)), Out(0, 1));
    return s;
  }
  s.scratch_pieces = static_cast<uint16_t>(v == 0 ? 0 : count);
  if (v != 0) {
    for (Span span : InScratch(group, v, 0)) {
      s.Recv(AtDistance(group, v - LowBit(v, n)), span);
    }
  }
  for (int d = LowBit(v, n) / 2; d >= 1; d /= 2) {
    if (v + d >= n) continue;
    for (Span span :
         v == 0 ? AtRoot(group, Buffer::kIn, d) : InScratch(group, v + d, d)) {
      s.Send(AtDistance(group, v + d), span);
    }
  }
  s.Copy(v == 0 ? In(group.me, 1) : Scratch(0, 1), Out(0, 1));
  return s;
}

}  // namespace axon
