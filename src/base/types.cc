// SPDX-License-Identifier: Apache-2.0
#include "base/types.h"

namespace axon {
namespace {

// Numbers may come from a peer's records.
template <size_t N>
const char* At(const char* const (&names)[N], int i) {
  return i >= 0 && static_cast<size_t>(i) < N ? names[i] : "(unknown)";
}

}  // namespace

const char* Name(DataType type) {
  static constexpr const char* kNames[kNumDataTypes] = {
      "int8",    "uint8",   "int32",   "uint32",   "int64",      "uint64",
      "float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2"};
  return At(kNames, static_cast<int>(type));
}

const char* Name(ReduceOp op) {
  static constexpr const char* kNames[kNumReduceOps] = {
      "sum",     "prod",   "max",     "min",      "avg",
      "bit_and", "bit_or", "bit_xor", "premulsum"};
  return At(kNames, static_cast<int>(op));
}

const char* Name(Collective collective) {
  static constexpr const char* kNames[kNumCollectives] = {
      "all_reduce", "broadcast", "reduce",  "all_gather", "reduce_scatter",
      "all_to_all", "gather",    "scatter", "barrier"};
  return At(kNames, static_cast<int>(collective));
}

}  // namespace axon
