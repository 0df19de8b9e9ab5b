// SPDX-License-Identifier: Apache-2.0
// Checks the arguments of calls, on this rank alone: what is wrong is
// InvalidArgument and nothing has happened. Pure functions.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "comm/call_args.h"

namespace axon {

// Of a collective on `ranks` ranks, called by `rank`: root, pointers, sizes
// that overflow, operators that the type does not have, overlaps.
absl::Status CheckCollective(const CollectiveArgs& args, int ranks, int rank);

// One side of an all-to-all of unequal parts: lengths, places, pointer.
struct Parts {
  const char* name;  // "sendbuff": for texts
  const void* base;
  absl::Span<const int64_t> lengths;
  absl::Span<const int64_t> offsets;
};
absl::Status CheckAlltoAllV(const Parts& send, const Parts& recv,
                            DataType type);
absl::Status CheckMessage(const MessageArgs& message, size_t count,
                          DataType type, int ranks);

// Places of parts that are packed in rank order.
std::vector<int64_t> PackedOffsets(absl::Span<const int64_t> lengths);

}  // namespace axon
