// SPDX-License-Identifier: Apache-2.0
#include "base/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace axon {
namespace {

template <typename T>
double Read(T value, DataType type) {
  return ReadScalar(&value, type);
}

TEST(ScalarTest, Integers) {
  EXPECT_EQ(Read<int8_t>(-128, DataType::kInt8), -128);
  EXPECT_EQ(Read<uint8_t>(255, DataType::kUint8), 255);
  EXPECT_EQ(Read<int32_t>(INT32_MIN, DataType::kInt32), -2147483648.0);
  EXPECT_EQ(Read<uint32_t>(UINT32_MAX, DataType::kUint32), 4294967295.0);
  EXPECT_EQ(Read<int64_t>(-(int64_t{1} << 53), DataType::kInt64),
            -9007199254740992.0);
  EXPECT_EQ(Read<uint64_t>(uint64_t{1} << 63, DataType::kUint64),
            9223372036854775808.0);
}

TEST(ScalarTest, WideFloats) {
  EXPECT_EQ(Read(0.1F, DataType::kFloat32), static_cast<double>(0.1F));
  EXPECT_EQ(Read(-0.1, DataType::kFloat64), -0.1);
  EXPECT_TRUE(std::isnan(Read(NAN, DataType::kFloat32)));
}

TEST(ScalarTest, HalfFloats) {
  const auto half = [](uint16_t bits) {
    return Read(bits, DataType::kFloat16);
  };
  EXPECT_EQ(half(0x3c00), 1);
  EXPECT_EQ(half(0xc000), -2);
  EXPECT_EQ(half(0x7bff), 65504);
  EXPECT_EQ(half(0x0001), std::ldexp(1, -24));
  EXPECT_EQ(half(0x0400), std::ldexp(1, -14));
  EXPECT_TRUE(std::signbit(half(0x8000)));
  EXPECT_EQ(half(0x7c00), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(half(0x7c01)));
  const auto brain = [](uint16_t bits) {
    return Read(bits, DataType::kBfloat16);
  };
  EXPECT_EQ(brain(0x3f80), 1);
  EXPECT_EQ(brain(0x0001), std::ldexp(1, -133));
  EXPECT_EQ(brain(0xff80), -std::numeric_limits<double>::infinity());
}

TEST(ScalarTest, EightBitFloats) {
  const auto e4m3 = [](uint8_t bits) {
    return Read(bits, DataType::kFloat8e4m3);
  };
  EXPECT_EQ(e4m3(0x38), 1);
  EXPECT_EQ(e4m3(0x7e), 448);  // the largest: there is no infinity
  EXPECT_TRUE(std::isnan(e4m3(0x7f)));
  EXPECT_TRUE(std::isnan(e4m3(0xff)));
  EXPECT_EQ(e4m3(0x01), std::ldexp(1, -9));
  const auto e5m2 = [](uint8_t bits) {
    return Read(bits, DataType::kFloat8e5m2);
  };
  EXPECT_EQ(e5m2(0x3c), 1);
  EXPECT_EQ(e5m2(0x7b), 57344);
  EXPECT_EQ(e5m2(0x7c), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(e5m2(0x7d)));
  EXPECT_EQ(e5m2(0x01), std::ldexp(1, -16));
}

}  // namespace
}  // namespace axon
