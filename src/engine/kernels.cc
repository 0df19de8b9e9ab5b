// SPDX-License-Identifier: Apache-2.0
// clang-format off: this header comes before any of Highway.
#include "engine/kernels_families.h"
// clang-format on

#include <algorithm>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/kernels_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace axon {
namespace HWY_NAMESPACE {

int64_t Target() { return HWY_TARGET; }

}  // namespace HWY_NAMESPACE
}  // namespace axon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace axon {

HWY_EXPORT(Target);

void CopyBytes(void* destination, const void* source, size_t bytes) {
  if (bytes > 0) std::memcpy(destination, source, bytes);
}

void CopyToAll(const ReduceArgs& args, size_t bytes) {
  // In parts that stay in the first-level cache, read once from memory.
  constexpr size_t kPart = 8192;
  const auto* from = static_cast<const uint8_t*>(args.sources[0]);
  for (size_t at = 0; at < bytes;) {
    const size_t part =
        args.num_destinations == 1 ? bytes : std::min(kPart, bytes - at);
    for (int t = 0; t < args.num_destinations; ++t) {
      auto* to = static_cast<uint8_t*>(args.destinations[t]);
      if (to != from) CopyBytes(to + at, from + at, part);
    }
    at += part;
  }
}

bool ReductionSupported(DataType type, ReduceOp op) {
  const bool bitwise = op == ReduceOp::kBitAnd || op == ReduceOp::kBitOr ||
                       op == ReduceOp::kBitXor;
  return !(bitwise && IsFloat(type));
}

ReduceFn FindReduce(DataType type, ReduceOp op) {
  if (IsNarrowFloat(type)) return FindNarrowReduce(type, op);
  if (IsFloat(type)) return FindFloatReduce(type, op);
  return FindIntegerReduce(type, op);
}

const char* KernelTarget() {
  return hwy::TargetName(HWY_DYNAMIC_DISPATCH(Target)());
}

}  // namespace axon
#endif  // HWY_ONCE
