// SPDX-License-Identifier: Apache-2.0
#include "perf/number.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace axon::perf {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const Type& Of(axonDataType_t id) { return Types()[id]; }

TEST(NumberTest, TypesStandAtTheirNumber) {
  ASSERT_EQ(Types().size(), size_t{axonNumTypes});
  for (int i = 0; i < axonNumTypes; ++i) EXPECT_EQ(Types()[i].id, i);
}

TEST(NumberTest, EveryNarrowFloatSurvivesDecodingAndEncoding) {
  for (const axonDataType_t id :
       {axonFloat16, axonBfloat16, axonFloat8e4m3, axonFloat8e5m2}) {
    const Type& type = Of(id);
    int nans = 0;
    for (uint64_t bits = 0; bits < uint64_t{1} << 8 * type.size; ++bits) {
      const double value = Decode(type, bits);
      if (std::isnan(value)) {
        ++nans;
        EXPECT_TRUE(std::isnan(Decode(type, Encode(type, value))));
      } else {
        ASSERT_EQ(Encode(type, value), bits) << type.name << " " << value;
      }
    }
    const int nan_mantissas = (1 << type.mantissa_bits) - 1;
    EXPECT_EQ(nans, type.finite ? 2 : 2 * nan_mantissas) << type.name;
  }
}

TEST(NumberTest, WideFloatsAreThoseOfTheProcessor) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (std::isnan(value)) continue;
    ASSERT_EQ(Encode(Of(axonFloat64), value), std::bit_cast<uint64_t>(value));
    ASSERT_EQ(Decode(Of(axonFloat64), std::bit_cast<uint64_t>(value)), value);
  }
}

TEST(NumberTest, FloatsAreRoundedAsTheProcessorDoes) {
  std::mt19937_64 random(2);
  std::uniform_int_distribution<int> exponent(-155, 135);
  std::uniform_real_distribution<double> mantissa(-2, 2);
  for (int i = 0; i < 100000; ++i) {
    const double value = std::ldexp(mantissa(random), exponent(random));
    const auto rounded = static_cast<float>(value);
    ASSERT_EQ(Encode(Of(axonFloat32), value), std::bit_cast<uint32_t>(rounded))
        << value;
    ASSERT_EQ(Decode(Of(axonFloat32), std::bit_cast<uint32_t>(rounded)),
              rounded);
  }
}

TEST(NumberTest, RoundsToNearestEvenAndToTheEndsOfTheRange) {
  struct Case {
    axonDataType_t type;
    double value;
    uint64_t bits;
  };
  for (const Case& c : {
           Case{axonFloat16, 1, 0x3c00},
           Case{axonFloat16, 65504, 0x7bff},
           Case{axonFloat16, 65519, 0x7bff},
           Case{axonFloat16, 65520, 0x7c00},
           Case{axonFloat16, std::ldexp(1, -24), 1},
           Case{axonFloat16, std::ldexp(1, -25), 0},
           Case{axonFloat16, std::ldexp(3, -25), 2},
           Case{axonBfloat16, 1 + std::ldexp(1, -8), 0x3f80},
           Case{axonBfloat16, 1 + std::ldexp(3, -8), 0x3f82},
           Case{axonBfloat16, -2, 0xc000},
           Case{axonFloat8e4m3, 448, 0x7e},
           Case{axonFloat8e4m3, 1e9, 0x7e},
           Case{axonFloat8e4m3, -kInfinity, 0xfe},
           Case{axonFloat8e4m3, kNan, 0x7f},
           Case{axonFloat8e5m2, 57344, 0x7b},
           Case{axonFloat8e5m2, 61439, 0x7b},
           Case{axonFloat8e5m2, 61440, 0x7c},
           Case{axonFloat8e5m2, -0.0, 0x80},
       }) {
    EXPECT_EQ(Encode(Of(c.type), c.value), c.bits)
        << Of(c.type).name << " " << c.value;
  }
}

TEST(NumberTest, UlpDistanceCountsNeighboursAcrossZero) {
  const Type& half = Of(axonFloat16);
  EXPECT_EQ(UlpDistance(half, 0x3c00, 0x3c00), 0u);
  EXPECT_EQ(UlpDistance(half, 0x3c00, 0x3bff), 1u);
  EXPECT_EQ(UlpDistance(half, 0x8001, 0x0001), 2u);
  EXPECT_EQ(UlpDistance(half, 0x8000, 0x0000), 0u);
  EXPECT_EQ(UlpDistance(half, 0x7e00, 0x7e01), 0u);
  EXPECT_GT(UlpDistance(half, 0x7e00, 0x7c00), 1000000u);
}

TEST(NumberTest, WrapExtendsTheSignOfSignedTypesOnly) {
  EXPECT_EQ(Wrap(Of(axonInt8), 0x1ff), -1);
  EXPECT_EQ(Wrap(Of(axonUint8), 0x1ff), 255);
  EXPECT_EQ(Wrap(Of(axonInt32), 0x80000000), -2147483648LL);
  EXPECT_EQ(Wrap(Of(axonUint32), 0x180000000), 2147483648LL);
}

}  // namespace
}  // namespace axon::perf
