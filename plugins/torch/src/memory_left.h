// SPDX-License-Identifier: Apache-2.0
// How much memory this process could still get. A plain function, callable from
// any thread; reads a few small files.
#pragma once

#include <cstddef>

namespace torch_axon {

// The least of what the machine has available and what the limit of the control
// group (v2 or v1) leaves; SIZE_MAX where nothing can be found out.
size_t MemoryLeft();

}  // namespace torch_axon
