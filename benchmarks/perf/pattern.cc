// SPDX-License-Identifier: Apache-2.0
#include "perf/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace axon::perf {

namespace {

using Kind = Operator::Kind;

// SplitMix64's output function (Steele, Lea, Flood 2014).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

uint64_t Random(uint64_t rank, uint64_t index) {
  return Mix(Mix(rank + 1) ^ index);
}
// The same on all ranks.
uint64_t SharedRandom(uint64_t index) { return Mix(~index); }

// How many integers from 0 a type holds exactly; enough is enough.
int64_t ExactIntegers(const Type& type) {
  return int64_t{1} << std::min(type.mantissa_bits + 1, 20);
}

double Signed(double magnitude, uint64_t random) {
  // Zero stays positive: sums of zeros have one sign.
  return magnitude != 0 && random >> 40 & 1 ? -magnitude : magnitude;
}

}  // namespace

Pattern::Pattern(const Type& type, const Operator& op, int ranks)
    : type_(type), op_(op), ranks_(ranks), inputs_(ranks) {}

void Pattern::Fill(int rank, size_t first, size_t count, void* to) {
  const Table& table = TableOf(rank);
  auto* bytes = static_cast<std::byte*>(to);
  for (size_t at = first % kPeriod; count > 0; at = 0) {
    const size_t run = std::min(count, kPeriod - at);
    std::memcpy(bytes, &table[at * type_.size], run * type_.size);
    bytes += run * type_.size;
    count -= run;
  }
}

size_t Pattern::Wrong(int source, size_t first, size_t count,
                      const void* from) {
  const Table& table = TableOf(source);
  const auto* bytes = static_cast<const std::byte*>(from);
  size_t wrong = 0;
  for (size_t at = first % kPeriod; count > 0; at = 0) {
    const size_t run = std::min(count, kPeriod - at);
    const std::byte* want = &table[at * type_.size];
    if (std::memcmp(bytes, want, run * type_.size) != 0) {
      for (size_t i = 0; i < run * type_.size; i += type_.size) {
        if (!Right(Load(type_, want + i), Load(type_, bytes + i))) ++wrong;
      }
    }
    bytes += run * type_.size;
    count -= run;
  }
  return wrong;
}

uint64_t Pattern::Scalar(int rank) const {
  return type_.is_float() ? Encode(type_, 1 + rank % 2) : 2 * rank + 3;
}

const Pattern::Table& Pattern::TableOf(int source) {
  Table& table = source == kReduced ? reduced_ : inputs_.at(source);
  if (table.empty()) {
    table.resize(kPeriod * type_.size);
    for (size_t i = 0; i < kPeriod; ++i) {
      Store(type_, source == kReduced ? Reduced(i) : Input(source, i),
            &table[i * type_.size]);
    }
  }
  return table;
}

uint64_t Pattern::Input(int rank, uint64_t index) const {
  const uint64_t random = Random(rank, index);
  if (op_.kind == Kind::kNone) return random;  // any bits are to be carried
  if (!type_.is_float()) return IntegerInput(random, Mix(random));
  return Encode(type_, FloatInput(rank, random, SharedRandom(index)));
}

// Integers wrap, so that any values do, if the result shows something of each.
uint64_t Pattern::IntegerInput(uint64_t random, uint64_t more) const {
  switch (op_.kind) {
    case Kind::kProd:
      return random | 1;
    case Kind::kBitAnd:
      return random | more | more << 32 | more >> 32;
    case Kind::kBitOr:
      return random & more & (more << 32 | more >> 32);
    default:
      return random;
  }
}

double Pattern::FloatInput(int rank, uint64_t random, uint64_t shared) const {
  switch (op_.kind) {
    case Kind::kProd:
      return Factor(rank, random, shared);
    case Kind::kMax:
    case Kind::kMin: {
      const double integer = random % ExactIntegers(type_);
      const int exponent = static_cast<int>(random >> 32 & 3) - 2;
      return Signed(std::ldexp(integer, exponent), random);
    }
    default:
      return Summand(rank, random, shared);
  }
}

