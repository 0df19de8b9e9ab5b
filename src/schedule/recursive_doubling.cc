// SPDX-License-Identifier: Apache-2.0
// Exchanges at distances 1, 2, 4, …: after step k every rank has what its group
// of 2^k had. log2(size) steps, all bytes in each: for small vectors.
#include <bit>

#include "schedule/parts.h"

namespace axon {

// With a size that is no power of two, the first 2 * extra ranks pair up: the
// odd one gives its vector to the even one and waits for the result. Sums of
// two are taken in rank order, so all ranks compute the same expression.
Schedule RecursiveDoublingAllReduce(const Group& any_order) {
  const Group group = InRankOrder(any_order);
  const int n = group.size();
  const int core = static_cast<int>(std::bit_floor(unsigned(n)));
  const int extra = n - core;
  const bool paired = group.me < 2 * extra;
  Schedule s;
  if (n == 1) s.Copy(In(0, 1), Out(0, 1), /*completes=*/true);
  if (paired && group.me % 2 == 1) {
    s.Send(group.me - 1, In(0, 1));
    s.Recv(group.me - 1, Out(0, 1));
    return s;
  }

  int steps = std::countr_zero(unsigned(core)) + (paired ? 1 : 0);
  Span sum = In(0, 1);
  // A sum that was sent is not written again: the peer may be reading it.
  const auto add = [&](int peer) {
    const bool last = --steps == 0;
    const Span to = last ? Out(0, 1) : Scratch(s.scratch_pieces++, 1);
    s.ReduceAll({peer}, sum, to, /*completes=*/last);
    sum = to;
  };
  if (paired) add(group.me + 1);
  const int me = paired ? group.me / 2 : group.me - extra;
  for (int d = 1; d < core; d *= 2) {
    const int other = me ^ d;
    const int peer = other < extra ? 2 * other : other + extra;
    s.Send(peer, sum);
    add(peer);
  }
  if (paired) s.Send(group.me + 1, Out(0, 1));
  return s;
}

// Sizes that are a power of two.
Schedule RecursiveDoublingAllGather(const Group& any_order) {
  const Group group = InRankOrder(any_order);
  Schedule s;
  for (int d = 1; d < group.size(); d *= 2) {
    const int peer = group.me ^ d;
    s.Send(peer, d == 1 ? In(0, 1) : Out(group.me & -d, d));
    if (d == 1) s.Copy(In(0, 1), Out(group.me, 1));
    s.Recv(peer, Out(peer & -d, d));
  }
  if (group.size() == 1) s.Copy(In(0, 1), Out(0, 1));
  return s;
}

}  // namespace axon
