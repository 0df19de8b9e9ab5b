// SPDX-License-Identifier: Apache-2.0
// One step: everyone gives everyone everything and reduces for itself. The
// fewest waits and the most bytes: for small vectors and few ranks.
#include "schedule/parts.h"

namespace axon {

Schedule OneShotAllReduce(const Group& group) {
  Schedule s;
  if (group.size() == 1) {
    s.Copy(In(0, 1), Out(0, 1), /*completes=*/true);
    return s;
  }
  const std::vector<int> others = Others(group);
  s.Publish(others, In(0, 1));
  s.ReduceAll(others, In(0, 1), Out(0, 1));
  return s;
}

}  // namespace axon
