// SPDX-License-Identifier: Apache-2.0
#include "base/types.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "include/axon/axon.h"

namespace axon {
namespace {

static_assert(kNumDataTypes == axonNumTypes);
static_assert(static_cast<int>(DataType::kUint8) == axonUint8);
static_assert(static_cast<int>(DataType::kFloat16) == axonFloat16);
static_assert(static_cast<int>(DataType::kFloat32) == axonFloat32);
static_assert(static_cast<int>(DataType::kFloat64) == axonFloat64);
static_assert(static_cast<int>(DataType::kBfloat16) == axonBfloat16);
static_assert(static_cast<int>(DataType::kFloat8e5m2) == axonFloat8e5m2);
static_assert(static_cast<int>(ReduceOp::kAvg) == axonAvg);
static_assert(static_cast<int>(ReduceOp::kBitXor) == axonBitXor);

template <typename T>
std::set<std::string> Names(int count) {
  std::set<std::string> names;
  for (int i = 0; i < count; ++i) names.insert(Name(static_cast<T>(i)));
  return names;
}

TEST(TypesTest, NamesAreAllThereAndDiffer) {
  EXPECT_EQ(Names<DataType>(kNumDataTypes).size(), size_t{kNumDataTypes});
  EXPECT_EQ(Names<ReduceOp>(kNumReduceOps).size(), size_t{kNumReduceOps});
  EXPECT_EQ(Names<Collective>(kNumCollectives).size(), size_t{kNumCollectives});
  EXPECT_STREQ(Name(DataType::kBfloat16), "bfloat16");
  EXPECT_STREQ(Name(ReduceOp::kPreMulSum), "premulsum");
  EXPECT_STREQ(Name(Collective::kReduceScatter), "reduce_scatter");
}

// The number in a type's name is its width; e4m3 and e5m2 stand for 8 bits.
TEST(TypesTest, SizesAgreeWithTheNames) {
  for (int i = 0; i < kNumDataTypes; ++i) {
    const auto type = static_cast<DataType>(i);
    const std::string name = Name(type);
    const size_t digit = name.find_first_of("0123456789");
    EXPECT_EQ(ElementSize(type) * 8, std::stoul(name.substr(digit))) << name;
    EXPECT_EQ(IsFloat(type), name.find("float") != std::string::npos) << name;
    EXPECT_EQ(IsNarrowFloat(type), IsFloat(type) && ElementSize(type) < 4)
        << name;
  }
}

}  // namespace
}  // namespace axon
