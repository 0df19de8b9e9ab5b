// SPDX-License-Identifier: Apache-2.0
// What one perf program is: a collective, the sizes of its buffers, and what
// each rank must hold afterwards. Constant data and pure functions, written
// down in <name>_perf.cc; everything else is common to all programs.
#pragma once

#include <cstddef>
#include <vector>

#include "axon/axon.h"

namespace axon::perf {

// Where a rank stands in a call.
struct Place {
  int rank;
  int size;
  int root;
};

// Elements of the buffers of one call.
struct Shape {
  size_t send;
  size_t recv;
  size_t count;  // the argument of the call
};

struct Call {
  const void* send;
  void* recv;
  size_t count;
  axonDataType_t type;
  axonRedOp_t op;
  Place place;
  axonComm_t comm;
  axonStream_t stream;
};

// A run of elements in a rank's receive buffer: those of the input of `source`
// (Pattern::kReduced: of the reduction) that begin at `first`.
struct Part {
  int source;
  size_t first;
  size_t at;
  size_t count;
};

struct Program {
  const char* name;  // "all_reduce"
  bool reduces = false;
  bool rooted = false;
  bool has_algorithms = true;  // to choose from with --algorithm
  // In place: a rank's part of the larger buffer is the smaller one.
  enum class InPlace { kNo, kSame, kSendIsPart, kRecvIsPart };
  InPlace in_place = InPlace::kNo;
  // From the elements that the size on the command line amounts to.
  Shape (*shape)(size_t count, size_t element_size, int size);
  double (*bus_factor)(int size);
  axonResult_t (*call)(const Call& call);
  std::vector<Part> (*expect)(const Place& place, size_t count);
};

// Shapes and factors that several programs have.

inline Shape SameShape(size_t count, size_t, int) {
  return {count, count, count};
}
// `count` elements in parts of whole 16 bytes.
inline size_t AlignedPart(size_t count, size_t element_size, int size) {
  return count / size & ~(16 / element_size - 1);
}

inline double WholeFactor(int) { return 1; }
inline double PartsFactor(int size) {
  return static_cast<double>(size - 1) / size;
}

// One part of `count` elements from each rank, in rank order.
inline std::vector<Part> PartOfEach(const Place& place, size_t first,
                                    size_t count) {
  std::vector<Part> parts;
  for (int rank = 0; rank < place.size; ++rank) {
    parts.push_back({rank, first, rank * count, count});
  }
  return parts;
}

}  // namespace axon::perf
