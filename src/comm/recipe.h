// SPDX-License-Identifier: Apache-2.0
// What a communicator has worked out about all calls of one shape: which path,
// which plan, cut how. A call whose shape was seen lately begins with nothing
// to check but its pointers and nothing to look up but this. Plain values; of
// the thread whose collective's turn it is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/types.h"
#include "engine/board_run.h"
#include "engine/line_run.h"

namespace axon {

// What tells one recipe from another. None is that of no call.
struct CallShape {
  CallShape() = default;
  CallShape(Collective collective, DataType type, ReduceOp op, int root,
            size_t elements)
      : kind(static_cast<uint64_t>(collective) |
             static_cast<uint64_t>(type) << 8 |
             static_cast<uint64_t>(op) << 16 |
             static_cast<uint64_t>(static_cast<uint32_t>(root)) << 32),
        count(elements) {}

  bool operator==(const CallShape&) const = default;
  Collective collective() const { return static_cast<Collective>(kind & 255); }
  DataType type() const { return static_cast<DataType>(kind >> 8 & 255); }
  ReduceOp op() const { return static_cast<ReduceOp>(kind >> 16 & 255); }
  int root() const { return static_cast<int>(kind >> 32); }

  uint64_t kind = ~uint64_t{0};
  size_t count = 0;
};

struct alignas(kCacheLine) Recipe {
  CallShape shape;  // none until the rest is complete
  // Of the buffers on this rank.
  size_t in_bytes = 0, out_bytes = 0;
  // The call is in place where `out` lies so many bytes behind `in`.
  bool in_place_possible = false;
  ptrdiff_t in_place_shift = 0;

  bool on_lines = false;
  LinePlan line;  // if so; else
  BoardRun::Setup setup;
  bool may_map = false;       // buffers may be read where they lie,
  bool map_in_place = false;  // even those of a call in place
  bool stages = false;        // if they are not, the outbox is needed

  bool InPlace(const void* in, const void* out) const {
    return in_place_possible &&
           reinterpret_cast<uintptr_t>(out) - reinterpret_cast<uintptr_t>(in) ==
               static_cast<uintptr_t>(in_place_shift);
  }
  // Whether there are buffers, apart or exactly in place.
  bool Fit(const void* in, const void* out) const {
    if ((in == nullptr && in_bytes > 0) || (out == nullptr && out_bytes > 0)) {
      return false;
    }
    const auto a = reinterpret_cast<uintptr_t>(in);
    const auto b = reinterpret_cast<uintptr_t>(out);
    return a >= b + out_bytes || b >= a + in_bytes || InPlace(in, out);
  }
};

// The recipes of the shapes seen lately.
class RecipeCache {
 public:
  RecipeCache() = default;
  RecipeCache(const RecipeCache&) = delete;
  RecipeCache& operator=(const RecipeCache&) = delete;

  // Where the shape's recipe is, if it is anywhere.
  Recipe& At(const CallShape& shape) {
    if (latest_->shape == shape) return *latest_;
    const uint64_t mixed =
        (shape.count ^ shape.kind << 20) * 0x9e3779b97f4a7c15ULL;
    latest_ = &recipes_[mixed >> 60];
    return *latest_;
  }

 private:
  std::array<Recipe, 16> recipes_;
  Recipe* latest_ = recipes_.data();
};

}  // namespace axon
