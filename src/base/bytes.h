// SPDX-License-Identifier: Apache-2.0
// Spans of bytes and the few sums over sizes that every layer needs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace axon {

using Bytes = absl::Span<const std::byte>;
using MutableBytes = absl::Span<std::byte>;

constexpr size_t kCacheLine = 64;

constexpr size_t RoundUp(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}
constexpr size_t CeilDiv(size_t n, size_t d) { return (n + d - 1) / d; }

}  // namespace axon
