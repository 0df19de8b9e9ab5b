// SPDX-License-Identifier: Apache-2.0
// Passes that several algorithms are composed of. A pass appends its operations
// to a schedule; the group may be any ranks, and functions tell which span the
// rank at an index of the group is concerned with, so a pass serves whole
// vectors, parts of them and blocks alike. Pure functions.
#pragma once

#include "absl/functional/function_ref.h"
#include "schedule/group.h"
#include "schedule/schedule.h"

namespace axon {

using SpanAt = absl::FunctionRef<Span(int index)>;

// Ring: after size-1 steps I hold the reduction of everyone's own(me), in
// partial(size-1); partial(step) is where step 1, 2, … puts its result.
void RingReduce(const Group& group, SpanAt own, SpanAt partial, Schedule* s);
// Ring: everyone's span, which lies in `mine`, arrives at at(its index).
void RingGather(const Group& group, Span mine, SpanAt at, Schedule* s);

// Binomial tree around the root: the reduction of everyone's `in` arrives in
// the root's `out`. Ranks with children put partial results in their `out`.
void TreeReduce(const Group& group, Span in, Span out, Schedule* s);
// Binomial tree: the root's `from` arrives in everyone else's `to`.
void TreeBroadcast(const Group& group, Span from, Span to, Schedule* s);

}  // namespace axon
