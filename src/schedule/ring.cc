// SPDX-License-Identifier: Apache-2.0
// Everyone talks to the next rank only, and each part of the vector travels
// round. The fewest bytes over any one link, size-1 steps: for large vectors.
#include "schedule/parts.h"
#include "schedule/passes.h"

namespace axon {

void RingReduce(const Group& group, SpanAt own, SpanAt partial, Schedule* s) {
  const int n = group.size();
  const int next = group.at(group.me + 1);
  const int previous = group.at(group.me - 1);
  for (int step = 1; step < n; ++step) {
    s->Send(next, step == 1 ? own(group.me + n - 1) : partial(step - 1));
    s->RecvReduce(previous, own((group.me + n - step - 1 + n) % n),
                  partial(step), /*completes=*/step == n - 1);
  }
}

void RingGather(const Group& group, Span mine, SpanAt at, Schedule* s) {
  const int n = group.size();
  for (int step = 0; step < n - 1; ++step) {
    const int index = (group.me + n - step) % n;
    s->Send(group.at(group.me + 1), step == 0 ? mine : at(index));
    s->Recv(group.at(group.me - 1), at((index + n - 1) % n));
  }
}

Schedule RingAllReduce(const Group& group) {
  const int n = group.size();
  Schedule s;
  s.cuts = static_cast<uint16_t>(n);
  if (n == 1) s.Copy(In(0, 1), Out(0, 1), /*completes=*/true);
  const auto part = [n](int i) { return Part(Out(0, n), n, i); };
  RingReduce(
      group, [n](int i) { return Part(In(0, n), n, i); },
      [&](int step) { return part(group.me - step - 1); }, &s);
  RingGather(group, part(group.me), part, &s);
  return s;
}

Schedule RingReduceScatter(const Group& group) {
  const int n = group.size();
  Schedule s;
  // Partial sums stay where they were sent from until the call ends, since
  // nothing tells me when the next rank has read them.
  s.scratch_pieces = static_cast<uint16_t>(std::max(0, n - 2));
  if (n == 1) s.Copy(In(0, 1), Out(0, 1), /*completes=*/true);
  RingReduce(
      group, [&](int i) { return In(group.at(i), 1); },
      [n](int step) {
        return step == n - 1 ? Out(0, 1) : Scratch(step - 1, 1);
      },
      &s);
  return s;
}

Schedule RingAllGather(const Group& group) {
  Schedule s;
  const auto block = [&](int i) { return Out(group.at(i), 1); };
  RingGather(group, In(0, 1), block, &s);
  s.Copy(In(0, 1), block(group.me));
  return s;
}

}  // namespace axon
