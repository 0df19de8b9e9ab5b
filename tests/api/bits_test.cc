// SPDX-License-Identifier: Apache-2.0
// Sums of numbers whose order matters: every rank gets the same bits, and gets
// them again, with every algorithm, size and type, however the ranks are timed.
// Rows that combine in rank order give the bits of a sum in that order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "schedule/algorithms.h"
#include "tests/api/cases.h"
#include "tests/api/ranks.h"

namespace axon {
namespace {

// Numbers between 2^-20 and 2^20, of either sign.
double Number(int rank, size_t i) {
  uint64_t x = (static_cast<uint64_t>(rank) << 40 | i) + 1;
  x *= 0x9e3779b97f4a7c15ULL;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 32;
  const double mantissa = 1 + static_cast<double>(x % 1000003) / 1000003;
  const int exponent = static_cast<int>(x >> 40 & 31) - 16;
  return (x >> 50 & 1 ? -mantissa : mantissa) * std::ldexp(1.0, exponent);
}

template <typename T>
uint64_t BitsOf(T number) {
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(number));
  return bits;
}

// bfloat16 by cutting: any bits do.
uint64_t Bits(DataType type, int rank, size_t i) {
  const double number = Number(rank, i);
  if (type == DataType::kFloat64) return BitsOf(number);
  const uint64_t bits = BitsOf(static_cast<float>(number));
  return type == DataType::kFloat32 ? bits : bits >> 16;
}

template <typename T>
uint64_t SumInRankOrder(int ranks, size_t i) {
  auto sum = static_cast<T>(Number(0, i));
  for (int r = 1; r < ranks; ++r) sum += static_cast<T>(Number(r, i));
  return BitsOf(sum);
}

constexpr size_t kCounts[] = {1, 3, 12, 50, 1003, 5000, 70001};

using Outputs = std::vector<std::vector<std::byte>>;  // by rank

// The sums of all ranks, one call for each of kCounts, one after the other.
Outputs Sums(DataType type, int ranks) {
  const size_t element = ElementSize(type);
  Outputs outputs(static_cast<size_t>(ranks));
  OnThreads(ranks, [&](axonComm_t comm, int rank) {
    std::vector<std::byte>& all = outputs[static_cast<size_t>(rank)];
    for (const size_t count : kCounts) {
      std::vector<std::byte> in(count * element), out(count * element);
      for (size_t i = 0; i < count; ++i) {
        StoreBits(in.data() + i * element, element, Bits(type, rank, i));
      }
      EXPECT_AXON_OK(axonAllReduce(in.data(), out.data(), count,
                                   static_cast<axonDataType_t>(type), axonSum,
                                   comm, nullptr));
      all.insert(all.end(), out.begin(), out.end());
    }
  });
  return outputs;
}

void ExpectRankOrder(const std::vector<std::byte>& sums, DataType type,
                     int ranks) {
  const size_t element = ElementSize(type);
  const std::byte* at = sums.data();
  for (const size_t count : kCounts) {
    for (size_t i = 0; i < count; ++i, at += element) {
      ASSERT_EQ(LoadBits(at, element), type == DataType::kFloat64
                                           ? SumInRankOrder<double>(ranks, i)
                                           : SumInRankOrder<float>(ranks, i))
          << "element " << i << " of " << count << " " << Name(type);
    }
  }
}

class BitsTest : public testing::TestWithParam<const char*> {};

TEST_P(BitsTest, AreTheSameOnAllRanksAndInEveryRun) {
  const Algorithm& row = *FindAlgorithm(Collective::kAllReduce, GetParam());
  InProcesses(
      1,
      [&](int) {
        return std::vector<std::string>{
            absl::StrCat("AXON_ALGO=allreduce:", row.name)};
      },
      [&](int) {
        std::vector<DataType> types = {DataType::kFloat32, DataType::kFloat64};
        if (row.rank_order) types.push_back(DataType::kBfloat16);
        for (const DataType type : types) {
          for (const int ranks : {2, 3, 5}) {
            const Outputs first = Sums(type, ranks), again = Sums(type, ranks);
            for (const std::vector<std::byte>& sums : first) {
              ASSERT_TRUE(sums == first[0]) << Name(type) << " " << ranks;
            }
            ASSERT_TRUE(first == again) << Name(type) << " " << ranks;
            if (row.rank_order && type != DataType::kBfloat16) {
              ExpectRankOrder(first[0], type, ranks);
            }
          }
        }
      });
}

std::vector<const char*> AllReduceRows() {
  std::vector<const char*> names;
  for (const Algorithm& row : Algorithms()) {
    if (row.collective == Collective::kAllReduce) {
      names.push_back(row.name);
    }
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, BitsTest, testing::ValuesIn(AllReduceRows()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace axon
