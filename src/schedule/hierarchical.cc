// SPDX-License-Identifier: Apache-2.0
#include "schedule/hierarchical.h"

#include "schedule/parts.h"
#include "schedule/passes.h"

namespace axon {

Schedule HierarchicalAllReduce(const Group& local, const Group& rail) {
  const int l = local.size();
  const int r = rail.size();
  const Span in = In(0, l * r);
  const Span out = Out(0, l * r);
  const Span mine = Part(out, l, local.me);
  const std::vector<int> others = Others(local);
  Schedule s;
  s.cuts = static_cast<uint16_t>(l * r);
  if (l == 1 && r == 1) s.Copy(in, out, /*completes=*/true);

  if (l > 1) {
    for (int i = 1; i < l; ++i) {
      s.Send(local.at(local.me + i), Part(in, l, local.me + i));
    }
    s.ReduceAll(others, Part(in, l, local.me), mine, /*completes=*/r == 1);
  }

  // Of my part, piece i belongs to the i-th node of the rail.
  const Span from = l > 1 ? mine : in;
  const auto piece = [&](int i) { return Part(mine, r, i); };
  RingReduce(
      rail, [&](int i) { return Part(from, r, i); },
      [&](int step) { return piece(rail.me - step - 1); }, &s);
  RingGather(rail, piece(rail.me), piece, &s);

  if (l > 1) {
    s.Publish(others, mine);
    for (int i = 1; i < l; ++i) {
      s.Recv(local.at(local.me + i), Part(out, l, local.me + i));
    }
  }
  return s;
}

}  // namespace axon
