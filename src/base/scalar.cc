// SPDX-License-Identifier: Apache-2.0
#include "base/scalar.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace axon {
namespace {

template <typename T>
T Load(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// A binary float of 8 or 16 bits: sign, exponent, mantissa. Without infinities
// (the "fn" form) only all ones is NaN.
double Decode(uint32_t bits, int exponent_bits, int mantissa_bits,
              bool infinities) {
  const uint32_t mantissa_mask = (1U << mantissa_bits) - 1;
  const uint32_t exponent_mask = (1U << exponent_bits) - 1;
  const int bias = static_cast<int>(exponent_mask >> 1);
  const uint32_t mantissa = bits & mantissa_mask;
  const uint32_t exponent = (bits >> mantissa_bits) & exponent_mask;
  const double sign =
      (bits >> (mantissa_bits + exponent_bits) & 1) != 0 ? -1.0 : 1.0;
  if (exponent == exponent_mask) {
    if (infinities && mantissa == 0) {
      return sign * std::numeric_limits<double>::infinity();
    }
    if (infinities || mantissa == mantissa_mask) {
      return std::numeric_limits<double>::quiet_NaN();
    }
  }
  const int power =
      std::max(static_cast<int>(exponent), 1) - bias - mantissa_bits;
  const uint32_t leading = exponent == 0 ? 0 : 1U << mantissa_bits;
  return sign * std::ldexp(static_cast<double>(leading | mantissa), power);
}

}  // namespace

double ReadScalar(const void* at, DataType type) {
  switch (type) {
    case DataType::kInt8:
      return Load<int8_t>(at);
    case DataType::kUint8:
      return Load<uint8_t>(at);
    case DataType::kInt32:
      return Load<int32_t>(at);
    case DataType::kUint32:
      return Load<uint32_t>(at);
    case DataType::kInt64:
      return static_cast<double>(Load<int64_t>(at));
    case DataType::kUint64:
      return static_cast<double>(Load<uint64_t>(at));
    case DataType::kFloat16:
      return Decode(Load<uint16_t>(at), 5, 10, true);
    case DataType::kBfloat16:
      return Decode(Load<uint16_t>(at), 8, 7, true);
    case DataType::kFloat8e4m3:
      return Decode(Load<uint8_t>(at), 4, 3, false);
    case DataType::kFloat8e5m2:
      return Decode(Load<uint8_t>(at), 5, 2, true);
    case DataType::kFloat32:
      return Load<float>(at);
    case DataType::kFloat64:
      return Load<double>(at);
  }
  return 1;
}

}  // namespace axon
