// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/kernels_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>

namespace axon {
namespace {

struct Shape {
  int exponent_bits, fraction_bits;
  bool infinities;
  uint64_t nan;
};

Shape ShapeOf(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return {5, 10, true, 0x7e00};
    case DataType::kBfloat16:
      return {8, 7, true, 0x7fc0};
    case DataType::kFloat8e4m3:
      return {4, 3, false, 0x7f};
    case DataType::kFloat8e5m2:
      return {5, 2, true, 0x7f};
    case DataType::kFloat32:
      return {8, 23, true, 0x7fc00000};
    default:
      return {11, 52, true, 0x7ff8000000000000};
  }
}

uint64_t SignBit(DataType type) {
  return uint64_t{1} << (8 * ElementSize(type) - 1);
}

// The non-negative finite values of a narrow type; the index is the encoding.
// Ranks that are threads ask at the same time.
const std::vector<double>& Values(DataType type) {
  static std::mutex mutex;
  static std::map<DataType, std::vector<double>> tables;
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<double>& table = tables[type];
  if (table.empty()) {
    for (uint64_t bits = 0; bits < SignBit(type); ++bits) {
      const double value = Decode(type, bits);
      if (!std::isfinite(value)) break;
      table.push_back(value);
    }
  }
  return table;
}

uint64_t EncodeNarrow(DataType type, double magnitude) {
  const std::vector<double>& values = Values(type);
  const uint64_t most = values.size() - 1;
  if (magnitude >= values[most]) {
    if (!ShapeOf(type).infinities) return most;
    // What the next value would be if the exponent went on.
    const double half_step = (values[most] - values[most - 1]) / 2;
    return magnitude < values[most] + half_step ? most : most + 1;
  }
  const uint64_t above =
      std::upper_bound(values.begin(), values.end(), magnitude) -
      values.begin();
  const double down = magnitude - values[above - 1];
  const double up = values[above] - magnitude;
  if (down != up) return down < up ? above - 1 : above;
  return above % 2 == 0 ? above : above - 1;
}

template <typename T>
T Combine(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMax:
    case ReduceOp::kMin: {
      if (std::isnan(a) || std::isnan(b)) return std::nan("");
      if (a == b) {  // zeros of either sign
        const bool first = std::signbit(a) == (op == ReduceOp::kMin);
        return first ? a : b;
      }
      return (a > b) == (op == ReduceOp::kMax) ? a : b;
    }
    default:
      return a + b;
  }
}

// In T, which is float for the narrow types.
template <typename T>
uint64_t ReduceFloats(DataType type, ReduceOp op,
                      const std::vector<uint64_t>& inputs,
                      const std::vector<double>& factors, int divisor) {
  T result = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    // Volatile, so that no compiler fuses the product with the sum.
    volatile T value = static_cast<T>(Decode(type, inputs[i]));
    if (op == ReduceOp::kPreMulSum) value = value * static_cast<T>(factors[i]);
    result = i == 0 ? T{value} : Combine<T>(op, result, value);
  }
  if (op == ReduceOp::kAvg && divisor > 1) result /= static_cast<T>(divisor);
  return Encode(type, result);
}

bool IsSigned(DataType type) {
  return type == DataType::kInt8 || type == DataType::kInt32 ||
         type == DataType::kInt64;
}

// Ordered as the values are.
uint64_t Key(DataType type, uint64_t bits) {
  return IsSigned(type) ? bits ^ SignBit(type) : bits;
}

uint64_t Divide(DataType type, uint64_t bits, int divisor) {
  if (!IsSigned(type) || !(bits & SignBit(type))) return bits / divisor;
  const uint64_t magnitude = (~bits & (SignBit(type) - 1)) + 1;
  return uint64_t{0} - magnitude / divisor;
}

uint64_t CombineIntegers(DataType type, ReduceOp op, uint64_t a, uint64_t b) {
  switch (op) {
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMax:
      return Key(type, a) > Key(type, b) ? a : b;
    case ReduceOp::kMin:
      return Key(type, a) < Key(type, b) ? a : b;
    case ReduceOp::kBitAnd:
      return a & b;
    case ReduceOp::kBitOr:
      return a | b;
    case ReduceOp::kBitXor:
      return a ^ b;
    default:
      return a + b;
  }
}

