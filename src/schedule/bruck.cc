// SPDX-License-Identifier: Apache-2.0
// Bruck's algorithms: ceil(log2(size)) steps for any size, for small blocks.
#include <bit>

#include "schedule/parts.h"

namespace axon {

// Before the step of distance d I have the blocks of me .. me+d-1 and get those
// of me+d .. from the rank at that distance. Runs that pass the last rank are
// two messages, so blocks land where they belong and nothing is rotated.
Schedule BruckAllGather(const Group& any_order) {
  const Group group = InRankOrder(any_order);
  const int n = group.size();
  Schedule s;
  s.Copy(In(0, 1), Out(group.me, 1));
  for (int d = 1; d < n; d *= 2) {
    const int count = std::min(d, n - d);
    for (Span run : Runs(Buffer::kOut, group.me, count, n)) {
      s.Send(group.at(group.me - d), run);
    }
    for (Span run : Runs(Buffer::kOut, group.me + d, count, n)) {
      s.Recv(group.at(group.me + d), run);
    }
  }
  return s;
}

// A block for the rank at distance j travels the bits of j, lowest first. Each
// step packs the blocks that go on into one message. size * log2(size) pieces
// of scratch: what was sent is not written again.
Schedule BruckAlltoAll(const Group& group) {
  const int n = group.size();
  Schedule s;
  // at[j]: where the block lies that has j still to go, in whole.
  std::vector<Span> at;
  for (int j = 0; j < n; ++j) at.push_back(In(group.at(group.me + j), 1));
  s.Copy(at[0], Out(Self(group), 1));
  for (int d = 1; d < n; d *= 2) {
    std::vector<int> moving;
    for (int j = d; j < n; ++j) {
      if ((j & d) != 0) moving.push_back(j);
    }
    const int count = static_cast<int>(moving.size());
    const int packed = s.scratch_pieces;
    const int arrived = packed + count;
    s.scratch_pieces = static_cast<uint16_t>(arrived + count);
    for (int i = 0; i < count; ++i) {
      s.Copy(at[moving[i]], Scratch(packed + i, 1));
    }
    s.Send(group.at(group.me + d), Scratch(packed, count));
    s.Recv(group.at(group.me - d), Scratch(arrived, count));
    for (int i = 0; i < count; ++i) {
      at[moving[i]] = Scratch(arrived + i, 1);
      if (moving[i] < 2 * d) {  // the last bit: it came from me - j
        s.Copy(at[moving[i]], Out(group.at(group.me - moving[i]), 1));
      }
    }
  }
  return s;
}

}  // namespace axon
