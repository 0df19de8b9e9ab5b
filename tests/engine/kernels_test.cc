// SPDX-License-Identifier: Apache-2.0
// clang-format off: this header comes before any of Highway.
#include "engine/kernels_families.h"
// clang-format on

#include "engine/kernels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "base/types.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"
#include "hwy/targets.h"
#include "tests/engine/kernels_reference.h"

namespace axon {
namespace {

constexpr size_t kMost = 4099;
constexpr uint8_t kGuard = 0xa5;
constexpr size_t kGuardBytes = 128;

std::vector<int64_t> Targets() {
  std::vector<int64_t> targets;
  const int64_t supported =
      (hwy::SupportedTargets() | HWY_STATIC_TARGET) & HWY_TARGETS;
  for (int bit = 0; bit < 63; ++bit) {
    const int64_t target = int64_t{1} << bit;
    if (supported & target) targets.push_back(target);
  }
  return targets;
}

std::vector<DataType> Types(bool (*wanted)(DataType)) {
  std::vector<DataType> types;
  for (int t = 0; t < kNumDataTypes; ++t) {
    if (wanted(DataType(t))) types.push_back(DataType(t));
  }
  return types;
}

// Holds an instruction set in force.
class TargetTest : public testing::Test {
 protected:
  static void Use(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    ASSERT_STREQ(KernelTarget(), hwy::TargetName(target));
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

using Parameters = std::tuple<int64_t, DataType>;
class KernelsTest : public TargetTest,
                    public testing::WithParamInterface<Parameters> {
 protected:
  void SetUp() override { Use(std::get<0>(GetParam())); }
  DataType type() const { return std::get<1>(GetParam()); }
  size_t size() const { return ElementSize(type()); }
};
class NarrowKernelsTest : public KernelsTest {};

std::string ParameterName(const testing::TestParamInfo<Parameters>& info) {
  return std::string(hwy::TargetName(std::get<0>(info.param))) + "_" +
         Name(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(All, KernelsTest,
                         testing::Combine(testing::ValuesIn(Targets()),
                                          testing::ValuesIn(Types([](DataType) {
                                            return true;
                                          }))),
                         ParameterName);
INSTANTIATE_TEST_SUITE_P(
    All, NarrowKernelsTest,
    testing::Combine(testing::ValuesIn(Targets()),
                     testing::ValuesIn(Types(IsNarrowFloat))),
    ParameterName);

uint64_t ElementAt(const uint8_t* base, size_t size, size_t i) {
  uint64_t bits = 0;
  std::memcpy(&bits, base + i * size, size);
  return bits;
}

// Memory between guards, beginning `skew` bytes off a cache line.
class Guarded {
 public:
  Guarded(size_t bytes, size_t skew)
      : bytes_(bytes), memory_(bytes + skew + 2 * kGuardBytes + 64, kGuard) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    begin_ = (address + kGuardBytes + 63) / 64 * 64 + skew - address;
  }
  uint8_t* data() { return memory_.data() + begin_; }
  bool intact() const {
    for (size_t i = 0; i < memory_.size(); ++i) {
      const bool inside = i >= begin_ && i < begin_ + bytes_;
      if (!inside && memory_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  size_t bytes_, begin_;
  std::vector<uint8_t> memory_;
};

// The inputs and the expected output of one reduction of kMost elements, of
// which the tests take the beginning.
struct Case {
  DataType type;
  ReduceOp op;
  int divisor;
  std::vector<double> factors;
  std::vector<std::vector<uint8_t>> inputs;
  std::vector<uint8_t> expected;
};

Case MakeCase(DataType type, ReduceOp op, int sources, size_t count) {
  static constexpr double kFactors[] = {1, -3, 0.7, 1e-3, 250, 1, 1e18, -0.3};
  const size_t size = ElementSize(type);
  Case c = {type, op, op == ReduceOp::kAvg ? sources + sources % 2 : 7,
            {},   {}, std::vector<uint8_t>(count * size)};
  c.inputs.assign(sources, std::vector<uint8_t>(count * size));
  for (int s = 0; s < sources; ++s) c.factors.push_back(kFactors[s % 8]);
  std::vector<uint64_t> element(sources);
  for (size_t i = 0; i < count; ++i) {
    for (int s = 0; s < sources; ++s) {
      element[s] = TestBits(type, i * 1000 + s);
      std::memcpy(&c.inputs[s][i * size], &element[s], size);
    }
    const uint64_t result =
        ReferenceReduce(type, op, element, c.factors, c.divisor);
    std::memcpy(&c.expected[i * size], &result, size);
  }
  return c;
}

// Runs the first `count` elements; with `in_place` the first destination is the
// last source.
void RunCase(const Case& c, int num_destinations, size_t count, size_t skew,
             bool in_place) {
  const size_t size = ElementSize(c.type);
  const size_t bytes = count * size;
  std::vector<Guarded> memory;
  std::vector<const void*> sources;
  std::vector<void*> destinations;
  for (const std::vector<uint8_t>& input : c.inputs) {
    memory.emplace_back(bytes, (memory.size() + 1) * skew);
    if (bytes != 0) std::memcpy(memory.back().data(), input.data(), bytes);
  }
  for (int t = in_place; t < num_destinations; ++t) {
    memory.emplace_back(bytes, t * skew);
  }
  const size_t num_sources = c.inputs.size();
  for (size_t i = 0; i < num_sources; ++i) {
    sources.push_back(memory[i].data());
  }
  for (int t = 0; t < num_destinations; ++t) {
    destinations.push_back(memory[num_sources + t - in_place].data());
  }
  FindReduce(c.type, c.op)({sources.data(), static_cast<int>(num_sources),
                            destinations.data(), num_destinations, count,
                            c.factors.data(), c.divisor});
  for (void* destination : destinations) {
    const auto* got = static_cast<const uint8_t*>(destination);
    if (std::memcmp(got, c.expected.data(), bytes) == 0) continue;
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(ElementAt(got, size, i), ElementAt(c.expected.data(), size, i))
          << Name(c.op) << " element " << i << " of " << count
          << ", first input " << ElementAt(c.inputs[0].data(), size, i);
    }
  }
  for (const Guarded& m : memory) ASSERT_TRUE(m.intact());
  for (size_t i = 0; i + in_place < num_sources; ++i) {
    ASSERT_EQ(std::memcmp(memory[i].data(), c.inputs[i].data(), bytes), 0);
  }
}

void RunShapes(const Case& c) {
  for (size_t count : {0, 1, 3, 7, 8, 15, 16, 17, 31, 64, 65, 1000, 4099}) {
    for (int destinations : {1, 2, 3}) {
      for (size_t skew : {0, 1, 3}) {
        for (bool in_place : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << c.inputs.size() << " sources, " << destinations
                       << " destinations, skew " << skew << ", in place "
                       << in_place);
          RunCase(c, destinations, count, skew, in_place);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(KernelsTest, ReducesAsThePlainRules) {
  for (int o = 0; o < kNumReduceOps; ++o) {
    const ReduceOp op = static_cast<ReduceOp>(o);
    if (!ReductionSupported(type(), op)) continue;
    for (int sources : {1, 2, 3, 5, 16}) {
      RunShapes(MakeCase(type(), op, sources, kMost));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(KernelsTest, ReducesManySources) {
  for (ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMin, ReduceOp::kPreMulSum}) {
    RunCase(MakeCase(type(), op, 256, 333), 2, 333, 1, false);
  }
}

TEST_P(KernelsTest, IgnoresWhatTheOperatorDoesNotUse) {
  // A divisor without kAvg, and null factors.
  Case c = MakeCase(type(), ReduceOp::kSum, 2, 100);
  c.factors.clear();
  c.divisor = 2;
  RunCase(c, 1, 100, 0, false);
}

TEST_P(KernelsTest, DoesNothingForNoElements) {
  const void* sources[] = {nullptr, nullptr};
  void* destinations[] = {nullptr};
  for (int n : {1, 2}) {
    FindReduce(type(), ReduceOp::kSum)({sources, n, destinations, 1, 0});
  }
}

// Every pattern of the type, through the lanes and back.
TEST_P(NarrowKernelsTest, KeepsEveryValue) {
  const size_t patterns = size_t{1} << (8 * size());
  std::vector<uint8_t> in(patterns * size()), out(patterns * size());
  for (uint64_t bits = 0; bits < patterns; ++bits) {
    std::memcpy(&in[bits * size()], &bits, size());
  }
  const void* sources[] = {in.data()};
  void* destinations[] = {out.data()};
  const double one = 1;
  FindReduce(type(), ReduceOp::kPreMulSum)(
      {sources, 1, destinations, 1, patterns, &one});
  for (uint64_t bits = 0; bits < patterns; ++bits) {
    const uint64_t want = IsNanBits(type(), bits) ? NanBits(type()) : bits;
    ASSERT_EQ(ElementAt(out.data(), size(), bits), want) << bits;
  }
}

// 1 * factor: a way to hand any float32 to the rounding.
uint64_t Rounded(DataType type, double value) {
  const uint64_t one = IsFloat(type) ? Encode(type, 1) : 1;
  uint64_t result = 0;
  const void* sources[] = {&one};
  void* destinations[] = {&result};
  FindReduce(type,
             ReduceOp::kPreMulSum)({sources, 1, destinations, 1, 1, &value});
  return result;
}

TEST_P(NarrowKernelsTest, RoundsToNearestEven) {
  const uint64_t sign = uint64_t{1} << (8 * size() - 1);
  for (uint64_t bits = 0; bits + 1 < sign; ++bits) {
    const double low = Decode(type(), bits), high = Decode(type(), bits + 1);
    if (!std::isfinite(low) || std::isnan(high)) break;
    // The step before an infinity goes on as the one before it did.
    const float half = static_cast<float>(
        std::isinf(high) ? low + (low - Decode(type(), bits - 1)) / 2
                         : low + (high - low) / 2);
    const uint64_t even = bits + bits % 2;
    ASSERT_EQ(Rounded(type(), half), even) << half;
    ASSERT_EQ(Rounded(type(), -half), even | sign) << half;
    ASSERT_EQ(Rounded(type(), std::nextafter(half, 0.0f)), bits) << half;
    ASSERT_EQ(Rounded(type(), std::nextafter(half, INFINITY)), bits + 1);
  }
}

TEST_P(NarrowKernelsTest, RoundsTheExtremes) {
  using Limits = std::numeric_limits<float>;
  for (float value : {0.0f, Limits::denorm_min(), Limits::min(), 1e-30f, 7e-9f,
                      1e-6f, 447.9f, 464.0f, 480.0f, 65519.9f, 65520.0f, 1e9f,
                      Limits::max(), Limits::infinity()}) {
    for (float v : {value, -value}) {
      EXPECT_EQ(Rounded(type(), v), Encode(type(), v)) << v;
    }
  }
  EXPECT_EQ(Rounded(type(), Limits::quiet_NaN()), NanBits(type()));
  EXPECT_EQ(Rounded(type(), -Limits::signaling_NaN()), NanBits(type()));
}

TEST(KernelsAloneTest, KnownValues) {
  using T = DataType;
  EXPECT_EQ(Rounded(T::kFloat8e4m3, 1e9f), 0x7e);  // 448
  EXPECT_EQ(Rounded(T::kFloat8e5m2, 1e9f), 0x7c);  // infinity
  EXPECT_EQ(Rounded(T::kFloat16, 65504.0f), 0x7bff);
  EXPECT_EQ(Rounded(T::kFloat16, 0x1p-24f), 0x0001);
  EXPECT_EQ(Rounded(T::kBfloat16, 3.14159265f), 0x4049);
  EXPECT_EQ(Rounded(T::kFloat8e4m3, 0.3f), 0x2a);   // 0.3125
  EXPECT_EQ(Rounded(T::kFloat8e5m2, -0.3f), 0xb5);  // -0.3125
}

TEST(KernelsAloneTest, FactorsOfIntegersWrap) {
  using T = DataType;
  EXPECT_EQ(Rounded(T::kUint64, 1e19), 10'000'000'000'000'000'000u);
  EXPECT_EQ(Rounded(T::kInt64, 1e19), 10'000'000'000'000'000'000u);
  EXPECT_EQ(Rounded(T::kUint64, 0x1p64 + 0x1p13), 0x2000u);
  EXPECT_EQ(Rounded(T::kInt64, -0x1p64 - 0x1p13), uint64_t{0} - 0x2000u);
  EXPECT_EQ(Rounded(T::kInt64, -0x1p63), uint64_t{1} << 63);
  EXPECT_EQ(Rounded(T::kUint8, 259.9), 3u);
  EXPECT_EQ(Rounded(T::kInt8, -1.9), 0xffu);
  EXPECT_EQ(Rounded(T::kInt32, INFINITY), 0u);
  EXPECT_EQ(Rounded(T::kInt32, NAN), 0u);
}

TEST(KernelsAloneTest, RefusesBitsOfFloatsOnly) {
  for (int t = 0; t < kNumDataTypes; ++t) {
    for (int o = 0; o < kNumReduceOps; ++o) {
      const ReduceOp op = static_cast<ReduceOp>(o);
      const bool bitwise = op == ReduceOp::kBitAnd || op == ReduceOp::kBitOr ||
                           op == ReduceOp::kBitXor;
      const DataType type = static_cast<DataType>(t);
      ASSERT_EQ(ReductionSupported(type, op), !(bitwise && IsFloat(type)));
      if (!bitwise || !IsFloat(type)) {
        ASSERT_NE(FindReduce(type, op), nullptr);
      }
    }
  }
}

TEST_F(TargetTest, CopiesEverySize) {
  std::vector<uint8_t> pattern(200'000);
  for (size_t i = 0; i < pattern.size(); ++i) {
    pattern[i] = static_cast<uint8_t>(TestBits(DataType::kUint8, i));
  }
  std::vector<size_t> sizes;
  for (size_t bytes = 0; bytes < 1200; ++bytes) sizes.push_back(bytes);
  for (size_t bytes : {4095, 4096, 65537, 199'990}) sizes.push_back(bytes);
  for (int64_t target : Targets()) {
    Use(target);
    for (size_t bytes : sizes) {
      for (size_t skew : {0, 1, 3}) {
        Guarded to(bytes, skew);
        CopyBytes(to.data(), pattern.data() + 2 * skew, bytes);
        ASSERT_EQ(std::memcmp(to.data(), pattern.data() + 2 * skew, bytes), 0);
        ASSERT_TRUE(to.intact()) << bytes;
      }
    }
  }
  CopyBytes(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace axon