// Multiples of one power of two, whose magnitudes add up to an exact integer
// at most. With more ranks than the type can count, most contribute zero.
double Pattern::Summand(int rank, uint64_t random, uint64_t shared) const {
  const int64_t scale = op_.kind == Kind::kMulSum ? 2 : 1;
  const int64_t budget = ExactIntegers(type_) / scale;
  const int64_t each = budget / ranks_;
  int64_t integer;
  if (each > 0) {
    integer = static_cast<int64_t>(random % (each + 1));
  } else {
    integer = static_cast<int64_t>((rank + shared) % ranks_) < budget;
  }
  const int exponent = static_cast<int>((shared >> 32) % 3);
  return Signed(std::ldexp(static_cast<double>(integer), exponent - 1), random);
}

// Signs everywhere, a factor of 1.5 from one rank and powers of two from three:
// two significant bits and an exponent within +-4.
double Pattern::Factor(int rank, uint64_t random, uint64_t shared) const {
  double value = 1;
  if ((rank + shared) % ranks_ < 3) {
    value = std::ldexp(1.0, static_cast<int>(random % 3) - 1);
  }
  if (static_cast<int>((shared >> 20) % ranks_) == rank) value *= 1.5;
  return Signed(value, random);
}

uint64_t Pattern::Reduced(uint64_t index) const {
  return type_.is_float() ? Encode(type_, ReducedFloats(index))
                          : ReducedIntegers(index);
}

uint64_t Pattern::ReducedIntegers(uint64_t index) const {
  const bool is_signed = type_.kind == Type::Kind::kSigned;
  const auto less = [&](uint64_t a, uint64_t b) {
    return is_signed ? Wrap(type_, a) < Wrap(type_, b)
                     : static_cast<uint64_t>(Wrap(type_, a)) <
                           static_cast<uint64_t>(Wrap(type_, b));
  };
  const auto input = [&](int rank) {
    return Input(rank, index) * (op_.kind == Kind::kMulSum ? Scalar(rank) : 1);
  };
  uint64_t result = input(0);
  for (int rank = 1; rank < ranks_; ++rank) {
    const uint64_t next = input(rank);
    switch (op_.kind) {
      case Kind::kProd:
        result *= next;
        break;
      case Kind::kMax:
        result = less(result, next) ? next : result;
        break;
      case Kind::kMin:
        result = less(next, result) ? next : result;
        break;
      case Kind::kBitAnd:
        result &= next;
        break;
      case Kind::kBitOr:
        result |= next;
        break;
      case Kind::kBitXor:
        result ^= next;
        break;
      default:
        result += next;
        break;
    }
  }
  if (op_.kind != Kind::kAvg) return result;
  const int64_t sum = Wrap(type_, result);
  return is_signed ? static_cast<uint64_t>(sum / ranks_)
                   : static_cast<uint64_t>(sum) / ranks_;
}

double Pattern::ReducedFloats(uint64_t index) const {
  const auto input = [&](int rank) {
    const double value = Decode(type_, Input(rank, index));
    return op_.kind == Kind::kMulSum ? value * Decode(type_, Scalar(rank))
                                     : value;
  };
  double result = input(0);
  for (int rank = 1; rank < ranks_; ++rank) {
    switch (op_.kind) {
      case Kind::kProd:
        result *= input(rank);
        break;
      case Kind::kMax:
        result = std::max(result, input(rank));
        break;
      case Kind::kMin:
        result = std::min(result, input(rank));
        break;
      default:
        result += input(rank);
        break;
    }
  }
  return op_.kind == Kind::kAvg ? result / ranks_ : result;
}

bool Pattern::Right(uint64_t want, uint64_t got) const {
  if (want == got) return true;
  const bool rounds = op_.kind == Kind::kAvg || op_.kind == Kind::kMulSum;
  return rounds && type_.is_float() && UlpDistance(type_, want, got) <= 2;
}

}  // namespace axon::perf
