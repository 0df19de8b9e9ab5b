// SPDX-License-Identifier: Apache-2.0
// How torch's element types and operators map onto the library's: which type
// moves the bytes, which type a reduction is computed in. Pure functions and
// values, callable from any thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "axon/axon.h"

namespace torch_axon {

// One element of a tensor is `width` elements of `type`.
struct Wire {
  axonDataType_t type;
  int64_t width;

  size_t Count(int64_t elements) const {
    return static_cast<size_t>(elements * width);
  }
};

// For calls that only move data: every type that torch has. Types that the
// library does not know go as bytes.
Wire MoveWire(c10::ScalarType dtype);

// A reduction: tensors are converted to `dtype` where theirs differs (16-bit
// integers are widened to 32), then reduced as `wire` with `op`.
struct Reduction {
  c10::ScalarType dtype;
  Wire wire;
  axonRedOp_t op;
  bool premultiplied = false;  // PREMUL_SUM: `op` is made for each call
  double factor = 1.0;         // of PREMUL_SUM
};

// Throws ValueError, which names both, where `op` has no meaning for `dtype`.
Reduction MakeReduction(c10::ScalarType dtype, const c10d::ReduceOp& op);

// The operator of `reduction` for calls on `comm`: created if it has a factor,
// destroyed with this object. Lives on the stack around the calls that use it.
class ScopedOp {
 public:
  ScopedOp(const Reduction& reduction, axonComm_t comm);
  ~ScopedOp();
  ScopedOp(const ScopedOp&) = delete;
  ScopedOp& operator=(const ScopedOp&) = delete;

  axonResult_t result() const { return result_; }
  axonRedOp_t get() const { return op_; }

 private:
  axonRedOp_t op_;
  axonComm_t owner_ = nullptr;  // set if op_ must be destroyed
  axonResult_t result_ = axonSuccess;
};

}  // namespace torch_axon
