// SPDX-License-Identifier: Apache-2.0
#include "engine/pass.h"

#include <algorithm>

namespace axon {
namespace {

// A result that goes to an outbox too is written to its first place and copied
// on from the cache in parts of this size: a reader may hold the outbox's
// lines, and copies write those without reading them first (see CopyBytes),
// which the stores of a reduction do not.
constexpr size_t kCopiedOn = 32 << 10;

}  // namespace

Walker MemoryOf(const CollectiveCall& call, const Cutting& cutting,
                std::byte* scratch, Span span, int slice) {
  if (span.buffer == Buffer::kScratch) {
    // A piece of scratch holds what a block has in this slice (blocks are not
    // cut further where a schedule uses scratch).
    const size_t count =
        SegmentOf({call.in_layout.length}, cutting, 0, slice, 0, 1).count;
    return Walker::Packed(scratch + span.first * count * cutting.element_size,
                          span.count * count);
  }
  const bool in = span.buffer == Buffer::kIn;
  return Walker(in ? call.in : call.out, in ? call.in_layout : call.out_layout,
                cutting, span, slice);
}

void Pass::Reserve(size_t sources, size_t destinations) {
  sources_.reserve(sources);
  factors_.reserve(sources);
  from_.reserve(sources);
  destinations_.reserve(destinations);
  to_.reserve(destinations);
}

void Pass::Copy(Walker bound, size_t element_size) {
  Walker& source = sources_.front();
  while (!bound.done()) {
    size_t n = std::min(bound.left(), source.left());
    for (const Walker& to : destinations_) n = std::min(n, to.left());
    if (n == 0) break;
    for (Walker& destination : destinations_) {
      auto* to = const_cast<std::byte*>(destination.at());
      if (to != source.at()) CopyBytes(to, source.at(), n * element_size);
      destination.Skip(n, element_size);
    }
    source.Skip(n, element_size);
    bound.Skip(n, element_size);
  }
}

void Pass::Combine(Walker bound, const CollectiveCall& call, int divisor) {
  from_.resize(sources_.size());
  to_.resize(destinations_.size());
  ReduceArgs args{from_.data(), static_cast<int>(from_.size()), to_.data(), 1,
                  0};
  if (call.has_factor) args.factors = factors_.data();
  args.divisor = divisor;
  const size_t size = call.element_size();
  while (!bound.done()) {
    size_t count = bound.left();
    for (size_t i = 0; i < from_.size(); ++i) {
      count = std::min(count, sources_[i].left());
      from_[i] = sources_[i].at();
    }
    for (size_t i = 0; i < to_.size(); ++i) {
      count = std::min(count, destinations_[i].left());
      to_[i] = const_cast<std::byte*>(destinations_[i].at());
    }
    if (count == 0) break;
    if (to_.size() > 1) count = std::min(count, kCopiedOn / size);
    args.count = count;
    call.reduce(args);
    for (size_t i = 1; i < to_.size(); ++i) {
      CopyBytes(to_[i], to_[0], count * size);
    }
    for (Walker& source : sources_) source.Skip(count, size);
    for (Walker& destination : destinations_) destination.Skip(count, size);
    bound.Skip(count, size);
  }
}

}  // namespace axon
