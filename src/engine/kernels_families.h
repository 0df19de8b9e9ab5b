// SPDX-License-Identifier: Apache-2.0
// What the translation units of the kernels share: which instruction sets are
// compiled, and the table look-up of each family of types. Internal to
// kernels*.cc, where it comes before any Highway header. Pure functions.
#pragma once

// SSSE3 machines without SSE4 are extinct, and AVX3_DL adds nothing that the
// kernels use: leaving them out saves a third of the code.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)

#include "engine/kernels.h"

namespace axon {

// As FindReduce, for the types of one family and a supported operator.
ReduceFn FindIntegerReduce(DataType type, ReduceOp op);
ReduceFn FindFloatReduce(DataType type, ReduceOp op);   // float32, float64
ReduceFn FindNarrowReduce(DataType type, ReduceOp op);  // IsNarrowFloat

// A reduction of one source without arithmetic: the source's `bytes` bytes to
// every destination.
void CopyToAll(const ReduceArgs& args, size_t bytes);

}  // namespace axon
