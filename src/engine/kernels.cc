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

// `bytes` is at least a block of the widest vectors.
void CopyLarge(uint8_t* to, const uint8_t* from, size_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const size_t step = hn::Lanes(d);
  const size_t block = 4 * step;
  // Stores that straddle cache lines cost twice: the first vector overlaps.
  hn::StoreU(hn::LoadU(d, from), d, to);
  size_t at = step - reinterpret_cast<uintptr_t>(to) % step;
  for (; at + block <= bytes; at += block) {
    if (at + block + kAhead <= bytes) PrefetchAhead(from + at, block);
    const auto v0 = hn::LoadU(d, from + at);
    const auto v1 = hn::LoadU(d, from + at + step);
    const auto v2 = hn::LoadU(d, from + at + 2 * step);
    const auto v3 = hn::LoadU(d, from + at + 3 * step);
    hn::StoreU(v0, d, to + at);
    hn::StoreU(v1, d, to + at + step);
    hn::StoreU(v2, d, to + at + 2 * step);
    hn::StoreU(v3, d, to + at + 3 * step);
  }
  // The last vectors overlap what is already copied.
  for (; at + step <= bytes; at += step) {
    hn::StoreU(hn::LoadU(d, from + at), d, to + at);
  }
  if (at < bytes) {
    hn::StoreU(hn::LoadU(d, from + bytes - step), d, to + bytes - step);
  }
}

int64_t Target() { return HWY_TARGET; }

}  // namespace HWY_NAMESPACE
}  // namespace axon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace axon {

HWY_EXPORT(CopyLarge);
HWY_EXPORT(Target);

namespace {
// Below, memcpy is as good and saves the dispatch.
constexpr size_t kLarge = 256;
}  // namespace

void CopyBytes(void* destination, const void* source, size_t bytes) {
  if (bytes == 0) return;  // either address may be null
  if (bytes < kLarge) {
    std::memcpy(destination, source, bytes);
  } else {
    HWY_DYNAMIC_DISPATCH(CopyLarge)
    (static_cast<uint8_t*>(destination), static_cast<const uint8_t*>(source),
     bytes);
  }
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
