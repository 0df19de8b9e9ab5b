// SPDX-License-Identifier: Apache-2.0
// clang-format off: this header comes before any of Highway.
#include "engine/kernels_families.h"
// clang-format on

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels_floats.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h:
#include "engine/kernels_reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace axon {
namespace HWY_NAMESPACE {

ReduceFn FindFloat(DataType type, ReduceOp op) {
  return type == DataType::kFloat32 ? FindArithmetic<Floats<float>>(op)
                                    : FindArithmetic<Floats<double>>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace axon
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace axon {

HWY_EXPORT(FindFloat);

ReduceFn FindFloatReduce(DataType type, ReduceOp op) {
  return HWY_DYNAMIC_DISPATCH(FindFloat)(type, op);
}

}  // namespace axon
#endif  // HWY_ONCE
