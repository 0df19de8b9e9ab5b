// SPDX-License-Identifier: Apache-2.0
// The operators on vectors, and the division that completes an average.
// Compiled once per instruction set by kernels_*.cc; pure functions.

#if defined(AXON_KERNELS_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AXON_KERNELS_OPS_INL_H_
#undef AXON_KERNELS_OPS_INL_H_
#else
#define AXON_KERNELS_OPS_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace axon {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// kScaled: every source is multiplied by its factor first.
struct Sum {
  static constexpr bool kScaled = false;
  template <class D, class V>
  static HWY_INLINE V Combine(D, V a, V b) {
    return hn::Add(a, b);
  }
};
struct PreMulSum : Sum {
  static constexpr bool kScaled = true;
};

// The low half for integers. Highway has no product of bytes: those of the even
// and of the odd ones are taken as 16 bits.
template <class D, class V>
HWY_INLINE V Product(D d, V a, V b) {
  if constexpr (sizeof(hn::TFromD<D>) == 1 && HWY_TARGET != HWY_SCALAR) {
    const hn::Repartition<uint16_t, D> d16;
    const auto a16 = hn::BitCast(d16, a);
    const auto b16 = hn::BitCast(d16, b);
    const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, 0xff));
    const auto odd = hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16));
    return hn::BitCast(d, hn::Or(even, hn::ShiftLeft<8>(odd)));
  } else {
    (void)d;
    return a * b;
  }
}

struct Prod {
  static constexpr bool kScaled = false;
  template <class D, class V>
  static HWY_INLINE V Combine(D d, V a, V b) {
    return Product(d, a, b);
  }
};

// Of +0 and -0, which compare equal, And gives +0 and Or gives -0; of other
// equal values, the value.
struct Max {
  static constexpr bool kScaled = false;
  template <class D, class V>
  static HWY_INLINE V Combine(D, V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      const V most = hn::IfThenElse(hn::Gt(a, b), a, b);
      const V both = hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), most);
      return hn::IfThenElse(hn::IsNaN(a), a, both);
    } else {
      return hn::Max(a, b);
    }
  }
};
struct Min {
  static constexpr bool kScaled = false;
  template <class D, class V>
  static HWY_INLINE V Combine(D, V a, V b) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      const V least = hn::IfThenElse(hn::Lt(a, b), a, b);
      const V both = hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), least);
      return hn::IfThenElse(hn::IsNaN(a), a, both);
    } else {
      return hn::Min(a, b);
    }
  }
};

struct BitAnd {
  static constexpr bool kScaled = false;
  template <class D, class V>
  static HWY_INLINE V Combine(D, V a, V b) {
    return hn::And(a, b);
  }
};
struct BitOr {
  static constexpr bool kScaled = false;
  template <class D, class V>
  static HWY_INLINE V Combine(D, V a, V b) {
    return hn::Or(a, b);
  }
};
struct BitXor {
  static constexpr bool kScaled = false;
  template <class D, class V>
  static HWY_INLINE V Combine(D, V a, V b) {
    return hn::Xor(a, b);
  }
};

// A factor in the lanes' type: rounded to a float, or modulo 2^width of its
// whole part to an integer (0 for NaN and infinities).
template <typename T>
HWY_INLINE T LaneFactor(double factor) {
  if constexpr (hwy::IsFloat<T>()) {
    return static_cast<T>(factor);
  } else {
    constexpr double kTwo63 = 9223372036854775808.0;
    if (factor > -kTwo63 && factor < kTwo63) {
      return static_cast<T>(static_cast<int64_t>(factor));
    }
    if (!std::isfinite(factor)) return 0;
    const double rest = std::fmod(std::fabs(factor), 2 * kTwo63);
    const uint64_t whole = static_cast<uint64_t>(rest);
    return static_cast<T>(factor < 0 ? uint64_t{0} - whole : whole);
  }
}

// Toward zero, one by one: there are no vector instructions for it, and
// averages of integers are rare. Not inlined, for the size of the code.
template <typename T>
HWY_NOINLINE void DivideIntegers(T* lanes, size_t count, int divisor) {
  // At least 32 bits, so that the divisor fits.
  using Least = std::conditional_t<std::is_signed_v<T>, int, unsigned>;
  using Wide = decltype(T{} + Least{});
  for (size_t i = 0; i < count; ++i) {
    lanes[i] = static_cast<T>(Wide{lanes[i]} / static_cast<Wide>(divisor));
  }
}

template <class D>
HWY_INLINE hn::Vec<D> DivideBy(D d, hn::Vec<D> v, int divisor) {
  using T = hn::TFromD<D>;
  if constexpr (hwy::IsFloat<T>()) {
    return hn::Div(v, hn::Set(d, static_cast<T>(divisor)));
  } else {
    HWY_ALIGN T lanes[hn::MaxLanes(d)];
    hn::Store(v, d, lanes);
    DivideIntegers(lanes, hn::Lanes(d), divisor);
    return hn::Load(d, lanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace axon
HWY_AFTER_NAMESPACE();

#endif  // AXON_KERNELS_OPS_INL_H_
