// SPDX-License-Identifier: Apache-2.0
// Barrier in ceil(log2(size)) steps: after step k I know of the 2^k ranks
// before me that they have come. Messages are empty.
#include "schedule/parts.h"

namespace axon {

Schedule DisseminationBarrier(const Group& group) {
  Schedule s;
  for (int d = 1; d < group.size(); d *= 2) {
    s.Send(group.at(group.me + d), Out(0, 0));
    s.Recv(group.at(group.me - d), Out(0, 0));
  }
  return s;
}

}  // namespace axon
