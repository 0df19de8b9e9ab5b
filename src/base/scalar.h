// SPDX-License-Identifier: Apache-2.0
// One element of any type as a double: the scalar of a premultiplied sum, read
// when it is created or when the call runs. A pure function.
#pragma once

#include "base/types.h"

namespace axon {

// The element of type `type` at `at`. Integers beyond 2^53 are rounded.
double ReadScalar(const void* at, DataType type);

}  // namespace axon
