// SPDX-License-Identifier: Apache-2.0
// Tensors in memory that peers can read where it lies: torch's interface to the
// pool. Plain functions, callable from any thread. Where there is no such
// memory, ordinary memory is used, and a warning says so once.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstddef>

#include "mapped_pool.h"

namespace torch_axon {

// A new tensor of one dimension, with any content. It can be resized.
at::Tensor NewMappedTensor(int64_t elements, c10::ScalarType dtype);

// True if the storage of `tensor` is the pool's.
bool IsMapped(const at::Tensor& tensor);

// All CPU tensors of the process that are made from now on and have at least so
// many bytes get memory of the pool; the others get it from the allocator that
// torch had before. SIZE_MAX: none of them.
void SetMinimumMappedBytes(size_t bytes);
size_t MinimumMappedBytes();

}  // namespace torch_axon
