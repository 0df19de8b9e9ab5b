// SPDX-License-Identifier: Apache-2.0
// clang-format off: this header comes before any of Highway.
#include "engine/kernels_families.h"
// clang-format on

#include <cstdint>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels_integers.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/kernels_reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace axon {
namespace HWY_NAMESPACE {

// Bits do not care where elements begin.
template <class Op, size_t kElementSize>
void ReduceBits(const ReduceArgs& args) {
  Run<Integers<uint8_t>, Op>(args, 0, args.count * kElementSize);
}

template <size_t kElementSize>
ReduceFn FindBits(ReduceOp op) {
  switch (op) {
    case ReduceOp::kBitAnd:
      return &ReduceBits<BitAnd, kElementSize>;
    case ReduceOp::kBitOr:
      return &ReduceBits<BitOr, kElementSize>;
    default:
      return &ReduceBits<BitXor, kElementSize>;
  }
}

template <typename T>
ReduceFn FindTyped(ReduceOp op) {
  using Signless = Integers<std::make_unsigned_t<T>>;
  ReduceFn arithmetic = FindArithmetic<Integers<T>, Signless>(op);
  return arithmetic != nullptr ? arithmetic : FindBits<sizeof(T)>(op);
}

ReduceFn FindInteger(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kInt8:
      return FindTyped<int8_t>(op);
    case DataType::kUint8:
      return FindTyped<uint8_t>(op);
    case DataType::kInt32:
      return FindTyped<int32_t>(op);
    case DataType::kUint32:
      return FindTyped<uint32_t>(op);
    case DataType::kInt64:
      return FindTyped<int64_t>(op);
    default:
      return FindTyped<uint64_t>(op);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace axon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace axon {

HWY_EXPORT(FindInteger);

ReduceFn FindIntegerReduce(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(FindInteger)(type, op);
}

}  // namespace axon
#endif  // HWY_ONCE
