// SPDX-License-Identifier: Apache-2.0
#include "engine/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace axon {
namespace {

using ::testing::ElementsAre;

std::byte* At(std::vector<int32_t>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

CollectiveCall IntegerSum() {
  CollectiveCall call;
  call.type = DataType::kInt32;
  call.reduce = FindReduce(DataType::kInt32, ReduceOp::kSum);
  return call;
}

// Blocks of three and of one element, the first at 4, the second at 0.
class PassOverBlocks : public testing::Test {
 protected:
  int64_t lengths_[2] = {3, 1};
  int64_t offsets_[2] = {4, 0};
  BlockedBuffer blocks_{0, lengths_, offsets_};
  Cutting cutting_ = Cut(3, 4, 1, 4096);
  std::vector<int32_t> memory_ = {1, 0, 0, 0, 2, 3, 4};
  std::vector<int32_t> packed_ = {10, 20, 30, 40};
  Pass pass_;

  Walker Blocks() {
    return Walker(At(memory_), blocks_, cutting_, {Buffer::kIn, 0, 2}, 0);
  }
};

TEST_F(PassOverBlocks, CopiesRunsOfDifferentLengths) {
  std::vector<int32_t> second(5, -1);
  pass_.AddSource(Blocks());
  pass_.AddDestination(Walker::Packed(At(packed_)));
  pass_.AddDestination(Walker::Packed(At(second)));
  pass_.Copy(Blocks(), 4);
  EXPECT_THAT(packed_, ElementsAre(2, 3, 4, 1));
  EXPECT_THAT(second, ElementsAre(2, 3, 4, 1, -1));
}

TEST_F(PassOverBlocks, CombinesIntoBlocksAndAMessage) {
  std::vector<int32_t> message(5, -1);
  pass_.AddSource(Blocks());
  pass_.AddSource(Walker::Packed(At(packed_)));
  pass_.AddDestination(Blocks());
  pass_.AddDestination(Walker::Packed(At(message)));
  CollectiveCall call = IntegerSum();
  call.reduce = FindReduce(DataType::kInt32, ReduceOp::kAvg);
  pass_.Combine(Blocks(), call, /*divisor=*/2);
  EXPECT_THAT(memory_, ElementsAre(20, 0, 0, 0, 6, 11, 17));
  EXPECT_THAT(message, ElementsAre(6, 11, 17, 20, -1));
}

TEST_F(PassOverBlocks, AppliesFactorsOnlyWhereTheCallHasThem) {
  CollectiveCall call = IntegerSum();
  call.reduce = FindReduce(DataType::kInt32, ReduceOp::kPreMulSum);
  call.has_factor = true;
  pass_.AddSource(Walker::Packed(At(packed_)), 3);
  pass_.AddDestination(Blocks());
  pass_.Combine(Blocks(), call, 0);
  EXPECT_THAT(memory_, ElementsAre(120, 0, 0, 0, 30, 60, 90));
}

// Sums of floats that cancel tell orders apart.
std::vector<float> SumOf(bool rank_order, int me) {
  std::vector<float> values[] = {{1e8F}, {1}, {-1e8F}};
  std::vector<float> sum(1);
  const int peers[] = {me == 0 ? 1 : 0, me == 2 ? 1 : 2};
  CollectiveCall call;
  call.type = DataType::kFloat32;
  call.reduce = FindReduce(DataType::kFloat32, ReduceOp::kSum);
  const auto walker = [&](int rank) {
    return Walker::Packed(reinterpret_cast<std::byte*>(values[rank].data()), 1);
  };
  Pass pass;
  pass.AddReduction(
      rank_order, me, walker(me), 1, 2, [&](size_t i) { return peers[i]; },
      [&](size_t i) { pass.AddSource(walker(peers[i])); });
  auto* to = reinterpret_cast<std::byte*>(sum.data());
  pass.AddDestination(Walker::Packed(to));
  pass.Combine(Walker::Packed(to, 1), call, 0);
  return sum;
}

TEST(PassOrder, IsThatOfTheRanksWhereItMatters) {
  // (1e8 + 1) - 1e8 loses the 1, whoever adds.
  for (int me : {0, 1, 2}) EXPECT_EQ(SumOf(true, me)[0], 0) << me;
  // Mine first: (-1e8 + 1e8) + 1.
  EXPECT_EQ(SumOf(false, 2)[0], 1);
}

TEST(PassMemory, ScratchIsAsLongAsTheSlice) {
  CollectiveCall call = IntegerSum();
  call.in_layout.length = 20;
  const Cutting cutting = Cut(20, 4, 1, 64);  // slices of 16 and 4 elements
  std::byte scratch[256];
  const Walker whole =
      MemoryOf(call, cutting, scratch, {Buffer::kScratch, 1, 2}, 0);
  EXPECT_EQ(whole.at(), scratch + 64);
  EXPECT_EQ(whole.left(), 32u);
  const Walker rest =
      MemoryOf(call, cutting, scratch, {Buffer::kScratch, 1, 2}, 1);
  EXPECT_EQ(rest.at(), scratch + 16);
  EXPECT_EQ(rest.left(), 8u);
}

}  // namespace
}  // namespace axon
