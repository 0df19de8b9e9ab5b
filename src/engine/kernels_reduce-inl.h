// SPDX-License-Identifier: Apache-2.0
// The loop of every reduction: one pass over memory, all sources of a block
// combined in registers in the order of the ranks, then written to every
// destination. Compiled once per instruction set by kernels_*.cc; pure
// functions over the caller's memory.

#if defined(AXON_KERNELS_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AXON_KERNELS_REDUCE_INL_H_
#undef AXON_KERNELS_REDUCE_INL_H_
#else
#define AXON_KERNELS_REDUCE_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "engine/kernels_families.h"
#include "engine/kernels_memory-inl.h"
#include "engine/kernels_ops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace axon {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ReduceArgs with addresses of bytes, and without what is constant.
struct Streams {
  const uint8_t* const* sources;
  int num_sources;
  uint8_t* const* destinations;
  int num_destinations;
  const double* factors;
  int divisor;
};

template <class Format, class Op>
HWY_INLINE hn::Vec<typename Format::D> Scaled(const Streams& streams, int s,
                                              hn::Vec<typename Format::D> v) {
  if constexpr (Op::kScaled) {
    const typename Format::D d;
    using Lane = typename Format::Lane;
    return Product(d, v, hn::Set(d, LaneFactor<Lane>(streams.factors[s])));
  } else {
    return v;
  }
}

template <class Format>
HWY_INLINE hn::Vec<typename Format::D> Finished(const Streams& streams,
                                                hn::Vec<typename Format::D> v) {
  if (streams.divisor <= 1) return v;
  return DivideBy(typename Format::D(), v, streams.divisor);
}

// Four vectors at byte `at`. Named variables, as vectors of variable length
// cannot be elements of an array.
template <class Format, class Op>
HWY_INLINE void ReduceBlock(const Streams& streams, size_t at, bool prefetch) {
  const typename Format::D d;
  const size_t step = VectorBytes<Format>();
  const uint8_t* from = streams.sources[0] + at;
  if (prefetch) PrefetchAhead(from, 4 * step);
  hn::Vec<typename Format::D> v0, v1, v2, v3;
  LoadTwo<Format>(from, v0, v1);
  LoadTwo<Format>(from + 2 * step, v2, v3);
  v0 = Scaled<Format, Op>(streams, 0, v0);
  v1 = Scaled<Format, Op>(streams, 0, v1);
  v2 = Scaled<Format, Op>(streams, 0, v2);
  v3 = Scaled<Format, Op>(streams, 0, v3);
  for (int s = 1; s < streams.num_sources; ++s) {
    from = streams.sources[s] + at;
    if (prefetch) PrefetchAhead(from, 4 * step);
    hn::Vec<typename Format::D> w0, w1, w2, w3;
    LoadTwo<Format>(from, w0, w1);
    LoadTwo<Format>(from + 2 * step, w2, w3);
    v0 = Op::Combine(d, v0, Scaled<Format, Op>(streams, s, w0));
    v1 = Op::Combine(d, v1, Scaled<Format, Op>(streams, s, w1));
    v2 = Op::Combine(d, v2, Scaled<Format, Op>(streams, s, w2));
    v3 = Op::Combine(d, v3, Scaled<Format, Op>(streams, s, w3));
  }
  v0 = Finished<Format>(streams, v0);
  v1 = Finished<Format>(streams, v1);
  v2 = Finished<Format>(streams, v2);
  v3 = Finished<Format>(streams, v3);
  for (int t = 0; t < streams.num_destinations; ++t) {
    uint8_t* to = streams.destinations[t] + at;
    StoreTwo<Format>(v0, v1, to);
    StoreTwo<Format>(v2, v3, to + 2 * step);
  }
}

