// SPDX-License-Identifier: Apache-2.0
// The direct algorithms: every message goes straight from the rank that has it
// to the rank that wants it, and everything is reduced in rank order at once.
// Fewest bytes for the fewest steps where all ranks reach each other equally
// well.
#include "schedule/parts.h"

namespace axon {

// Two shots: part q of everyone's vector is reduced by rank q, then shared.
Schedule MeshAllReduce(const Group& group) {
  const int n = group.size();
  Schedule s;
  s.cuts = static_cast<uint16_t>(n);
  if (n == 1) {
    s.Copy(In(0, 1), Out(0, 1), /*completes=*/true);
    return s;
  }
  const std::vector<int> others = Others(group);
  const int me = Self(group);
  for (int peer : others) s.Send(peer, In(peer, 1));
  s.ReduceAll(others, In(me, 1), Out(me, 1));
  s.Publish(others, Out(me, 1));
  for (int peer : others) s.Recv(peer, Out(peer, 1));
  return s;
}

Schedule MeshAllGather(const Group& group) {
  Schedule s;
  const std::vector<int> others = Others(group);
  if (!others.empty()) s.Publish(others, In(0, 1));
  s.Copy(In(0, 1), Out(Self(group), 1));
  for (int peer : others) s.Recv(peer, Out(peer, 1));
  return s;
}

Schedule MeshReduceScatter(const Group& group) {
  Schedule s;
  const std::vector<int> others = Others(group);
  const Span mine = In(Self(group), 1);
  for (int peer : others) s.Send(peer, In(peer, 1));
  if (others.empty()) {
    s.Copy(mine, Out(0, 1), /*completes=*/true);
  } else {
    s.ReduceAll(others, mine, Out(0, 1));
  }
  return s;
}

Schedule MeshBroadcast(const Group& group) {
  Schedule s;
  if (!AmRoot(group)) {
    s.Recv(Root(group), Out(0, 1));
    return s;
  }
  if (group.size() > 1) s.Publish(Others(group), In(0, 1));
  s.Copy(In(0, 1), Out(0, 1));
  return s;
}

Schedule MeshReduce(const Group& group) {
  Schedule s;
  if (!AmRoot(group)) {
    s.Send(Root(group), In(0, 1));
  } else if (group.size() > 1) {
    s.ReduceAll(Others(group), In(0, 1), Out(0, 1));
  } else {
    s.Copy(In(0, 1), Out(0, 1), /*completes=*/true);
  }
  return s;
}

Schedule MeshAlltoAll(const Group& group) {
  Schedule s;
  const int me = Self(group);
  for (int peer : Others(group)) s.Send(peer, In(peer, 1));
  s.Copy(In(me, 1), Out(me, 1));
  // My message is the i-th that the rank i before me sends.
  for (int i = 1; i < group.size(); ++i) {
    const int peer = group.at(group.me - i);
    s.Recv(peer, Out(peer, 1));
  }
  return s;
}

Schedule MeshGather(const Group& group) {
  Schedule s;
  if (!AmRoot(group)) {
    s.Send(Root(group), In(0, 1));
    return s;
  }
  s.Copy(In(0, 1), Out(Self(group), 1));
  for (int peer : Others(group)) s.Recv(peer, Out(peer, 1));
  return s;
}

Schedule MeshScatter(const Group& group) {
  Schedule s;
  if (!AmRoot(group)) {
    s.Recv(Root(group), Out(0, 1));
    return s;
  }
  for (int peer : Others(group)) s.Send(peer, In(peer, 1));
  s.Copy(In(Self(group), 1), Out(0, 1));
  return s;
}

Schedule MeshBarrier(const Group& group) {
  Schedule s;
  const std::vector<int> others = Others(group);
  if (others.empty()) return s;
  s.Publish(others, Out(0, 0));
  for (int peer : others) s.Recv(peer, Out(0, 0));
  return s;
}

}  // namespace axon
