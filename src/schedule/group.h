// SPDX-License-Identifier: Apache-2.0
// The ranks that take part, in the order an algorithm should use them. A value.
#pragma once

#include <vector>

namespace axon {

struct Group {
  std::vector<int> ranks;
  int me = 0;    // index into ranks
  int root = 0;  // index into ranks; for rooted collectives

  int size() const { return static_cast<int>(ranks.size()); }
  // The rank at index i, taken modulo the size.
  int at(int i) const {
    const int n = size();
    return ranks[((i % n) + n) % n];
  }
  // Ranks 0 .. size-1 in their order.
  static Group World(int size, int me, int root = 0) {
    Group group{{}, me, root};
    for (int i = 0; i < size; ++i) group.ranks.push_back(i);
    return group;
  }
};

}  // namespace axon
