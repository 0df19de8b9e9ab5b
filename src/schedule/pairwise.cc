// SPDX-License-Identifier: Apache-2.0
// All-to-all in size-1 steps, in each of which every rank has one partner to
// send to and one to receive from: little memory in flight, for large blocks.
#include "schedule/parts.h"

namespace axon {

Schedule PairwiseAlltoAll(const Group& group) {
  Schedule s;
  s.Copy(In(Self(group), 1), Out(Self(group), 1));
  for (int i = 1; i < group.size(); ++i) {
    const int to = group.at(group.me + i);
    const int from = group.at(group.me - i);
    s.Send(to, In(to, 1));
    s.Recv(from, Out(from, 1));
  }
  return s;
}

}  // namespace axon
