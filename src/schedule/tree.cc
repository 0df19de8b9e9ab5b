// SPDX-License-Identifier: Apache-2.0
// Binomial trees: log2(size) steps, and no rank but the root's children waits
// for the root. For small vectors and many ranks.
#include "schedule/parts.h"
#include "schedule/passes.h"

namespace axon {

void TreeReduce(const Group& group, Span in, Span out, Schedule* s) {
  const int n = group.size();
  const int v = FromRoot(group);
  Span sum = in;
  for (int d = 1; d < LowBit(v, n) && v + d < n; d *= 2) {
    const bool last = v == 0 && 2 * d >= n;
    s->RecvReduce(AtDistance(group, v + d), sum, out, /*completes=*/last);
    sum = out;
  }
  if (v != 0) s->Send(AtDistance(group, v - LowBit(v, n)), sum);
}

void TreeBroadcast(const Group& group, Span from, Span to, Schedule* s) {
  const int n = group.size();
  const int v = FromRoot(group);
  if (v != 0) {
    s->Recv(AtDistance(group, v - LowBit(v, n)), to);
    from = to;
  }
  for (int d = LowBit(v, n) / 2; d >= 1; d /= 2) {
    if (v + d < n) s->Send(AtDistance(group, v + d), from);
  }
}

Schedule TreeAllReduce(const Group& group) {
  Schedule s;
  if (group.size() == 1) {
    s.Copy(In(0, 1), Out(0, 1), /*completes=*/true);
    return s;
  }
  const Group from_first{group.ranks, group.me, 0};
  TreeReduce(from_first, In(0, 1), Out(0, 1), &s);
  TreeBroadcast(from_first, Out(0, 1), Out(0, 1), &s);
  return s;
}

Schedule TreeReduceToRoot(const Group& group) {
  Schedule s;
  if (group.size() == 1) {
    s.Copy(In(0, 1), Out(0, 1), /*completes=*/true);
    return s;
  }
  const bool root = AmRoot(group);
  const bool leaf = Subtree(FromRoot(group), group.size()) == 1;
  s.scratch_pieces = !root && !leaf ? 1 : 0;
  TreeReduce(group, In(0, 1), root ? Out(0, 1) : Scratch(0, 1), &s);
  return s;
}

Schedule TreeBroadcastFromRoot(const Group& group) {
  Schedule s;
  TreeBroadcast(group, In(0, 1), Out(0, 1), &s);
  if (AmRoot(group)) s.Copy(In(0, 1), Out(0, 1));
  return s;
}

}  // namespace axon
