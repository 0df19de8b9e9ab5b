// SPDX-License-Identifier: Apache-2.0
// One operation's pass over memory: where it reads, where it writes, and the
// loop over the contiguous runs that all of them share. Whoever runs operations
// owns one and fills it anew for each; it belongs to the thread that does, and
// allocates nothing once it has been as full as it gets.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/call.h"
#include "engine/layout.h"
#include "engine/walker.h"

namespace axon {

// The memory of a span of the call's own buffers in one slice. `scratch` has as
// many pieces as the schedule says.
Walker MemoryOf(const CollectiveCall& call, const Cutting& cutting,
                std::byte* scratch, Span span, int slice);

class Pass {
 public:
  // Makes room, so that no pass of up to so many allocates.
  void Reserve(size_t sources, size_t destinations);
  void Clear() {
    sources_.clear();
    factors_.clear();
    destinations_.clear();
  }
  // Sources are combined in the order in which they are added.
  void AddSource(const Walker& walker, double factor = 1) {
    sources_.push_back(walker);
    factors_.push_back(factor);
  }
  // What a reduction of `n` messages combines: in rank order where all come
  // together, else mine first. add(i) adds the i-th message, that of peer(i).
  template <typename Peer, typename Add>
  void AddReduction(bool rank_order, int me, const Walker& mine, double factor,
                    size_t n, Peer peer, Add add) {
    size_t i = 0;
    while (rank_order && i < n && peer(i) < me) add(i++);
    AddSource(mine, factor);
    while (i < n) add(i++);
  }
  void AddDestination(const Walker& walker) { destinations_.push_back(walker); }
  bool has_destination() const { return !destinations_.empty(); }

  // Both end where `bound` does; messages and outboxes know no end themselves.
  // Copies the only source to every destination, unless it lies there already.
  void Copy(Walker bound, size_t element_size);
  // Combines the sources into every destination. `divisor`: what an average is
  // divided by where this completes it, else 0.
  void Combine(Walker bound, const CollectiveCall& call, int divisor);

 private:
  std::vector<Walker> sources_, destinations_;
  std::vector<double> factors_;
  std::vector<const void*> from_;
  std::vector<void*> to_;
};

}  // namespace axon
