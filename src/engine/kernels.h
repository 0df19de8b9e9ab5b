// SPDX-License-Identifier: Apache-2.0
// The arithmetic: element-wise n-ary reductions and copies over memory, chosen
// once per call by (type, operator) and dispatched at run time to the best
// vector instructions of the machine (Google Highway).
//
// The rules of axon.h hold here and nowhere else: integers wrap; narrow floats
// are widened to float32, combined in the order of the sources and rounded once
// to nearest even; NaN wins in min and max; +0 > -0. A NaN that comes out of
// arithmetic is always the same one (quiet, positive), and multiplications and
// additions are never fused: every instruction set gives the same bits.
//
// Thread-safe: pure functions over the caller's memory. Sources and
// destinations need only the alignment of a byte. A destination may equal a
// source exactly; other overlaps are not allowed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace axon {

// One reduction:
// destination[0..m) [i] = finish(source[0][i] op source[1][i] ...).
struct ReduceArgs {
  const void* const* sources;  // n pointers, combined in this order
  int num_sources;             // 1 or more; 1 copies bits (and finishes)
  void* const* destinations;   // m pointers, all written with the same value
  int num_destinations;        // 1 or more
  size_t count;                // elements
  // kPreMulSum: num_sources factors, converted from the type of the elements
  // and back: rounded to float32 or cut to an integer modulo 2^width. Else
  // ignored. A factor of 1 leaves its source as it is.
  const double* factors = nullptr;
  // kAvg: the number of ranks to divide by after the sum, when this reduction
  // completes it; 0 or 1: no division. Integers divide toward zero. Else
  // ignored.
  int divisor = 0;
};

// Never null: every type has every operator, except the bitwise ones for
// floats, which are refused before (ReductionSupported).
using ReduceFn = void (*)(const ReduceArgs&);
ReduceFn FindReduce(DataType type, ReduceOp op);
bool ReductionSupported(DataType type, ReduceOp op);

// memcpy, but either address may be null where there is nothing to copy. (On
// machines that have them, memcpy uses string instructions, which write lines
// that another core holds without reading them first: 1.3 to 2 times as fast as
// a loop of vector stores, between caches.)
void CopyBytes(void* destination, const void* source, size_t bytes);

// The instruction set in use, as text ("AVX3", "SSE4").
const char* KernelTarget();

}  // namespace axon
