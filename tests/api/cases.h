// SPDX-License-Identifier: Apache-2.0
// One collective call of the C API with everything that may vary, run by every
// rank and compared byte for byte with what axon.h says must come out. Inputs
// repeat with a period that no piece size divides, so results of any size are
// known from a few reference elements. Thread-safe: each rank runs its own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "axon/axon.h"
#include "base/types.h"

namespace axon {

enum class Memory { kPrivate, kMapped };

struct Case {
  Collective collective = Collective::kAllReduce;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  size_t count = 0;
  int root = 0;
  bool in_place = false;
  Memory memory = Memory::kPrivate;
  size_t shift = 0;  // bytes that buffers are off their natural alignment
  bool null_if_empty = false;

  std::string Text() const;
};

// Runs the case on this rank; empty, or what is wrong.
std::string RunCase(const Case& c, axonComm_t comm, int rank, int ranks,
                    axonStream_t stream = nullptr);

// The bits of element i of rank r's input; of period kPeriod in i. float32 and
// float64 are chosen so that sums and products are exact in any order.
constexpr size_t kPeriod = 1009;
uint64_t InputBits(DataType type, ReduceOp op, int rank, size_t i);

// One period of what a rank puts in, and of the reduction over all ranks.
std::vector<uint64_t> InputPeriod(DataType type, ReduceOp op, int rank);
const std::vector<uint64_t>& ReducedPeriod(DataType type, ReduceOp op,
                                           int ranks);

bool Reduces(Collective collective);
bool HasRoot(Collective collective);
std::vector<DataType> AllTypes();
// The operators that `type` has, kPreMulSum included.
std::vector<ReduceOp> OpsOf(DataType type);
std::vector<Collective> AllCollectives();

// Elements at any address.
uint64_t LoadBits(const std::byte* at, size_t element);
void StoreBits(std::byte* at, size_t element, uint64_t bits);

}  // namespace axon
