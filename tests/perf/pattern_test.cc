// SPDX-License-Identifier: Apache-2.0
#include "perf/pattern.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace axon::perf {
namespace {

using Kind = Operator::Kind;

constexpr size_t kCount = 997;

// `a` op `b`, rounded to the type.
uint64_t Combine(const Type& type, Kind kind, uint64_t a, uint64_t b) {
  if (type.is_float()) {
    const double x = Decode(type, a), y = Decode(type, b);
    return Encode(type, kind == Kind::kProd  ? x * y
                        : kind == Kind::kMax ? std::fmax(x, y)
                        : kind == Kind::kMin ? std::fmin(x, y)
                                             : x + y);
  }
  const int64_t x = Wrap(type, a), y = Wrap(type, b);
  const bool less = type.kind == Type::Kind::kSigned
                        ? x < y
                        : static_cast<uint64_t>(x) < static_cast<uint64_t>(y);
  switch (kind) {
    case Kind::kProd:
      return a * b;
    case Kind::kMax:
      return less ? b : a;
    case Kind::kMin:
      return less ? a : b;
    case Kind::kBitAnd:
      return a & b;
    case Kind::kBitOr:
      return a | b;
    case Kind::kBitXor:
      return a ^ b;
    default:
      return a + b;
  }
}

uint64_t Scaled(const Type& type, uint64_t bits, uint64_t scalar) {
  return type.is_float()
             ? Encode(type, Decode(type, bits) * Decode(type, scalar))
             : bits * scalar;
}

uint64_t Divided(const Type& type, uint64_t bits, int ranks) {
  if (type.is_float()) return Encode(type, Decode(type, bits) / ranks);
  const int64_t sum = Wrap(type, bits);
  return type.kind == Type::Kind::kSigned ? static_cast<uint64_t>(sum / ranks)
                                          : static_cast<uint64_t>(sum) / ranks;
}

// What all ranks' inputs reduce to, rounded after every step, in any order.
std::vector<std::byte> ReduceInOrder(const Type& type, const Operator& op,
                                     const std::vector<int>& order,
                                     Pattern* pattern) {
  const int ranks = static_cast<int>(order.size());
  std::vector<std::byte> input(kCount * type.size), result(input.size());
  for (int i = 0; i < ranks; ++i) {
    pattern->Fill(order[i], 0, kCount, input.data());
    for (size_t at = 0; at < input.size(); at += type.size) {
      uint64_t bits = Load(type, &input[at]);
      if (op.kind == Kind::kMulSum) {
        bits = Scaled(type, bits, pattern->Scalar(order[i]));
      }
      if (i > 0) {
        bits = Combine(type, op.kind, Load(type, &result[at]), bits);
      }
      if (i == ranks - 1 && op.kind == Kind::kAvg) {
        bits = Divided(type, bits, ranks);
      }
      Store(type, bits, &result[at]);
    }
  }
  return result;
}

std::vector<Operator> OperatorsOf(const Type& type) {
  std::vector<Operator> operators = Operators();
  if (type.is_float()) {
    std::erase_if(operators, [](const Operator& op) { return op.bitwise(); });
  }
  return operators;
}

class PatternTest : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  const Type& type() const { return Types()[std::get<0>(GetParam())]; }
  int ranks() const { return std::get<1>(GetParam()); }
};

TEST_P(PatternTest, ReductionIsExactInEveryOrder) {
  std::mt19937 random(7);
  std::vector<int> order(ranks());
  std::iota(order.begin(), order.end(), 0);
  for (const Operator& op : OperatorsOf(type())) {
    Pattern pattern(type(), op, ranks());
    for (int trial = 0; trial < 3; ++trial) {
      const auto result = ReduceInOrder(type(), op, order, &pattern);
      EXPECT_EQ(pattern.Wrong(Pattern::kReduced, 0, kCount, result.data()), 0u)
          << op.name;
      std::shuffle(order.begin(), order.end(), random);
    }
  }
}

TEST_P(PatternTest, CountsWrongElements) {
  for (const Operator& op : OperatorsOf(type())) {
    Pattern pattern(type(), op, ranks());
    // Past the end of a period, at an odd address.
    constexpr size_t kMany = Pattern::kPeriod + 100;
    std::vector<std::byte> memory(kMany * type().size + 1);
    std::byte* data = &memory[1];
    pattern.Fill(0, 5, kMany, data);
    EXPECT_EQ(pattern.Wrong(0, 5, kMany, data), 0u) << op.name;
    EXPECT_GT(pattern.Wrong(0, 6, kMany, data), kMany / 20) << op.name;
    for (const size_t i : {size_t{0}, Pattern::kPeriod - 5, kMany - 1}) {
      data[(i + 1) * type().size - 1] ^= std::byte{0x40};
    }
    EXPECT_EQ(pattern.Wrong(0, 5, kMany, data), 3u) << op.name;
  }
}

TEST_P(PatternTest, RanksAndPlacesDifferWithoutAnOperator) {
  Pattern pattern(type(), kNoOperator, 4);
  std::vector<std::byte> data(kCount * type().size);
  pattern.Fill(2, 0, kCount, data.data());
  EXPECT_EQ(pattern.Wrong(2, 0, kCount, data.data()), 0u);
  EXPECT_GT(pattern.Wrong(1, 0, kCount, data.data()), kCount * 9 / 10);
  EXPECT_GT(pattern.Wrong(2, 4096, kCount, data.data()), kCount * 9 / 10);
}

// The result shows it if one rank's part is another's.
TEST(PatternRanksTest, EveryRankMatters) {
  for (const Type& type : Types()) {
    for (const Operator& op : OperatorsOf(type)) {
      for (int ranks = 2; ranks <= 5; ++ranks) {
        Pattern pattern(type, op, ranks);
        for (int missing = 0; missing < ranks; ++missing) {
          std::vector<int> order(ranks);
          std::iota(order.begin(), order.end(), 0);
          order[missing] = (missing + 1) % ranks;
          const auto result = ReduceInOrder(type, op, order, &pattern);
          EXPECT_GT(pattern.Wrong(Pattern::kReduced, 0, kCount, result.data()),
                    kCount / 100)
              << type.name << " " << op.name << " " << missing << " of "
              << ranks;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TypesAndRanks, PatternTest,
                         testing::Combine(testing::Range(0, int{axonNumTypes}),
                                          testing::Values(1, 2, 3, 5, 16, 65)),
                         [](const auto& info) {
                           return std::string(
                                      Types()[std::get<0>(info.param)].name) +
                                  "_" + std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace axon::perf
