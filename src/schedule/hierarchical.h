// SPDX-License-Identifier: Apache-2.0
// Algorithms over two levels: ranks that share a node, and ranks that share a
// place in their nodes (a rail). They need two groups, so they are no rows of
// the table. Pure functions.
#pragma once

#include "schedule/group.h"
#include "schedule/schedule.h"

namespace axon {

// Reduce-scatter in the node, so that I hold one part; all-reduce of that part
// along the rail; all-gather in the node. `local` has the ranks of my node, all
// nodes having as many; `rail` those with my index in theirs, nodes in one
// order.
Schedule HierarchicalAllReduce(const Group& local, const Group& rail);

}  // namespace axon
