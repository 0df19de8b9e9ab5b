// SPDX-License-Identifier: Apache-2.0
// The narrow floats: exact widening to float32 and rounding back once, to
// nearest even. Compiled once per instruction set by kernels_narrow.cc; pure
// functions.

#if defined(AXON_KERNELS_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AXON_KERNELS_CONVERT_INL_H_
#undef AXON_KERNELS_CONVERT_INL_H_
#else
#define AXON_KERNELS_CONVERT_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "engine/kernels_memory-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace axon {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using U32 = hn::RebindToUnsigned<F32>;
using VF32 = hn::Vec<F32>;
using VI32 = hn::Vec<I32>;

// What a format of sign, exponent and fraction bits does at its top.
struct Float16Shape {
  using Bits = uint16_t;
  static constexpr int kFraction = 10, kBias = 15;
  static constexpr int32_t kMost = 0x7c00;  // beyond the largest: infinity
  static constexpr int32_t kNan = 0x7e00;
  static constexpr int32_t kInfinity = 0x7c00;
};
struct E5m2Shape {
  using Bits = uint8_t;
  static constexpr int kFraction = 2, kBias = 15;
  static constexpr int32_t kMost = 0x7c;
  static constexpr int32_t kNan = 0x7f;
  static constexpr int32_t kInfinity = 0x7c;
};
struct E4m3Shape {
  using Bits = uint8_t;
  static constexpr int kFraction = 3, kBias = 7;
  static constexpr int32_t kMost = 0x7e;  // beyond the largest: 448
  static constexpr int32_t kNan = 0x7f;
  static constexpr int32_t kInfinity = 0x7f;  // none: these bits are NaN
};

// 2^exponent of a normal float32.
constexpr int32_t PowerBits(int exponent) { return (127 + exponent) << 23; }

// Any shape but bfloat16, with integer steps that are the same everywhere.
template <class Shape>
struct SmallFloats {
  using Lane = float;
  using D = F32;
  using Packed = hn::Rebind<typename Shape::Bits, F32>;
  static constexpr bool kPaired = false;
  static constexpr int kShift = 23 - Shape::kFraction;
  static constexpr int kSign = 8 * sizeof(typename Shape::Bits) - 1;

  static HWY_INLINE VF32 Widen(F32 d, hn::Vec<Packed> packed) {
    const I32 di;
    const VI32 bits = hn::PromoteTo(di, packed);
    const VI32 size = hn::And(bits, hn::Set(di, (1 << kSign) - 1));
    const VI32 sign = hn::ShiftLeft<31 - kSign>(hn::Xor(bits, size));
    const VI32 normal = hn::Add(hn::ShiftLeft<kShift>(size),
                                hn::Set(di, (127 - Shape::kBias) << 23));
    // A subnormal is a whole number of units; exact, and float32 holds it as a
    // normal number, so that flush-to-zero modes do not matter.
    const VF32 unit = hn::BitCast(
        d, hn::Set(di, PowerBits(1 - Shape::kBias - Shape::kFraction)));
    const VI32 subnormal =
        hn::BitCast(di, hn::Mul(hn::ConvertTo(d, size), unit));
    const auto is_normal =
        hn::Gt(size, hn::Set(di, (1 << Shape::kFraction) - 1));
    VI32 wide = hn::IfThenElse(is_normal, normal, subnormal);
    const VI32 infinity = hn::Set(di, Shape::kInfinity);
    if constexpr (Shape::kMost == Shape::kInfinity) {
      wide =
          hn::IfThenElse(hn::Eq(size, infinity), hn::Set(di, 0x7f800000), wide);
      wide =
          hn::IfThenElse(hn::Gt(size, infinity), hn::Set(di, 0x7fc00000), wide);
    } else {
      wide =
          hn::IfThenElse(hn::Eq(size, infinity), hn::Set(di, 0x7fc00000), wide);
    }
    return hn::BitCast(d, hn::Or(wide, sign));
  }

