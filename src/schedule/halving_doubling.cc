// SPDX-License-Identifier: Apache-2.0
// Recursive halving reduces: at distances size/2, …, 1 I give away the half
// that is not mine and reduce the rest. Doubling undoes it. As few bytes as the
// ring in log2(size) steps: for middle sizes.
#include <bit>

#include "schedule/parts.h"

namespace axon {
namespace {

// My half of a span, and the half that belongs to the rank at distance d.
struct Halves {
  Span mine;
  Span theirs;
};
Halves Halve(Span span, int me, int d) {
  const int upper = (me & d) != 0 ? 1 : 0;
  return {Part(span, 2, upper), Part(span, 2, 1 - upper)};
}

// The same pieces in another buffer.
Span Within(Buffer buffer, Span span) {
  return {buffer, span.first, span.count};
}

}  // namespace

// With a size that is no power of two, the first 2 * extra ranks pair up: the
// odd one gives its vector to the even one and waits for the result.
Schedule HalvingDoublingAllReduce(const Group& group) {
  const int n = group.size();
  const int core = static_cast<int>(std::bit_floor(unsigned(n)));
  const int extra = n - core;
  const bool paired = group.me < 2 * extra;
  Schedule s;
  s.cuts = static_cast<uint16_t>(core);
  if (n == 1) s.Copy(In(0, 1), Out(0, 1), /*completes=*/true);
  if (paired && group.me % 2 == 1) {
    s.Send(group.at(group.me - 1), In(0, core));
    s.Recv(group.at(group.me - 1), Out(0, core));
    return s;
  }
  Buffer from = Buffer::kIn;  // where my partial sums are
  if (paired) {
    s.RecvReduce(group.at(group.me + 1), In(0, core), Out(0, core));
    from = Buffer::kOut;
  }

  const int me = paired ? group.me / 2 : group.me - extra;
  const auto rank = [&](int v) {
    return group.at(v < extra ? 2 * v : v + extra);
  };
  std::vector<Halves> halves;
  Span part = Out(0, core);
  for (int d = core / 2; d >= 1; d /= 2) {
    halves.push_back(Halve(part, me, d));
    part = halves.back().mine;
    s.Send(rank(me ^ d), Within(from, halves.back().theirs));
    s.RecvReduce(rank(me ^ d), Within(from, part), part,
                 /*completes=*/d == 1);
    from = Buffer::kOut;
  }
  for (int d = 1; d < core; d *= 2) {
    s.Send(rank(me ^ d), halves.back().mine);
    s.Recv(rank(me ^ d), halves.back().theirs);
    halves.pop_back();
  }
  if (paired) s.Send(group.at(group.me + 1), Out(0, core));
  return s;
}

// Sizes that are a power of two. After the first step partial sums lie in
// scratch: my half of the blocks.
Schedule RecursiveHalvingReduceScatter(const Group& any_order) {
  const Group group = InRankOrder(any_order);
  const int n = group.size();
  Schedule s;
  s.scratch_pieces = static_cast<uint16_t>(n > 2 ? n / 2 : 0);
  if (n == 1) s.Copy(In(0, 1), Out(0, 1), /*completes=*/true);
  Span part = In(0, n);
  for (int d = n / 2; d >= 1; d /= 2) {
    const int peer = group.me ^ d;
    const Halves halves = Halve(part, group.me, d);
    part = part.buffer == Buffer::kIn ? Scratch(0, d) : halves.mine;
    s.Send(peer, halves.theirs);
    s.RecvReduce(peer, halves.mine, d == 1 ? Out(0, 1) : part,
                 /*completes=*/d == 1);
  }
  return s;
}

}  // namespace axon
