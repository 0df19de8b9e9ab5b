// SPDX-License-Identifier: Apache-2.0
#include "tests/api/cases.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include "absl/strings/str_format.h"
#include "tests/api/case_buffer.h"
#include "tests/engine/kernels_reference.h"

namespace axon {
namespace {

// Blocks of `count` elements in each buffer, and how they lie in place: words
// of axon.h, not of the library.
struct Shape {
  int in = 1, out = 1;    // blocks; 0: the rank has no such buffer
  int in_at = 0;          // in place: `in` is this block of `out`
  int out_at = 0;         // in place: `out` is this block of `in`
  bool in_place = false;  // whether it can be
};

Shape ShapeOf(const Case& c, int rank, int n) {
  const bool root = rank == c.root;
  switch (c.collective) {
    case Collective::kAllReduce:
      return {1, 1, 0, 0, true};
    case Collective::kBroadcast:
      return {root ? 1 : 0, 1, 0, 0, root};
    case Collective::kReduce:
      return {1, root ? 1 : 0, 0, 0, root};
    case Collective::kAllGather:
      return {1, n, rank, 0, true};
    case Collective::kReduceScatter:
      return {n, 1, 0, rank, true};
    case Collective::kAlltoAll:
      return {n, n, 0, 0, false};
    case Collective::kGather:
      return {1, root ? n : 0, rank, 0, root};
    case Collective::kScatter:
      return {root ? n : 0, 1, 0, rank, root};
    case Collective::kBarrier:
      break;
  }
  return {0, 0, 0, 0, false};
}

double Factor(DataType type, int rank) {
  constexpr double kFloats[] = {2, 0.5, -1, 4};
  constexpr double kIntegers[] = {2, 3, 1, 7};
  return IsFloat(type) ? kFloats[rank % 4] : kIntegers[rank % 4];
}

// Compares block `b` of the result with what must stand there.
std::string CheckBlock(const Case& c, const std::byte* block, int b, int rank,
                       int ranks) {
  const auto mine = static_cast<size_t>(rank) * c.count;
  switch (c.collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
      return Differs(c.type, block, c.count, ReducedPeriod(c.type, c.op, ranks),
                     0);
    case Collective::kReduceScatter:
      return Differs(c.type, block, c.count, ReducedPeriod(c.type, c.op, ranks),
                     mine);
    case Collective::kBroadcast:
      return Differs(c.type, block, c.count, InputPeriod(c.type, c.op, c.root),
                     0);
    case Collective::kScatter:
      return Differs(c.type, block, c.count, InputPeriod(c.type, c.op, c.root),
                     mine);
    case Collective::kAllGather:
    case Collective::kGather:
      return Differs(c.type, block, c.count, InputPeriod(c.type, c.op, b), 0);
    case Collective::kAlltoAll:
      return Differs(c.type, block, c.count, InputPeriod(c.type, c.op, b),
                     mine);
    case Collective::kBarrier:
      break;
  }
  return "";
}

axonResult_t CallReduction(const Case& c, const void* in, void* out,
                           axonRedOp_t op, axonComm_t comm,
                           axonStream_t stream) {
  const auto type = static_cast<axonDataType_t>(c.type);
  switch (c.collective) {
    case Collective::kAllReduce:
      return axonAllReduce(in, out, c.count, type, op, comm, stream);
    case Collective::kReduce:
      return axonReduce(in, out, c.count, type, op, c.root, comm, stream);
    default:
      return axonReduceScatter(in, out, c.count, type, op, comm, stream);
  }
}

axonResult_t Reduce(const Case& c, const void* in, void* out, int rank,
                    axonComm_t comm, axonStream_t stream) {
  if (c.op != ReduceOp::kPreMulSum) {
    return CallReduction(c, in, out, static_cast<axonRedOp_t>(c.op), comm,
                         stream);
  }
  const double factor = Factor(c.type, rank);
  std::byte scalar[8];
  StoreBits(
      scalar, ElementSize(c.type),
      IsFloat(c.type) ? Encode(c.type, factor) : static_cast<uint64_t>(factor));
  axonRedOp_t op;
  axonResult_t result =
      axonRedOpCreatePreMulSum(&op, scalar, static_cast<axonDataType_t>(c.type),
                               axonScalarHostImmediate, comm);
  if (result != axonSuccess) return result;
  result = CallReduction(c, in, out, op, comm, stream);
  // "Calls already made with `op` are not affected."
  const axonResult_t destroyed = axonRedOpDestroy(op, comm);
  return result != axonSuccess ? result : destroyed;
}

axonResult_t Call(const Case& c, const void* in, void* out, int rank,
                  axonComm_t comm, axonStream_t stream) {
  const auto type = static_cast<axonDataType_t>(c.type);
  switch (c.collective) {
    case Collective::kBroadcast:
      if (in == out) {
        return axonBcast(out, c.count, type, c.root, comm, stream);
      }
      return axonBroadcast(in, out, c.count, type, c.root, comm, stream);
    case Collective::kAllGather:
      return axonAllGather(in, out, c.count, type, comm, stream);
    case Collective::kAlltoAll:
      return axonAlltoAll(in, out, c.count, type, comm, stream);
    case Collective::kGather:
      return axonGather(in, out, c.count, type, c.root, comm, stream);
    case Collective::kScatter:
      return axonScatter(in, out, c.count, type, c.root, comm, stream);
    case Collective::kBarrier:
      return axonBarrier(comm, stream);
    default:
      return Reduce(c, in, out, rank, comm, stream);
  }
}

// The buffers of a rank; in place one is a part of the other.
struct Buffers {
  Buffers(const Case& c, const Shape& shape)
      : block(c.count * ElementSize(c.type)),
        in_place(c.in_place && shape.in_place),
        first(c.memory,
              block * static_cast<size_t>(
                          in_place ? std::max(shape.in, shape.out) : shape.in),
              c.shift),
        second(c.memory, in_place ? 0 : block * static_cast<size_t>(shape.out),
               c.shift / 2) {
    in = first.data();
    out = second.data();
    if (in_place) {
      in = first.data() + static_cast<size_t>(shape.in_at) * block;
      out = first.data() + static_cast<size_t>(shape.out_at) * block;
    }
    // What a rank does not use may be NULL.
    if (shape.in == 0 || (block == 0 && c.null_if_empty)) in = nullptr;
    if (shape.out == 0 || (block == 0 && c.null_if_empty)) out = nullptr;
  }
  size_t block;
  bool in_place;
  CaseBuffer first, second;
  std::byte* in;
  std::byte* out;
};

std::string Check(const Case& c, const Shape& shape, const Buffers& b, int rank,
                  int ranks) {
  for (int block = 0; block < shape.out && b.block > 0; ++block) {
    const std::string wrong = CheckBlock(
        c, b.out + static_cast<size_t>(block) * b.block, block, rank, ranks);
    if (!wrong.empty()) return absl::StrFormat("block %d: %s", block, wrong);
  }
  if (!b.in_place && b.in != nullptr) {
    const std::string wrong =
        Differs(c.type, b.in, c.count * static_cast<size_t>(shape.in),
                InputPeriod(c.type, c.op, rank), 0);
    if (!wrong.empty()) return "the input was changed: " + wrong;
  }
  if (!b.first.intact() || !b.second.intact()) {
    return "bytes beside a buffer were changed";
  }
  return "";
}

}  // namespace

std::string Case::Text() const {
  return absl::StrFormat(
      "%s of %u %s, %s, root %d, %s, %s memory, shifted by %u",
      Name(collective), count, Name(type), Name(op), root,
      in_place ? "in place" : "apart",
      memory == Memory::kMapped ? "mapped" : "private", shift);
}

std::string RunCase(const Case& c, axonComm_t comm, int rank, int ranks,
                    axonStream_t stream) {
  const Shape shape = ShapeOf(c, rank, ranks);
  Buffers b(c, shape);
  Repeat(c.type, b.in, c.count * static_cast<size_t>(shape.in),
         InputPeriod(c.type, c.op, rank));
  axonResult_t result = Call(c, b.in, b.out, rank, comm, stream);
  if (result == axonSuccess && stream != nullptr) {
    result = axonStreamSynchronize(stream);
  }
  std::string wrong = result == axonSuccess
                          ? Check(c, shape, b, rank, ranks)
                          : std::string(axonGetLastError(nullptr));
  if (wrong.empty()) return "";
  return absl::StrFormat("rank %d of %d, %s: %s", rank, ranks, c.Text(), wrong);
}

uint64_t InputBits(DataType type, ReduceOp op, int rank, size_t i) {
  const uint64_t seed = (i % kPeriod) * 1000 + static_cast<uint64_t>(rank);
  const bool ordered = op == ReduceOp::kMax || op == ReduceOp::kMin;
  if ((type != DataType::kFloat32 && type != DataType::kFloat64) || ordered) {
    return TestBits(type, seed);
  }
  const uint64_t any = TestBits(DataType::kUint32, seed);
  if (op == ReduceOp::kProd) {
    constexpr double kFactors[] = {1, -1, 2, 0.5, 4, 0.25, -2, 1};
    return Encode(type, kFactors[any % 8]);
  }
  return Encode(type, static_cast<double>(any % 2001) - 1000);
}

const std::vector<uint64_t>& ReducedPeriod(DataType type, ReduceOp op,
                                           int ranks) {
  static std::mutex mutex;
  static std::map<std::tuple<DataType, ReduceOp, int>, std::vector<uint64_t>>
      made;
  const std::lock_guard<std::mutex> lock(mutex);
  std::vector<uint64_t>& period = made[{type, op, ranks}];
  if (!period.empty()) return period;
  std::vector<double> factors;
  for (int r = 0; r < ranks; ++r) factors.push_back(Factor(type, r));
  for (size_t i = 0; i < kPeriod; ++i) {
    std::vector<uint64_t> inputs;
    for (int r = 0; r < ranks; ++r) {
      inputs.push_back(InputBits(type, op, r, i));
    }
    period.push_back(ReferenceReduce(type, op, inputs, factors, ranks));
  }
  return period;
}

std::vector<uint64_t> InputPeriod(DataType type, ReduceOp op, int rank) {
  std::vector<uint64_t> period;
  for (size_t i = 0; i < kPeriod; ++i) {
    period.push_back(InputBits(type, op, rank, i));
  }
  return period;
}

bool Reduces(Collective collective) {
  return collective == Collective::kAllReduce ||
         collective == Collective::kReduce ||
         collective == Collective::kReduceScatter;
}

bool HasRoot(Collective collective) {
  return collective == Collective::kBroadcast ||
         collective == Collective::kReduce ||
         collective == Collective::kGather ||
         collective == Collective::kScatter;
}

std::vector<DataType> AllTypes() {
  std::vector<DataType> types;
  for (int t = 0; t < axonNumTypes; ++t) {
    types.push_back(static_cast<DataType>(t));
  }
  return types;
}

std::vector<ReduceOp> OpsOf(DataType type) {
  std::vector<ReduceOp> ops;
  for (int o = 0; o < kNumReduceOps; ++o) {
    const auto op = static_cast<ReduceOp>(o);
    const bool bits = op == ReduceOp::kBitAnd || op == ReduceOp::kBitOr ||
                      op == ReduceOp::kBitXor;
    if (!bits || !IsFloat(type)) ops.push_back(op);
  }
  return ops;
}

std::vector<Collective> AllCollectives() {
  std::vector<Collective> all;
  for (int c = 0; c < kNumCollectives; ++c) {
    all.push_back(static_cast<Collective>(c));
  }
  return all;
}

}  // namespace axon
