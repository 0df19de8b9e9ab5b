// SPDX-License-Identifier: Apache-2.0
// Element formats: how vectors of a type lie in memory and which lanes they are
// computed in. Compiled once per instruction set by kernels_*.cc; pure
// functions over the caller's memory, any alignment.

#if defined(AXON_KERNELS_MEMORY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AXON_KERNELS_MEMORY_INL_H_
#undef AXON_KERNELS_MEMORY_INL_H_
#else
#define AXON_KERNELS_MEMORY_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace axon {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A format has the lanes to compute in (D), the lanes in memory (Packed, as
// many), and Widen and Narrow between the two. Narrow makes every NaN the same
// one, so that results depend neither on the instruction set nor on how the
// compiler orders the operands of a commutative operation.

// Integers: computed as they lie.
template <typename T>
struct Integers {
  using Lane = T;
  using D = hn::ScalableTag<T>;
  using Packed = D;
  static constexpr bool kPaired = false;
  static HWY_INLINE hn::Vec<D> Widen(D, hn::Vec<Packed> v) { return v; }
  static HWY_INLINE hn::Vec<Packed> Narrow(D, hn::Vec<D> v) { return v; }
};

// float32 and float64: computed as they lie.
template <typename T>
struct Floats {
  using Lane = T;
  using D = hn::ScalableTag<T>;
  using Packed = D;
  static constexpr bool kPaired = false;
  static HWY_INLINE hn::Vec<D> Widen(D, hn::Vec<Packed> v) { return v; }
  static HWY_INLINE hn::Vec<Packed> Narrow(D d, hn::Vec<D> v) {
    const auto nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
    return hn::IfThenElse(hn::IsNaN(v), nan, v);
  }
};

template <class Format>
using PackedLane = hn::TFromD<typename Format::Packed>;

// Bytes of memory of one vector.
template <class Format>
HWY_INLINE size_t VectorBytes() {
  return hn::Lanes(typename Format::Packed()) * sizeof(PackedLane<Format>);
}

// The most that it can be; a power of two.
template <class Format>
constexpr size_t kMaxVectorBytes = hn::MaxLanes(typename Format::Packed()) *
                                   sizeof(PackedLane<Format>);

template <class Format>
HWY_INLINE hn::Vec<typename Format::D> Load(const uint8_t* from) {
  const auto* lanes = reinterpret_cast<const PackedLane<Format>*>(from);
  return Format::Widen(typename Format::D(),
                       hn::LoadU(typename Format::Packed(), lanes));
}

template <class Format>
HWY_INLINE void Store(hn::Vec<typename Format::D> v, uint8_t* to) {
  hn::StoreU(Format::Narrow(typename Format::D(), v), typename Format::Packed(),
             reinterpret_cast<PackedLane<Format>*>(to));
}

// Two vectors, of 2 * VectorBytes. A format that has cheaper ones (kPaired) may
// deal the elements to the two as it likes.
template <class Format>
HWY_INLINE void LoadTwo(const uint8_t* from, hn::Vec<typename Format::D>& v0,
                        hn::Vec<typename Format::D>& v1) {
  if constexpr (Format::kPaired) {
    Format::LoadPair(from, v0, v1);
  } else {
    v0 = Load<Format>(from);
    v1 = Load<Format>(from + VectorBytes<Format>());
  }
}

template <class Format>
HWY_INLINE void StoreTwo(hn::Vec<typename Format::D> v0,
                         hn::Vec<typename Format::D> v1, uint8_t* to) {
  if constexpr (Format::kPaired) {
    Format::StorePair(v0, v1, to);
  } else {
    Store<Format>(v0, to);
    Store<Format>(v1, to + VectorBytes<Format>());
  }
}

// Where a load or store of less than a vector is one instruction.
#undef AXON_HAVE_BYTE_MASKS
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_SVE || HWY_TARGET == HWY_SVE2
#define AXON_HAVE_BYTE_MASKS 1
#else
#define AXON_HAVE_BYTE_MASKS 0
#endif

// Copies `bytes` bytes by at most one move of each power of two; fewer than
// `kLimit`, a power of two.
template <size_t kLimit>
HWY_INLINE void CopyFew(uint8_t* to, const uint8_t* from, size_t bytes) {
  if constexpr (kLimit > 1) {
    constexpr size_t kHalf = kLimit / 2;
    if (bytes & kHalf) {
      std::memcpy(to, from, kHalf);
      to += kHalf;
      from += kHalf;
    }
    CopyFew<kHalf>(to, from, bytes);
  }
}

// Whether loads and stores of a few whole lanes are one instruction.
#undef AXON_HAVE_LANE_MASKS
#define AXON_HAVE_LANE_MASKS (HWY_TARGET == HWY_AVX2)
template <class Format>
constexpr bool kLaneMasks = AXON_HAVE_LANE_MASKS &&
                            sizeof(PackedLane<Format>) >= 4;

// The first `bytes` bytes of a vector, fewer than VectorBytes; the lanes beyond
// are 0.
template <class Format>
HWY_INLINE hn::Vec<typename Format::D> LoadFew(const uint8_t* from,
                                               size_t bytes) {
#if AXON_HAVE_BYTE_MASKS
  const hn::Repartition<uint8_t, typename Format::Packed> d8;
  const auto raw = hn::MaskedLoad(hn::FirstN(d8, bytes), d8, from);
  return Format::Widen(typename Format::D(),
                       hn::BitCast(typename Format::Packed(), raw));
#else
  if constexpr (kLaneMasks<Format>) {
    const typename Format::Packed d;
    return Format::Widen(
        typename Format::D(),
        hn::MaskedLoad(hn::FirstN(d, bytes / sizeof(PackedLane<Format>)), d,
                       reinterpret_cast<const PackedLane<Format>*>(from)));
  }
  HWY_ALIGN uint8_t buffer[kMaxVectorBytes<Format>] = {};
  CopyFew<kMaxVectorBytes<Format> >(buffer, from, bytes);
  return Load<Format>(buffer);
#endif
}

template <class Format>
HWY_INLINE void StoreFew(hn::Vec<typename Format::D> v, uint8_t* to,
                         size_t bytes) {
#if AXON_HAVE_BYTE_MASKS
  const hn::Repartition<uint8_t, typename Format::Packed> d8;
  const auto packed = Format::Narrow(typename Format::D(), v);
  hn::BlendedStore(hn::BitCast(d8, packed), hn::FirstN(d8, bytes), d8, to);
#else
  if constexpr (kLaneMasks<Format>) {
    const typename Format::Packed d;
    hn::BlendedStore(Format::Narrow(typename Format::D(), v),
                     hn::FirstN(d, bytes / sizeof(PackedLane<Format>)), d,
                     reinterpret_cast<PackedLane<Format>*>(to));
    return;
  }
  HWY_ALIGN uint8_t buffer[kMaxVectorBytes<Format>];
  Store<Format>(v, buffer);
  CopyFew<kMaxVectorBytes<Format> >(to, buffer, bytes);
#endif
}

// Asks for what lies kAhead bytes further on, where that is still inside: the
// lines were written by another core, and those behind the end are others'.
constexpr size_t kAhead = 1024;
HWY_INLINE void PrefetchAhead(const uint8_t* at, size_t block_bytes) {
  for (size_t line = 0; line < block_bytes; line += 64) {
    hwy::Prefetch(at + kAhead + line);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace axon
HWY_AFTER_NAMESPACE();

#endif  // AXON_KERNELS_MEMORY_INL_H_
