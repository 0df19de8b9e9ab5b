// SPDX-License-Identifier: Apache-2.0
// clang-format off: this header comes before any of Highway.
#include "engine/kernels_families.h"
// clang-format on

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels_narrow.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/kernels_convert-inl.h"
#include "engine/kernels_reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace axon {
namespace HWY_NAMESPACE {

ReduceFn FindNarrow(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::kFloat16:
      return FindArithmetic<Float16s>(op);
    case DataType::kBfloat16:
      return FindArithmetic<Bfloat16s>(op);
    case DataType::kFloat8e4m3:
      return FindArithmetic<E4m3s>(op);
    default:
      return FindArithmetic<E5m2s>(op);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace axon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace axon {

HWY_EXPORT(FindNarrow);

ReduceFn FindNarrowReduce(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(FindNarrow)(type, op);
}

}  // namespace axon
#endif  // HWY_ONCE