// One vector at byte `at`, or its first `bytes` bytes.
template <class Format, class Op, bool kWhole>
HWY_INLINE void ReduceVector(const Streams& streams, size_t at, size_t bytes) {
  const typename Format::D d;
  const uint8_t* from = streams.sources[0] + at;
  auto v = kWhole ? Load<Format>(from) : LoadFew<Format>(from, bytes);
  v = Scaled<Format, Op>(streams, 0, v);
  for (int s = 1; s < streams.num_sources; ++s) {
    from = streams.sources[s] + at;
    const auto w = kWhole ? Load<Format>(from) : LoadFew<Format>(from, bytes);
    v = Op::Combine(d, v, Scaled<Format, Op>(streams, s, w));
  }
  v = Finished<Format>(streams, v);
  for (int t = 0; t < streams.num_destinations; ++t) {
    uint8_t* to = streams.destinations[t] + at;
    if constexpr (kWhole) {
      Store<Format>(v, to);
    } else {
      StoreFew<Format>(v, to, bytes);
    }
  }
}

template <class Format, class Op>
HWY_INLINE void ReduceAll(const Streams& streams, size_t bytes) {
  const size_t step = VectorBytes<Format>();
  size_t at = 0;
  for (; at + 4 * step <= bytes; at += 4 * step) {
    const bool prefetch = at + 4 * step + kAhead <= bytes;
    ReduceBlock<Format, Op>(streams, at, prefetch);
  }
  for (; at + step <= bytes; at += step) {
    ReduceVector<Format, Op, true>(streams, at, step);
  }
  if (at < bytes) ReduceVector<Format, Op, false>(streams, at, bytes - at);
}

// Any number of sources and destinations.
template <class Format, class Op>
HWY_NOINLINE void ReduceMany(const Streams& streams, size_t bytes) {
  ReduceAll<Format, Op>(streams, bytes);
}

// Two sources, one destination, the most frequent case, with the addresses in
// registers.
template <class Format, class Op>
HWY_INLINE void ReduceTwo(const ReduceArgs& args, int divisor, size_t bytes) {
  const uint8_t* const sources[2] = {
      static_cast<const uint8_t*>(args.sources[0]),
      static_cast<const uint8_t*>(args.sources[1])};
  uint8_t* const destinations[1] = {
      static_cast<uint8_t*>(args.destinations[0])};
  ReduceAll<Format, Op>({sources, 2, destinations, 1, args.factors, divisor},
                        bytes);
}

template <class Format, class Op>
HWY_INLINE void Run(const ReduceArgs& args, int divisor, size_t count) {
  const size_t bytes = count * sizeof(PackedLane<Format>);
  if (args.num_sources == 2 && args.num_destinations == 1) {
    return ReduceTwo<Format, Op>(args, divisor, bytes);
  }
  if (args.num_sources == 1 && divisor <= 1 && !Op::kScaled) {
    return CopyToAll(args, bytes);
  }
  const Streams streams = {
      reinterpret_cast<const uint8_t* const*>(args.sources),
      args.num_sources,
      reinterpret_cast<uint8_t* const*>(args.destinations),
      args.num_destinations,
      args.factors,
      divisor};
  ReduceMany<Format, Op>(streams, bytes);
}

// The functions that FindReduce hands out.
template <class Format, class Op>
void Reduce(const ReduceArgs& args) {
  Run<Format, Op>(args, 0, args.count);
}
template <class Format>
void Average(const ReduceArgs& args) {
  Run<Format, Sum>(args, args.divisor, args.count);
}

// `Signless` is a format in which products are the same, and cost no code of
// their own. Null for the bitwise operators.
template <class Format, class Signless = Format>
ReduceFn FindArithmetic(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return &Reduce<Format, Sum>;
    case ReduceOp::kProd:
      return &Reduce<Signless, Prod>;
    case ReduceOp::kMax:
      return &Reduce<Format, Max>;
    case ReduceOp::kMin:
      return &Reduce<Format, Min>;
    case ReduceOp::kAvg:
      return &Average<Format>;
    case ReduceOp::kPreMulSum:
      return &Reduce<Signless, PreMulSum>;
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace axon
HWY_AFTER_NAMESPACE();

#endif  // AXON_KERNELS_REDUCE_INL_H_