  static HWY_INLINE hn::Vec<Packed> Narrow(F32 d, VF32 v) {
    const I32 di;
    const VI32 bits = hn::BitCast(di, v);
    const VI32 size = hn::And(bits, hn::Set(di, 0x7fffffff));
    // Normal: add half a unit, less one where the last kept bit is even.
    const VI32 odd = hn::And(hn::ShiftRight<kShift>(size), hn::Set(di, 1));
    constexpr int32_t kRebias = (127 - Shape::kBias) << 23;
    const VI32 half = hn::Set(di, (1 << (kShift - 1)) - 1 - kRebias);
    const VI32 normal =
        hn::ShiftRight<kShift>(hn::Add(hn::Add(size, half), odd));
    // Subnormal: adding a number whose last bit is one unit rounds to units,
    // as float32 additions round to nearest even.
    const VI32 magic =
        hn::Set(di, PowerBits(1 - Shape::kBias - Shape::kFraction + 23));
    const VI32 subnormal = hn::Sub(
        hn::BitCast(di, hn::Add(hn::BitCast(d, size), hn::BitCast(d, magic))),
        magic);
    const auto is_small =
        hn::Lt(size, hn::Set(di, PowerBits(1 - Shape::kBias)));
    VI32 result = hn::Min(hn::IfThenElse(is_small, subnormal, normal),
                          hn::Set(di, Shape::kMost));
    const VI32 sign =
        hn::And(hn::ShiftRight<31 - kSign>(bits), hn::Set(di, 1 << kSign));
    result = hn::IfThenElse(hn::Gt(size, hn::Set(di, 0x7f800000)),
                            hn::Set(di, Shape::kNan), hn::Or(result, sign));
    return hn::DemoteTo(Packed(), result);
  }
};

// bfloat16 is the upper half of a float32.
struct Bfloat16s {
  using Lane = float;
  using D = F32;
  using Packed = hn::Rebind<uint16_t, F32>;
  static constexpr bool kPaired = true;

  static HWY_INLINE VF32 Widen(F32 d, hn::Vec<Packed> packed) {
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(U32(), packed)));
  }
  static HWY_INLINE hn::Vec<Packed> Narrow(F32, VF32 v) {
    const auto upper = hn::ShiftRight<16>(Round(v));
    return hn::DemoteTo(Packed(), hn::BitCast(I32(), upper));
  }

  // The elements of even and of odd number, which needs no shuffles.
  static HWY_INLINE void LoadPair(const uint8_t* from, VF32& even, VF32& odd) {
    const auto both = hn::LoadU(U32(), reinterpret_cast<const uint32_t*>(from));
    even = hn::BitCast(F32(), hn::ShiftLeft<16>(both));
    odd = hn::BitCast(F32(), hn::And(both, hn::Set(U32(), 0xffff0000)));
  }
  static HWY_INLINE void StorePair(VF32 even, VF32 odd, uint8_t* to) {
    const auto upper = hn::And(Round(odd), hn::Set(U32(), 0xffff0000));
    const auto both = hn::Or(upper, hn::ShiftRight<16>(Round(even)));
    hn::StoreU(both, U32(), reinterpret_cast<uint32_t*>(to));
  }

 private:
  // The result is the upper half of each lane; the lower half is undefined.
  static HWY_INLINE hn::Vec<U32> Round(VF32 v) {
    const U32 du;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), odd);
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
    return hn::IfThenElse(is_nan, hn::Set(du, 0x7fc00000), rounded);
  }
};

using E4m3s = SmallFloats<E4m3Shape>;
using E5m2s = SmallFloats<E5m2Shape>;

// Where the machine converts float16 itself, exactly and to nearest even.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || \
    (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
struct Float16s {
  using Lane = float;
  using D = F32;
  using Packed = hn::Rebind<uint16_t, F32>;
  static constexpr bool kPaired = false;
  using Half = hn::Rebind<hwy::float16_t, F32>;

  static HWY_INLINE VF32 Widen(F32 d, hn::Vec<Packed> packed) {
    return hn::PromoteTo(d, hn::BitCast(Half(), packed));
  }
  static HWY_INLINE hn::Vec<Packed> Narrow(F32 d, VF32 v) {
    const auto canonical = Floats<float>::Narrow(d, v);
    return hn::BitCast(Packed(), hn::DemoteTo(Half(), canonical));
  }
};
#else
using Float16s = SmallFloats<Float16Shape>;
#endif

}  // namespace HWY_NAMESPACE
}  // namespace axon
HWY_AFTER_NAMESPACE();

#endif  // AXON_KERNELS_CONVERT_INL_H_
