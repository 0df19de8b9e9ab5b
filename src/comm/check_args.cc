// SPDX-License-Identifier: Apache-2.0
#include "comm/check_args.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "engine/kernels.h"
#include "schedule/collective.h"

namespace axon {
namespace {

// Processes can address no more than this anywhere today.
constexpr size_t kMost = size_t{1} << 47;

// Bytes from `begin`; the empty range overlaps nothing.
struct Range {
  uintptr_t begin = 0;
  size_t size = 0;
};
Range RangeOf(const void* p, size_t bytes) {
  return {reinterpret_cast<uintptr_t>(p), bytes};
}
bool Overlap(const Range& a, const Range& b) {
  return a.size > 0 && b.size > 0 && a.begin < b.begin + b.size &&
         b.begin < a.begin + a.size;
}

absl::StatusOr<size_t> BytesOf(size_t count, size_t blocks, DataType type) {
  const size_t unit = ElementSize(type) * std::max<size_t>(blocks, 1);
  if (count > kMost / unit) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%u elements of %s in %u parts are more bytes than an "
                        "address space has",
                        count, Name(type), blocks));
  }
  return count * ElementSize(type) * blocks;
}

absl::Status CheckPointer(const char* name, const void* p, size_t bytes) {
  if (p == nullptr && bytes > 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is NULL but %u bytes are needed", name, bytes));
  }
  return absl::OkStatus();
}

absl::Status OverlapError(const std::string& what) {
  return absl::InvalidArgumentError(
      what + " overlap; buffers must be apart or exactly in place");
}

absl::Status CheckOperator(const CollectiveArgs& args) {
  if (!IsReduction(args.collective) || ReductionSupported(args.type, args.op)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is not defined for %s: bitwise operators work on "
                      "integers only",
                      Name(args.op), Name(args.type)));
}

absl::Status CheckParts(const Parts& parts, DataType type) {
  for (size_t r = 0; r < parts.lengths.size(); ++r) {
    const int64_t length = parts.lengths[r], offset = parts.offsets[r];
    const auto most = static_cast<int64_t>(kMost / ElementSize(type));
    if (length < 0 || offset < 0 || length > most || offset > most - length) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "part %d of %s has %d elements at displacement %d: both must be at "
          "least 0 and fit an address space",
          r, parts.name, length, offset));
    }
    RETURN_IF_ERROR(
        CheckPointer(parts.name, parts.base, static_cast<size_t>(length)));
  }
  return absl::OkStatus();
}

// Parts of a receiving buffer must not overlap each other.
absl::Status CheckApart(const Parts& parts) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (size_t r = 0; r < parts.lengths.size(); ++r) {
    if (parts.lengths[r] > 0) {
      ranges.emplace_back(parts.offsets[r],
                          parts.offsets[r] + parts.lengths[r]);
    }
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) {
      return OverlapError(
          absl::StrFormat("parts of %s at displacements %d and %d", parts.name,
                          ranges[i - 1].first, ranges[i].first));
    }
  }
  return absl::OkStatus();
}

Range PartRange(const Parts& parts, size_t r, DataType type) {
  const size_t element = ElementSize(type);
  return RangeOf(static_cast<const std::byte*>(parts.base) +
                     static_cast<size_t>(parts.offsets[r]) * element,
                 static_cast<size_t>(parts.lengths[r]) * element);
}

absl::Status CheckUneven(const CollectiveArgs& args, int rank) {
  const bool gathers = args.collective == Collective::kAllGather;
  const Parts parts{gathers ? "recvbuff" : "sendbuff",
                    gathers ? args.out : args.in, args.lengths, args.offsets};
  RETURN_IF_ERROR(CheckParts(parts, args.type));
  if (gathers) RETURN_IF_ERROR(CheckApart(parts));
  const auto me = static_cast<size_t>(rank);
  const size_t mine =
      static_cast<size_t>(args.lengths[me]) * ElementSize(args.type);
  const void* other = gathers ? args.in : args.out;
  RETURN_IF_ERROR(CheckPointer(gathers ? "sendbuff" : "recvbuff", other, mine));
  const Range range = RangeOf(other, mine);
  for (size_t r = 0; r < args.lengths.size(); ++r) {
    const Range part = PartRange(parts, r, args.type);
    const bool in_place = r == me && part.begin == range.begin;
    if (!in_place && Overlap(range, part)) {
      return OverlapError(
          absl::StrFormat("sendbuff and recvbuff (part %d)", r));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCollective(const CollectiveArgs& args, int ranks, int rank) {
  if (IsRooted(args.collective) && (args.root < 0 || args.root >= ranks)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "root %d is not a rank of 0 to %d", args.root, ranks - 1));
  }
  RETURN_IF_ERROR(CheckOperator(args));
  if (!args.lengths.empty()) return CheckUneven(args, rank);
  const Place place{ranks, rank, args.root};
  const auto in_blocks = static_cast<size_t>(InBlocks(args.collective, place));
  const auto out_blocks =
      static_cast<size_t>(OutBlocks(args.collective, place));
  ASSIGN_OR_RETURN(const size_t in_bytes,
                   BytesOf(args.count, in_blocks, args.type));
  ASSIGN_OR_RETURN(const size_t out_bytes,
                   BytesOf(args.count, out_blocks, args.type));
  RETURN_IF_ERROR(CheckPointer("sendbuff", args.in, in_bytes));
  RETURN_IF_ERROR(CheckPointer("recvbuff", args.out, out_bytes));
  const InPlace in_place = InPlaceOf(args.collective, place);
  const size_t block = args.count * ElementSize(args.type);
  const Range in = RangeOf(args.in, in_bytes);
  const Range out = RangeOf(args.out, out_bytes);
  const bool exact =
      in_place.possible &&
      in.begin + static_cast<size_t>(in_place.out_at) * block ==
          out.begin + static_cast<size_t>(in_place.in_at) * block;
  if (!exact && Overlap(in, out)) return OverlapError("sendbuff and recvbuff");
  return absl::OkStatus();
}

absl::Status CheckAlltoAllV(const Parts& send, const Parts& recv,
                            DataType type) {
  RETURN_IF_ERROR(CheckParts(send, type));
  RETURN_IF_ERROR(CheckParts(recv, type));
  RETURN_IF_ERROR(CheckApart(recv));
  for (size_t r = 0; r < send.lengths.size(); ++r) {
    for (size_t q = 0; q < recv.lengths.size(); ++q) {
      if (Overlap(PartRange(send, r, type), PartRange(recv, q, type))) {
        return OverlapError(absl::StrFormat(
            "part %d of sendbuff and part %d of recvbuff", r, q));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMessage(const MessageArgs& message, size_t count,
                          DataType type, int ranks) {
  if (message.peer < 0 || message.peer >= ranks) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "peer %d is not a rank of 0 to %d", message.peer, ranks - 1));
  }
  ASSIGN_OR_RETURN(const size_t bytes, BytesOf(count, 1, type));
  return CheckPointer("the buffer", message.buffer, bytes);
}

std::vector<int64_t> PackedOffsets(absl::Span<const int64_t> lengths) {
  std::vector<int64_t> offsets;
  uint64_t at = 0;  // wraps: such parts are refused
  for (int64_t length : lengths) {
    offsets.push_back(static_cast<int64_t>(at));
    at += static_cast<uint64_t>(length);
  }
  return offsets;
}

}  // namespace axon
