// SPDX-License-Identifier: Apache-2.0
// What calls refuse before anything happens: handles, roots, types, operators,
// pointers, sizes and overlaps; each text names the value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "axon/axon.h"
#include "tests/api/ranks.h"

namespace axon {
namespace {

class RefusalsTest : public testing::Test {
 protected:
  Comms comms_{3};
  axonComm_t comm_ = comms_[1];
  std::vector<float> a_ = std::vector<float>(100), b_ = a_;
  float* const in_ = a_.data();
  float* const out_ = b_.data();
};

TEST_F(RefusalsTest, Communicators) {
  alignas(16) char junk[512] = {};
  auto* const wrong = reinterpret_cast<axonComm_t>(junk);
  int number = 0;
  EXPECT_AXON_ERROR(axonBarrier(nullptr, nullptr), axonInvalidArgument,
                    "communicator is NULL");
  EXPECT_AXON_ERROR(axonBarrier(wrong, nullptr), axonInvalidArgument,
                    "not a live one");
  EXPECT_AXON_ERROR(axonSend(in_, 1, axonFloat, 0, wrong, nullptr),
                    axonInvalidArgument, "not a live one");
  EXPECT_AXON_ERROR(axonCommCount(wrong, &number), axonInvalidArgument,
                    "not a live one");
  EXPECT_AXON_ERROR(axonCommUserRank(nullptr, &number), axonInvalidArgument,
                    "NULL");
  EXPECT_AXON_ERROR(axonCommDestroy(wrong), axonInvalidArgument,
                    "not a live one");
  EXPECT_AXON_ERROR(axonCommAbort(wrong), axonInvalidArgument,
                    "not a live one");
  EXPECT_AXON_OK(axonCommDestroy(nullptr));
  EXPECT_AXON_OK(axonCommAbort(nullptr));
}

// It looks like a communicator, as one may that another thread has ended.
TEST_F(RefusalsTest, TextOfACommunicatorThatIsNotLive) {
  alignas(16) char junk[512] = {};
  std::memcpy(junk, comm_, sizeof(uint64_t));
  EXPECT_AXON_ERROR(axonBarrier(nullptr, nullptr), axonInvalidArgument, "NULL");
  EXPECT_EQ(axonGetLastError(reinterpret_cast<axonComm_t>(junk)), LastError());
}

TEST_F(RefusalsTest, Streams) {
  alignas(16) char junk[256] = {};
  auto* const wrong = reinterpret_cast<axonStream_t>(junk);
  EXPECT_AXON_ERROR(axonBarrier(comm_, wrong), axonInvalidArgument,
                    "the stream is not one of axonStreamCreate");
  EXPECT_AXON_ERROR(axonSend(in_, 1, axonFloat, 0, comm_, wrong),
                    axonInvalidArgument, "stream");
  const int64_t counts[3] = {};
  EXPECT_AXON_ERROR(axonAlltoAllV(in_, counts, nullptr, out_, counts, nullptr,
                                  axonFloat, comm_, wrong),
                    axonInvalidArgument, "stream");
}

TEST_F(RefusalsTest, Roots) {
  for (const int root : {-1, 3, 1 << 30}) {
    const std::string text =
        "root " + std::to_string(root) + " is not a rank of 0 to 2";
    EXPECT_AXON_ERROR(
        axonBroadcast(in_, out_, 1, axonFloat, root, comm_, nullptr),
        axonInvalidArgument, text);
    EXPECT_AXON_ERROR(
        axonReduce(in_, out_, 1, axonFloat, axonSum, root, comm_, nullptr),
        axonInvalidArgument, text);
    EXPECT_AXON_ERROR(axonGather(in_, out_, 1, axonFloat, root, comm_, nullptr),
                      axonInvalidArgument, text);
    EXPECT_AXON_ERROR(
        axonScatter(in_, out_, 1, axonFloat, root, comm_, nullptr),
        axonInvalidArgument, text);
  }
}

TEST_F(RefusalsTest, TypesAndOperators) {
  for (const int type : {-1, 12, 1000}) {
    EXPECT_AXON_ERROR(
        axonAllGather(in_, out_, 1, static_cast<axonDataType_t>(type), comm_,
                      nullptr),
        axonInvalidArgument, "data type " + std::to_string(type));
  }
  for (const int op : {-1, 8, 0x7fffffff}) {
    EXPECT_AXON_ERROR(
        axonAllReduce(in_, out_, 1, axonFloat, static_cast<axonRedOp_t>(op),
                      comm_, nullptr),
        axonInvalidArgument, "operator " + std::to_string(op));
  }
  for (const axonRedOp_t op : {axonBitAnd, axonBitOr, axonBitXor}) {
    for (const axonDataType_t type :
         {axonHalf, axonFloat, axonDouble, axonBfloat16, axonFloat8e4m3,
          axonFloat8e5m2}) {
      EXPECT_AXON_ERROR(
          axonReduceScatter(in_, out_, 1, type, op, comm_, nullptr),
          axonInvalidArgument, "bitwise operators work on integers only");
    }
  }
}

TEST_F(RefusalsTest, OperatorsMadeForSomethingElse) {
  float scalar = 2;
  axonRedOp_t op;
  ASSERT_AXON_OK(axonRedOpCreatePreMulSum(&op, &scalar, axonFloat,
                                          axonScalarHostImmediate, comm_));
  EXPECT_AXON_ERROR(axonAllReduce(in_, out_, 1, axonDouble, op, comm_, nullptr),
                    axonInvalidArgument,
                    "was made for float32, not for float64");
  EXPECT_AXON_ERROR(
      axonAllReduce(in_, out_, 1, axonFloat, op, comms_[0], nullptr),
      axonInvalidArgument, "for this communicator");
  EXPECT_AXON_ERROR(axonRedOpDestroy(op, comms_[0]), axonInvalidArgument,
                    "was not made for this communicator");
  EXPECT_AXON_OK(axonRedOpDestroy(op, comm_));
  EXPECT_AXON_ERROR(axonRedOpDestroy(op, comm_), axonInvalidArgument,
                    "or is destroyed");
  EXPECT_AXON_ERROR(axonAllReduce(in_, out_, 1, axonFloat, op, comm_, nullptr),
                    axonInvalidArgument, "operator");
  EXPECT_AXON_ERROR(axonRedOpCreatePreMulSum(&op, nullptr, axonFloat,
                                             axonScalarHostImmediate, comm_),
                    axonInvalidArgument, "scalar must not be NULL");
  EXPECT_AXON_ERROR(
      axonRedOpCreatePreMulSum(&op, &scalar, axonFloat,
                               static_cast<axonScalarResidence_t>(7), comm_),
      axonInvalidArgument, "residence 7");
  EXPECT_AXON_ERROR(axonRedOpDestroy(axonSum, comm_), axonInvalidArgument,
                    "operator 0");
}

// However many there are, none takes the number of a living one.
TEST_F(RefusalsTest, MoreOperatorsThanNumbers) {
  constexpr size_t kMost = 0xfe00;
  std::vector<axonRedOp_t> ops(kMost);
  float scalar = 0;
  for (axonRedOp_t& op : ops) {
    scalar += 1;
    ASSERT_AXON_OK(axonRedOpCreatePreMulSum(&op, &scalar, axonFloat,
                                            axonScalarHostImmediate, comm_));
  }
  axonRedOp_t more;
  EXPECT_AXON_ERROR(axonRedOpCreatePreMulSum(&more, &scalar, axonFloat,
                                             axonScalarHostImmediate, comm_),
                    axonInvalidArgument, "65024 operators");
  EXPECT_AXON_OK(axonRedOpDestroy(ops[7], comm_));
  scalar = 100;
  ASSERT_AXON_OK(axonRedOpCreatePreMulSum(&more, &scalar, axonFloat,
                                          axonScalarHostImmediate, comm_));
  EXPECT_EQ(more, ops[7]);
}

TEST(OperatorsTest, KeepTheirScalarsWhenTheNumbersHaveGoneRound) {
  const Comms comms(1);
  axonRedOp_t kept, other;
  float scalar = 3;
  ASSERT_AXON_OK(axonRedOpCreatePreMulSum(&kept, &scalar, axonFloat,
                                          axonScalarHostImmediate, comms[0]));
  for (int i = 0; i < 0xfe00; ++i) {
    scalar = 5;
    ASSERT_AXON_OK(axonRedOpCreatePreMulSum(&other, &scalar, axonFloat,
                                            axonScalarHostImmediate, comms[0]));
    ASSERT_NE(other, kept);
    ASSERT_AXON_OK(axonRedOpDestroy(other, comms[0]));
  }
  float in = 2, out = 0;
  ASSERT_AXON_OK(
      axonAllReduce(&in, &out, 1, axonFloat, kept, comms[0], nullptr));
  EXPECT_EQ(out, 6);
}

TEST_F(RefusalsTest, Pointers) {
  EXPECT_AXON_ERROR(
      axonAllReduce(nullptr, out_, 2, axonFloat, axonSum, comm_, nullptr),
      axonInvalidArgument, "sendbuff is NULL but 8 bytes are needed");
  EXPECT_AXON_ERROR(axonAllGather(in_, nullptr, 2, axonFloat, comm_, nullptr),
                    axonInvalidArgument,
                    "recvbuff is NULL but 24 bytes are needed");
  EXPECT_AXON_ERROR(axonBcast(nullptr, 1, axonFloat, 0, comm_, nullptr),
                    axonInvalidArgument, "NULL");
  EXPECT_AXON_ERROR(axonScatter(nullptr, out_, 1, axonFloat, 1, comm_, nullptr),
                    axonInvalidArgument,
                    "sendbuff is NULL but 12 bytes are needed");
}

TEST_F(RefusalsTest, SizesThatOverflow) {
  const size_t most = std::numeric_limits<size_t>::max();
  for (const size_t count : {most, most / 4, most / 8, most / 12}) {
    const std::string text = std::to_string(count) + " elements of float32";
    EXPECT_AXON_ERROR(
        axonAllGather(in_, out_, count, axonFloat, comm_, nullptr),
        axonInvalidArgument, text);
    EXPECT_AXON_ERROR(
        axonReduceScatter(in_, out_, count, axonFloat, axonSum, comm_, nullptr),
        axonInvalidArgument, text);
    EXPECT_AXON_ERROR(axonAlltoAll(in_, out_, count, axonFloat, comm_, nullptr),
                      axonInvalidArgument, text);
  }
}

TEST_F(RefusalsTest, Overlaps) {
  const auto overlap = [](axonResult_t result) {
    EXPECT_EQ(result, axonInvalidArgument);
    EXPECT_THAT(LastError(), testing::HasSubstr("overlap"));
  };
  overlap(axonAllReduce(in_, in_ + 1, 2, axonFloat, axonSum, comm_, nullptr));
  overlap(axonAllReduce(in_ + 1, in_, 2, axonFloat, axonSum, comm_, nullptr));
  // In place for rank 1 is block 1.
  overlap(axonAllGather(in_, in_, 2, axonFloat, comm_, nullptr));
  overlap(axonAllGather(in_ + 4, in_, 2, axonFloat, comm_, nullptr));
  overlap(axonAllGather(in_ + 3, in_, 2, axonFloat, comm_, nullptr));
  overlap(axonReduceScatter(in_, in_, 2, axonFloat, axonSum, comm_, nullptr));
  overlap(
      axonReduceScatter(in_, in_ + 1, 2, axonFloat, axonSum, comm_, nullptr));
  overlap(axonAlltoAll(in_, in_, 2, axonFloat, comm_, nullptr));
  overlap(axonAlltoAll(in_, in_ + 5, 2, axonFloat, comm_, nullptr));
  overlap(axonGather(in_, in_, 2, axonFloat, 1, comm_, nullptr));
  overlap(axonScatter(in_, in_, 2, axonFloat, 1, comm_, nullptr));
  overlap(axonBroadcast(in_, in_ + 1, 2, axonFloat, 1, comm_, nullptr));
}

// Neighbours are not overlaps, and a refused call is as if it was never made.
TEST_F(RefusalsTest, LeaveTheCommunicatorUsable) {
  EXPECT_EQ(axonBcast(in_, 1, axonFloat, 7, comm_, nullptr),
            axonInvalidArgument);
  a_.assign(100, 1);
  ASSERT_AXON_OK(axonGroupStart());
  for (int r = 0; r < 3; ++r) {
    float* mine = in_ + 4 * r;
    EXPECT_AXON_OK(axonAllReduce(mine, mine + 2, 2, axonFloat, axonSum,
                                 comms_[r], nullptr));
  }
  ASSERT_AXON_OK(axonGroupEnd());
  for (const int i : {2, 3, 6, 7, 10, 11}) EXPECT_EQ(in_[i], 3);
  for (const int i : {0, 1, 4, 5, 8, 9, 12}) EXPECT_EQ(in_[i], 1);
  EXPECT_THAT(axonGetLastError(comm_), testing::HasSubstr("root 7"));
}

}  // namespace
}  // namespace axon
