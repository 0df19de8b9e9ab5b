// SPDX-License-Identifier: Apache-2.0
// Element types and operators as the perf programs name, encode and compare
// them: a slow, generic and independent second opinion on what the library
// computes. Values and pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "axon/axon.h"

namespace axon::perf {

struct Type {
  enum class Kind { kSigned, kUnsigned, kFloat };
  const char* name;  // as nccl-tests prints it
  axonDataType_t id;
  size_t size;  // bytes
  Kind kind;
  int exponent_bits;  // floats only
  int mantissa_bits;  // floats only: stored bits
  bool finite;        // the "fn" form: no infinities, too large saturates

  bool is_float() const { return kind == Kind::kFloat; }
};

// All types, at the index of their number in axon.h.
const std::vector<Type>& Types();

struct Operator {
  enum class Kind {
    kNone,  // the collective reduces nothing
    kSum,
    kProd,
    kMax,
    kMin,
    kAvg,
    kMulSum,  // axonRedOpCreatePreMulSum
    kBitAnd,
    kBitOr,
    kBitXor,
  };
  const char* name;  // as nccl-tests prints it
  Kind kind;

  bool bitwise() const { return kind >= Kind::kBitAnd; }
};

// All operators but "none".
const std::vector<Operator>& Operators();
inline constexpr Operator kNoOperator{"none", Operator::Kind::kNone};

// The number in axon.h of any operator but kNone and kMulSum.
axonRedOp_t Id(const Operator& op);

// The bits of `value` in a floating type, rounded to nearest even.
uint64_t Encode(const Type& type, double value);
double Decode(const Type& type, uint64_t bits);

// Units in the last place between two encoded floats; 0 for two NaNs, the
// largest number for one.
uint64_t UlpDistance(const Type& type, uint64_t a, uint64_t b);

// `bits` cut to the width of an integer type, then extended by its sign.
int64_t Wrap(const Type& type, uint64_t bits);

// The low `type.size` bytes to and from memory of any alignment.
void Store(const Type& type, uint64_t bits, void* to);
uint64_t Load(const Type& type, const void* from);

}  // namespace axon::perf