uint64_t ReduceIntegers(DataType type, ReduceOp op,
                        const std::vector<uint64_t>& inputs,
                        const std::vector<double>& factors, int divisor) {
  const uint64_t mask = 2 * (SignBit(type) - 1) + 1;
  uint64_t result = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    uint64_t value = inputs[i];
    if (op == ReduceOp::kPreMulSum) {
      value *= static_cast<uint64_t>(static_cast<int64_t>(factors[i]));
    }
    value &= mask;
    result = i == 0 ? value : CombineIntegers(type, op, result, value) & mask;
  }
  if (op == ReduceOp::kAvg && divisor > 1) {
    result = Divide(type, result, divisor) & mask;
  }
  return result;
}

}  // namespace

uint64_t NanBits(DataType type) { return ShapeOf(type).nan; }

bool IsNanBits(DataType type, uint64_t bits) {
  return IsFloat(type) && std::isnan(Decode(type, bits));
}

double Decode(DataType type, uint64_t bits) {
  const Shape shape = ShapeOf(type);
  const int most = (1 << shape.exponent_bits) - 1;
  const int bias = most / 2;
  const uint64_t fraction = bits & ((uint64_t{1} << shape.fraction_bits) - 1);
  const int exponent = static_cast<int>(bits >> shape.fraction_bits) & most;
  const double sign = bits & SignBit(type) ? -1 : 1;
  if (shape.infinities && exponent == most) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::nan("");
  }
  if ((bits & ~SignBit(type)) == shape.nan) return std::nan("");
  const double unit = fraction;
  const int scale = -bias - shape.fraction_bits;
  if (exponent == 0) return sign * std::ldexp(unit, scale + 1);
  return sign * std::ldexp(unit + std::ldexp(1.0, shape.fraction_bits),
                           scale + exponent);
}

uint64_t Encode(DataType type, double value) {
  if (std::isnan(value)) return NanBits(type);
  if (type == DataType::kFloat64) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
  }
  if (type == DataType::kFloat32) {
    const float narrow = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof(bits));
    return bits;
  }
  return EncodeNarrow(type, std::fabs(value)) |
         (std::signbit(value) ? SignBit(type) : 0);
}

uint64_t ReferenceReduce(DataType type, ReduceOp op,
                         const std::vector<uint64_t>& inputs,
                         const std::vector<double>& factors, int divisor) {
  const bool finishes =
      op == ReduceOp::kPreMulSum || (op == ReduceOp::kAvg && divisor > 1);
  if (inputs.size() == 1 && !finishes) return inputs[0];
  if (type == DataType::kFloat64) {
    return ReduceFloats<double>(type, op, inputs, factors, divisor);
  }
  if (IsFloat(type)) {
    return ReduceFloats<float>(type, op, inputs, factors, divisor);
  }
  return ReduceIntegers(type, op, inputs, factors, divisor);
}

uint64_t TestBits(DataType type, uint64_t seed) {
  // SplitMix64.
  seed += 0x9e3779b97f4a7c15;
  uint64_t any = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  any = (any ^ (any >> 27)) * 0x94d049bb133111eb;
  any ^= any >> 31;
  const uint64_t sign = SignBit(type);
  const uint64_t mask = 2 * (sign - 1) + 1;
  const uint64_t choice = any >> 56;
  if (choice < 160) return any & mask;
  if (choice < 200) {
    const int small = static_cast<int>(any % 17) - 8;
    return IsFloat(type) ? Encode(type, small) : (mask & uint64_t(small));
  }
  const uint64_t top = IsFloat(type) ? Encode(type, INFINITY) : sign - 1;
  const uint64_t specials[] = {0,       1,       top,      top - 1,
                               top + 1, sign,    sign | 1, sign | top,
                               mask,    top / 2, sign - 2, sign - 1};
  return specials[any % 12] & mask;
}

}  // namespace axon
