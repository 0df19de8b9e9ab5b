// SPDX-License-Identifier: Apache-2.0
// Element types and operators, numerically equal to those of axon.h, and the
// collectives. Plain values that every layer may name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace axon {

enum class DataType : uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kBfloat16,
  kFloat8e4m3,
  kFloat8e5m2,
};
constexpr int kNumDataTypes = 12;

// kPreMulSum multiplies each contribution by its rank's factor, then sums.
enum class ReduceOp : uint8_t {
  kSum,
  kProd,
  kMax,
  kMin,
  kAvg,
  kBitAnd,
  kBitOr,
  kBitXor,
  kPreMulSum,
};
constexpr int kNumReduceOps = 9;

enum class Collective : uint8_t {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kAlltoAll,
  kGather,
  kScatter,
  kBarrier,
};
constexpr int kNumCollectives = 9;

constexpr size_t ElementSize(DataType type) {
  constexpr uint8_t kSizes[kNumDataTypes] = {1, 1, 4, 4, 8, 8,
                                             2, 4, 8, 2, 1, 1};
  return kSizes[static_cast<int>(type)];
}
// Types that are widened to float32, combined in rank order, rounded once.
constexpr bool IsNarrowFloat(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBfloat16 ||
         type == DataType::kFloat8e4m3 || type == DataType::kFloat8e5m2;
}
constexpr bool IsFloat(DataType type) {
  return IsNarrowFloat(type) || type == DataType::kFloat32 ||
         type == DataType::kFloat64;
}

// Lower-case names as texts, tables and flags use them ("float32", "sum",
// "all_reduce").
const char* Name(DataType type);
const char* Name(ReduceOp op);
const char* Name(Collective collective);

}  // namespace axon
