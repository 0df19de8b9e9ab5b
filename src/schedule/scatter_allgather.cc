// SPDX-License-Identifier: Apache-2.0
// Broadcast of a large vector: the root scatters its parts along a binomial
// tree, then they go round a ring. Twice the bytes of one copy whatever the
// size, where a tree sends whole vectors log2(size) times.
#include "schedule/parts.h"

namespace axon {

Schedule ScatterAllGatherBroadcast(const Group& group) {
  const int n = group.size();
  const int v = FromRoot(group);
  Schedule s;
  s.cuts = static_cast<uint16_t>(n);
  const Buffer from = v == 0 ? Buffer::kIn : Buffer::kOut;
  if (v != 0) {
    s.Recv(AtDistance(group, v - LowBit(v, n)), Out(v, Subtree(v, n)));
  }
  for (int d = LowBit(v, n) / 2; d >= 1; d /= 2) {
    if (v + d >= n) continue;
    s.Send(AtDistance(group, v + d), Pieces(from, v + d, Subtree(v + d, n)));
  }

  // What the tree has left at w need not come round again.
  const auto has = [n](int w, int part) {
    return w <= part && part < w + Subtree(w, n);
  };
  const int next = (v + 1) % n;
  for (int step = 0; step < n - 1; ++step) {
    const int sent = (v + n - step) % n;
    const int received = (sent + n - 1) % n;
    if (!has(next, sent)) {
      s.Send(AtDistance(group, next), Pieces(from, sent, 1));
    }
    if (!has(v, received)) s.Recv(AtDistance(group, v - 1), Out(received, 1));
  }
  if (v == 0) s.Copy(In(0, n), Out(0, n));
  return s;
}

}  // namespace axon
