// SPDX-License-Identifier: Apache-2.0
#include "perf/number.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace axon::perf {

namespace {

uint64_t LowMask(int bits) {
  return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

int Bias(const Type& type) { return (1 << (type.exponent_bits - 1)) - 1; }

int SignBit(const Type& type) {
  return type.exponent_bits + type.mantissa_bits;
}

uint64_t InfinityBits(const Type& type) {
  return LowMask(type.exponent_bits) << type.mantissa_bits;
}

bool IsNan(const Type& type, uint64_t bits) {
  const uint64_t magnitude = bits & LowMask(SignBit(type));
  if (type.finite) return magnitude == LowMask(SignBit(type));
  return magnitude > InfinityBits(type);
}

}  // namespace

const std::vector<Type>& Types() {
  using Kind = Type::Kind;
  static const std::vector<Type>& types = *new std::vector<Type>{
      {"int8", axonInt8, 1, Kind::kSigned, 0, 0, false},
      {"uint8", axonUint8, 1, Kind::kUnsigned, 0, 0, false},
      {"int32", axonInt32, 4, Kind::kSigned, 0, 0, false},
      {"uint32", axonUint32, 4, Kind::kUnsigned, 0, 0, false},
      {"int64", axonInt64, 8, Kind::kSigned, 0, 0, false},
      {"uint64", axonUint64, 8, Kind::kUnsigned, 0, 0, false},
      {"half", axonFloat16, 2, Kind::kFloat, 5, 10, false},
      {"float", axonFloat32, 4, Kind::kFloat, 8, 23, false},
      {"double", axonFloat64, 8, Kind::kFloat, 11, 52, false},
      {"bfloat16", axonBfloat16, 2, Kind::kFloat, 8, 7, false},
      {"f8e4m3", axonFloat8e4m3, 1, Kind::kFloat, 4, 3, true},
      {"f8e5m2", axonFloat8e5m2, 1, Kind::kFloat, 5, 2, false},
  };
  return types;
}

const std::vector<Operator>& Operators() {
  using Kind = Operator::Kind;
  static const std::vector<Operator>& operators = *new std::vector<Operator>{
      {"sum", Kind::kSum},       {"prod", Kind::kProd},
      {"max", Kind::kMax},       {"min", Kind::kMin},
      {"avg", Kind::kAvg},       {"mulsum", Kind::kMulSum},
      {"bitand", Kind::kBitAnd}, {"bitor", Kind::kBitOr},
      {"bitxor", Kind::kBitXor},
  };
  return operators;
}

axonRedOp_t Id(const Operator& op) {
  switch (op.kind) {
    case Operator::Kind::kSum:
      return axonSum;
    case Operator::Kind::kProd:
      return axonProd;
    case Operator::Kind::kMax:
      return axonMax;
    case Operator::Kind::kMin:
      return axonMin;
    case Operator::Kind::kAvg:
      return axonAvg;
    case Operator::Kind::kBitAnd:
      return axonBitAnd;
    case Operator::Kind::kBitOr:
      return axonBitOr;
    case Operator::Kind::kBitXor:
      return axonBitXor;
    case Operator::Kind::kNone:
    case Operator::Kind::kMulSum:
      break;
  }
  std::abort();  // has no number of its own
}

uint64_t Encode(const Type& type, double value) {
  const uint64_t sign = uint64_t{std::signbit(value)} << SignBit(type);
  const double magnitude = std::fabs(value);
  const uint64_t infinity = InfinityBits(type);
  const uint64_t too_large =
      type.finite ? LowMask(SignBit(type)) - 1 : infinity;
  if (std::isnan(value)) {
    return type.finite ? LowMask(SignBit(type))
                       : infinity | uint64_t{1} << (type.mantissa_bits - 1);
  }
  if (std::isinf(value)) return sign | too_large;
  if (magnitude == 0) return sign;
  // Counted in units of the last place, subnormals have the exponent of the
  // smallest normal numbers, and a carry out of the mantissa increments the
  // exponent field by itself.
  const int exponent = std::max(std::ilogb(magnitude), 1 - Bias(type));
  const double units =
      std::nearbyint(std::ldexp(magnitude, type.mantissa_bits - exponent));
  if (exponent > Bias(type) + 1) return sign | too_large;
  const uint64_t bits =
      (static_cast<uint64_t>(exponent + Bias(type) - 1) << type.mantissa_bits) +
      static_cast<uint64_t>(units);
  return sign | std::min(bits, too_large);
}

double Decode(const Type& type, uint64_t bits) {
  if (IsNan(type, bits)) return std::numeric_limits<double>::quiet_NaN();
  const uint64_t magnitude = bits & LowMask(SignBit(type));
  const uint64_t mantissa = magnitude & LowMask(type.mantissa_bits);
  const int field = static_cast<int>(magnitude >> type.mantissa_bits);
  double value;
  if (!type.finite && magnitude == InfinityBits(type)) {
    value = std::numeric_limits<double>::infinity();
  } else {
    const uint64_t units =
        mantissa + (field > 0 ? uint64_t{1} << type.mantissa_bits : 0);
    value = std::ldexp(static_cast<double>(units),
                       std::max(field, 1) - Bias(type) - type.mantissa_bits);
  }
  return bits >> SignBit(type) & 1 ? -value : value;
}

uint64_t UlpDistance(const Type& type, uint64_t a, uint64_t b) {
  if (IsNan(type, a) || IsNan(type, b)) {
    return IsNan(type, a) && IsNan(type, b)
               ? 0
               : std::numeric_limits<uint64_t>::max();
  }
  const uint64_t mask = LowMask(SignBit(type));
  const uint64_t low = std::min(a & mask, b & mask);
  const uint64_t high = std::max(a & mask, b & mask);
  const bool same_sign = ((a ^ b) >> SignBit(type) & 1) == 0;
  return same_sign ? high - low : high + low;
}

int64_t Wrap(const Type& type, uint64_t bits) {
  const int unused = 64 - 8 * static_cast<int>(type.size);
  const uint64_t shifted = bits << unused;
  return type.kind == Type::Kind::kSigned
             ? static_cast<int64_t>(shifted) >> unused
             : static_cast<int64_t>(shifted >> unused);
}

void Store(const Type& type, uint64_t bits, void* to) {
  std::memcpy(to, &bits, type.size);  // little-endian, as all of Axon
}

uint64_t Load(const Type& type, const void* from) {
  uint64_t bits = 0;
  std::memcpy(&bits, from, type.size);
  return bits;
}

}  // namespace axon::perf
