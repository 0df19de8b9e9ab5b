// SPDX-License-Identifier: Apache-2.0
// The rules of axon.h for one element at a time, written as plainly as can be
// and sharing nothing with the kernels: formats are defined by their fields and
// rounded by search among all their values. Elements are bits in a uint64_t.
// Pure functions, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace axon {

// The bits of the NaN that arithmetic gives.
uint64_t NanBits(DataType type);
bool IsNanBits(DataType type, uint64_t bits);

// Of any floating type; exact.
double Decode(DataType type, uint64_t bits);
// The nearest value, of two the even one; saturating for float8e4m3.
uint64_t Encode(DataType type, double value);

// One element of a reduction over `inputs` in their order. `factors` is used by
// kPreMulSum and `divisor` by kAvg.
uint64_t ReferenceReduce(DataType type, ReduceOp op,
                         const std::vector<uint64_t>& inputs,
                         const std::vector<double>& factors, int divisor);

// A value that is likely to be difficult: `seed` chooses among the special
// values of the type, small whole numbers and any bits.
uint64_t TestBits(DataType type, uint64_t seed);

}  // namespace axon
