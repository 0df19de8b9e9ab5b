// SPDX-License-Identifier: Apache-2.0
// The collectives with parts of unequal size: empty parts, gaps, displacements
// out of order, in place, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "axon/axon.h"
#include "tests/api/case_buffer.h"
#include "tests/api/cases.h"
#include "tests/api/ranks.h"

namespace axon {
namespace {

// Where the parts of a buffer are.
struct Layout {
  std::vector<int64_t> counts, displs;
  int64_t total = 0;  // elements up to the end of the last part
};

// `gaps`: unused elements between the parts, and the last rank's part first.
Layout Lay(std::vector<int64_t> counts, bool gaps) {
  Layout layout;
  layout.counts = std::move(counts);
  const size_t n = layout.counts.size();
  layout.displs.resize(n);
  for (size_t k = 0; k < n; ++k) {
    const size_t r = gaps ? n - 1 - k : k;
    if (gaps) layout.total += 3;
    layout.displs[r] = layout.total;
    layout.total += layout.counts[r];
  }
  return layout;
}

std::vector<int64_t> Counts(int ranks, int kind) {
  std::vector<int64_t> counts;
  for (int r = 0; r < ranks; ++r) {
    const std::vector<int64_t> by_kind[] = {{0, 5, 1, 0, 17},
                                            {4001, 0, 12345, 7, 1},
                                            {0, 0, 0, 0, 0},
                                            {0, 200'003, 0, 3, 0}};
    counts.push_back(by_kind[kind][static_cast<size_t>(r % 5)]);
  }
  return counts;
}
constexpr int kKinds = 4;

struct Variant {
  int kind;
  bool gaps, in_place;
  Memory memory;
  DataType type;
};

std::vector<Variant> Variants() {
  std::vector<Variant> all;
  int n = 0;
  for (int kind = 0; kind < kKinds; ++kind) {
    for (const bool gaps : {false, true}) {
      for (const bool in_place : {false, true}) {
        const auto type = static_cast<DataType>(5 * n % axonNumTypes);
        all.push_back({kind, gaps, in_place,
                       n % 3 == 1 ? Memory::kMapped : Memory::kPrivate, type});
        ++n;
      }
    }
  }
  return all;
}

std::byte* At(CaseBuffer& buffer, const Layout& layout, int rank,
              DataType type) {
  return buffer.data() +
         static_cast<size_t>(layout.displs[static_cast<size_t>(rank)]) *
             ElementSize(type);
}

size_t Count(const Layout& layout, int rank) {
  return static_cast<size_t>(layout.counts[static_cast<size_t>(rank)]);
}

// Bytes of `buffer` that belong to no part and are not `fill` any more.
size_t ChangedGaps(CaseBuffer& buffer, const Layout& layout, DataType type,
                   std::byte fill) {
  const size_t element = ElementSize(type);
  std::vector<bool> used(static_cast<size_t>(layout.total));
  for (size_t r = 0; r < layout.counts.size(); ++r) {
    const auto from = used.begin() + layout.displs[r];
    std::fill(from, from + layout.counts[r], true);
  }
  size_t changed = 0;
  for (size_t i = 0; i < used.size() * element; ++i) {
    if (!used[i / element] && buffer.data()[i] != fill) ++changed;
  }
  return changed;
}

size_t Bytes(const Layout& layout, DataType type) {
  return static_cast<size_t>(layout.total) * ElementSize(type);
}

constexpr std::byte kUntouched{0x5c};

void AllGatherV(const Variant& v, axonComm_t comm, int rank, int ranks) {
  const Layout layout = Lay(Counts(ranks, v.kind), v.gaps);
  const size_t mine = Count(layout, rank);
  CaseBuffer in(v.memory, mine * ElementSize(v.type), 0);
  CaseBuffer out(v.memory, Bytes(layout, v.type), 0);
  std::fill_n(out.data(), Bytes(layout, v.type), kUntouched);
  std::byte* from = v.in_place ? At(out, layout, rank, v.type) : in.data();
  Repeat(v.type, from, mine, InputPeriod(v.type, ReduceOp::kSum, rank));
  ASSERT_AXON_OK(axonAllGatherV(from, out.data(), layout.counts.data(),
                                v.gaps ? layout.displs.data() : nullptr,
                                static_cast<axonDataType_t>(v.type), comm,
                                nullptr));
  for (int q = 0; q < ranks; ++q) {
    EXPECT_EQ(Differs(v.type, At(out, layout, q, v.type), Count(layout, q),
                      InputPeriod(v.type, ReduceOp::kSum, q), 0),
              "")
        << "part " << q;
  }
  EXPECT_EQ(ChangedGaps(out, layout, v.type, kUntouched), 0u);
  EXPECT_TRUE(in.intact() && out.intact());
}

void ReduceScatterV(const Variant& v, axonComm_t comm, int rank, int ranks) {
  const Layout layout = Lay(Counts(ranks, v.kind), v.gaps);
  const size_t mine = Count(layout, rank);
  CaseBuffer in(v.memory, Bytes(layout, v.type), 0);
  CaseBuffer out(v.memory, mine * ElementSize(v.type), 0);
  const auto period = InputPeriod(v.type, ReduceOp::kSum, rank);
  Repeat(v.type, in.data(), static_cast<size_t>(layout.total), period);
  std::byte* to = v.in_place ? At(in, layout, rank, v.type) : out.data();
  ASSERT_AXON_OK(axonReduceScatterV(in.data(), to, layout.counts.data(),
                                    v.gaps ? layout.displs.data() : nullptr,
                                    static_cast<axonDataType_t>(v.type),
                                    axonSum, comm, nullptr));
  const auto phase =
      static_cast<size_t>(layout.displs[static_cast<size_t>(rank)]);
  EXPECT_EQ(Differs(v.type, to, mine,
                    ReducedPeriod(v.type, ReduceOp::kSum, ranks), phase),
            "");
  if (!v.in_place) {
    EXPECT_EQ(Differs(v.type, in.data(), static_cast<size_t>(layout.total),
                      period, 0),
              "")
        << "the input was changed";
  }
  EXPECT_TRUE(in.intact() && out.intact());
}

// What rank `from` sends to rank `to`.
int64_t Sent(int from, int to, int kind) {
  constexpr int64_t kSizes[kKinds][3] = {
      {0, 1, 5}, {1000, 0, 40'001}, {0, 0, 0}, {0, 100'003, 2}};
  return kSizes[kind][(from + 2 * to) % 3];
}

void AlltoAllV(const Variant& v, axonComm_t comm, int rank, int ranks,
               axonStream_t stream) {
  std::vector<int64_t> sends, receives;
  for (int q = 0; q < ranks; ++q) {
    sends.push_back(Sent(rank, q, v.kind));
    receives.push_back(Sent(q, rank, v.kind));
  }
  const Layout to = Lay(sends, v.gaps), from = Lay(receives, !v.gaps);
  CaseBuffer in(v.memory, Bytes(to, v.type), 0);
  CaseBuffer out(v.memory, Bytes(from, v.type), 0);
  std::fill_n(out.data(), Bytes(from, v.type), kUntouched);
  for (int q = 0; q < ranks; ++q) {
    // Each pair has a period of its own.
    Repeat(v.type, At(in, to, q, v.type), Count(to, q),
           InputPeriod(v.type, ReduceOp::kSum, rank * 100 + q));
  }
  ASSERT_AXON_OK(
      axonAlltoAllV(in.data(), to.counts.data(), to.displs.data(), out.data(),
                    from.counts.data(), from.displs.data(),
                    static_cast<axonDataType_t>(v.type), comm, stream));
  if (stream != nullptr) {
    ASSERT_AXON_OK(axonStreamSynchronize(stream));
  }
  for (int q = 0; q < ranks; ++q) {
    EXPECT_EQ(Differs(v.type, At(out, from, q, v.type), Count(from, q),
                      InputPeriod(v.type, ReduceOp::kSum, q * 100 + rank), 0),
              "")
        << "part " << q;
  }
  EXPECT_EQ(ChangedGaps(out, from, v.type, kUntouched), 0u);
  EXPECT_TRUE(in.intact() && out.intact());
}

void RunVariants(axonComm_t comm, int rank, int ranks) {
  axonStream_t stream = nullptr;
  ASSERT_AXON_OK(axonStreamCreate(&stream));
  for (const Variant& v : Variants()) {
    SCOPED_TRACE(testing::Message()
                 << "rank " << rank << " kind " << v.kind << " gaps " << v.gaps
                 << " in place " << v.in_place << " " << Name(v.type));
    AllGatherV(v, comm, rank, ranks);
    ReduceScatterV(v, comm, rank, ranks);
    AlltoAllV(v, comm, rank, ranks, v.in_place ? stream : nullptr);
  }
  EXPECT_AXON_OK(axonStreamDestroy(stream));
}

class UnevenTest : public testing::TestWithParam<int> {};

TEST_P(UnevenTest, OnThreads) {
  OnThreads(GetParam(), [&](axonComm_t comm, int rank) {
    RunVariants(comm, rank, GetParam());
  });
}

TEST_P(UnevenTest, InProcesses) {
  OnProcesses(
      GetParam(), {"AXON_OUTBOX_SIZE=256K"},
      [&](axonComm_t comm, int rank) { RunVariants(comm, rank, GetParam()); });
}

INSTANTIATE_TEST_SUITE_P(Ranks, UnevenTest, testing::Values(1, 2, 3, 5),
                         testing::PrintToStringParamName());

class UnevenRefusalsTest : public testing::Test {
 protected:
  Comms comms_{1};
  axonComm_t comm_ = comms_[0];
  std::vector<float> a_ = std::vector<float>(100), b_ = a_;
};

TEST_F(UnevenRefusalsTest, Arrays) {
  EXPECT_AXON_ERROR(axonAllGatherV(a_.data(), b_.data(), nullptr, nullptr,
                                   axonFloat32, comm_, nullptr),
                    axonInvalidArgument, "counts is NULL");
  const int64_t negative = -4, one = 1;
  EXPECT_AXON_ERROR(axonAllGatherV(a_.data(), b_.data(), &negative, nullptr,
                                   axonFloat32, comm_, nullptr),
                    axonInvalidArgument, "has -4 elements");
  EXPECT_AXON_ERROR(axonReduceScatterV(a_.data(), b_.data(), &one, &negative,
                                       axonFloat32, axonSum, comm_, nullptr),
                    axonInvalidArgument, "displacement -4");
  EXPECT_AXON_ERROR(axonAllGatherV(a_.data(), nullptr, &one, nullptr,
                                   axonFloat32, comm_, nullptr),
                    axonInvalidArgument, "recvbuff is NULL");
  EXPECT_AXON_ERROR(axonReduceScatterV(a_.data(), b_.data(), &one, nullptr,
                                       axonFloat32, axonBitAnd, comm_, nullptr),
                    axonInvalidArgument, "not defined for float32");
}

TEST_F(UnevenRefusalsTest, SizesThatOverflow) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_AXON_ERROR(axonAllGatherV(a_.data(), b_.data(), &most, nullptr,
                                   axonFloat32, comm_, nullptr),
                    axonInvalidArgument, "fit an address space");
  const int64_t one = 1;
  EXPECT_AXON_ERROR(axonAllGatherV(a_.data(), b_.data(), &one, &most, axonInt8,
                                   comm_, nullptr),
                    axonInvalidArgument, "fit an address space");
  // Packed places whose sum is too large.
  const Comms three(3);
  const int64_t huge[] = {most, most, most};
  EXPECT_AXON_ERROR(axonAllGatherV(a_.data(), b_.data(), huge, nullptr,
                                   axonInt8, three[0], nullptr),
                    axonInvalidArgument, "fit an address space");
}

TEST_F(UnevenRefusalsTest, Overlaps) {
  const Comms two(2);
  const int64_t counts[] = {4, 4}, overlapping[] = {0, 3}, apart[] = {0, 4};
  EXPECT_AXON_ERROR(axonAllGatherV(a_.data(), b_.data(), counts, overlapping,
                                   axonFloat32, two[0], nullptr),
                    axonInvalidArgument, "displacements 0 and 3 overlap");
  // In place is rank 0's own part, not the other's, and not a bit beside it.
  EXPECT_AXON_ERROR(axonAllGatherV(b_.data() + 4, b_.data(), counts, nullptr,
                                   axonFloat32, two[0], nullptr),
                    axonInvalidArgument, "overlap");
  EXPECT_AXON_ERROR(axonAllGatherV(b_.data() + 1, b_.data(), counts, nullptr,
                                   axonFloat32, two[0], nullptr),
                    axonInvalidArgument, "overlap");
  EXPECT_AXON_ERROR(axonReduceScatterV(b_.data(), b_.data() + 4, counts, apart,
                                       axonFloat32, axonSum, two[0], nullptr),
                    axonInvalidArgument, "overlap");
  EXPECT_AXON_ERROR(axonAlltoAllV(a_.data(), counts, apart, b_.data(), counts,
                                  overlapping, axonFloat32, two[0], nullptr),
                    axonInvalidArgument, "displacements 0 and 3 overlap");
  EXPECT_AXON_ERROR(axonAlltoAllV(b_.data(), counts, apart, b_.data(), counts,
                                  apart, axonFloat32, two[0], nullptr),
                    axonInvalidArgument, "part 0 of sendbuff");
}

// The communicator stays usable after every refusal.
TEST_F(UnevenRefusalsTest, LeaveTheCommunicatorUsable) {
  const int64_t negative = -1, ten = 10;
  EXPECT_AXON_ERROR(axonAlltoAllV(a_.data(), &negative, nullptr, b_.data(),
                                  &ten, nullptr, axonFloat32, comm_, nullptr),
                    axonInvalidArgument, "-1");
  std::iota(a_.begin(), a_.end(), 1.0f);
  EXPECT_AXON_OK(axonAlltoAllV(a_.data(), &ten, nullptr, b_.data(), &ten,
                               nullptr, axonFloat32, comm_, nullptr));
  EXPECT_TRUE(std::equal(a_.begin(), a_.begin() + 10, b_.begin()));
  EXPECT_EQ(b_[10], 0);
}

}  // namespace
}  // namespace axon
