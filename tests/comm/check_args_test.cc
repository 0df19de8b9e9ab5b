// SPDX-License-Identifier: Apache-2.0
#include "comm/check_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace axon {
namespace {

using testing::HasSubstr;

float buffer[1000];

CollectiveArgs Args(Collective collective, const void* in, void* out,
                    size_t count) {
  CollectiveArgs args;
  args.collective = collective;
  args.type = DataType::kFloat32;
  args.in = in;
  args.out = out;
  args.count = count;
  return args;
}

std::string Error(const CollectiveArgs& args, int ranks = 4, int rank = 1) {
  const absl::Status status = CheckCollective(args, ranks, rank);
  if (!status.ok()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
  return std::string(status.message());
}

TEST(CheckArgsTest, OrdinaryCallsPass) {
  for (int c = 0; c < kNumCollectives; ++c) {
    EXPECT_EQ(
        Error(Args(static_cast<Collective>(c), buffer, buffer + 500, 100)), "");
  }
}

TEST(CheckArgsTest, ExactlyInPlacePasses) {
  EXPECT_EQ(Error(Args(Collective::kAllReduce, buffer, buffer, 100)), "");
  // Rank 1's part of the output.
  EXPECT_EQ(Error(Args(Collective::kAllGather, buffer + 100, buffer, 100)), "");
  EXPECT_EQ(Error(Args(Collective::kReduceScatter, buffer, buffer + 100, 100)),
            "");
}

TEST(CheckArgsTest, OtherOverlapsAreRefused) {
  for (const CollectiveArgs& args :
       {Args(Collective::kAllReduce, buffer, buffer + 1, 100),
        Args(Collective::kAllReduce, buffer + 99, buffer, 100),
        Args(Collective::kAllGather, buffer, buffer, 100),
        Args(Collective::kAllGather, buffer + 200, buffer, 100),
        Args(Collective::kReduceScatter, buffer, buffer, 100),
        Args(Collective::kAlltoAll, buffer, buffer, 100)}) {
    EXPECT_THAT(Error(args), HasSubstr("sendbuff and recvbuff overlap"));
  }
  // Side by side is apart; and nothing overlaps nothing.
  EXPECT_EQ(Error(Args(Collective::kAllReduce, buffer, buffer + 100, 100)), "");
  EXPECT_EQ(Error(Args(Collective::kAlltoAll, buffer, buffer, 0)), "");
}

TEST(CheckArgsTest, NullPointers) {
  EXPECT_THAT(Error(Args(Collective::kAllReduce, nullptr, buffer, 10)),
              HasSubstr("sendbuff is NULL but 40 bytes are needed"));
  EXPECT_THAT(Error(Args(Collective::kAllGather, buffer, nullptr, 10)),
              HasSubstr("recvbuff is NULL but 160 bytes are needed"));
  EXPECT_EQ(Error(Args(Collective::kAllReduce, nullptr, nullptr, 0)), "");
  // Only the root of a reduce needs somewhere to put the result.
  EXPECT_EQ(Error(Args(Collective::kReduce, buffer, nullptr, 10)), "");
  EXPECT_THAT(Error(Args(Collective::kReduce, buffer, nullptr, 10), 4, 0),
              HasSubstr("recvbuff is NULL"));
}

TEST(CheckArgsTest, Roots) {
  CollectiveArgs args = Args(Collective::kBroadcast, buffer, buffer, 10);
  for (const int root : {-1, 4, 1000}) {
    args.root = root;
    EXPECT_THAT(Error(args), HasSubstr("root " + std::to_string(root) +
                                       " is not a rank of 0 to 3"));
  }
  args.collective = Collective::kAllReduce;  // which has no root
  EXPECT_EQ(Error(args), "");
}

TEST(CheckArgsTest, SizesThatOverflow) {
  const size_t most = std::numeric_limits<size_t>::max();
  for (const size_t count : {most, most / 4, most / 8 + 1, most / 16}) {
    EXPECT_THAT(Error(Args(Collective::kAlltoAll, buffer, buffer + 1, count)),
                HasSubstr("more bytes than an address space has"))
        << count;
  }
}

TEST(CheckArgsTest, OperatorsOfTypes) {
  CollectiveArgs args = Args(Collective::kAllReduce, buffer, buffer, 10);
  args.op = ReduceOp::kBitAnd;
  EXPECT_THAT(Error(args), HasSubstr("bit"));
  args.type = DataType::kInt32;
  EXPECT_EQ(Error(args), "");
  args = Args(Collective::kAllGather, buffer, buffer + 500, 10);
  args.op = ReduceOp::kBitAnd;  // nothing is reduced
  EXPECT_EQ(Error(args), "");
}

CollectiveArgs Gather(std::vector<int64_t> lengths,
                      std::vector<int64_t> offsets, const void* in) {
  CollectiveArgs args = Args(Collective::kAllGather, in, buffer, 0);
  args.lengths = std::move(lengths);
  args.offsets = std::move(offsets);
  return args;
}

TEST(CheckArgsTest, UnequalParts) {
  const float* const apart = buffer + 900;
  EXPECT_EQ(Error(Gather({1, 2, 0, 3}, {0, 1, 1, 3}, apart)), "");
  EXPECT_EQ(Error(Gather({1, 2, 0, 3}, {0, 1, 1, 3}, buffer + 1)), "");
  EXPECT_THAT(Error(Gather({1, -2, 0, 3}, {0, 1, 1, 3}, apart)),
              HasSubstr("part 1 of recvbuff has -2 elements"));
  EXPECT_THAT(Error(Gather({1, 2, 0, 3}, {0, 1, 1, -3}, apart)),
              HasSubstr("part 3 of recvbuff has 3 elements at displacement "
                        "-3"));
  EXPECT_THAT(Error(Gather({1, 2, 0, 3}, {0, 1, 1, 2}, apart)),
              HasSubstr("parts of recvbuff at displacements 1 and 2 overlap"));
  EXPECT_THAT(Error(Gather({1, 2, 0, 3}, {0, 1, 1, 3}, buffer + 4)),
              HasSubstr("sendbuff and recvbuff (part 3) overlap"));
  EXPECT_THAT(Error(Gather({1, 2, 0, 3}, {0, 1, 1, 3}, nullptr)),
              HasSubstr("sendbuff is NULL"));
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Error(Gather({1, 2, 0, huge}, {0, 1, 1, huge}, apart)),
              HasSubstr("fit an address space"));
}

TEST(CheckArgsTest, AlltoAllV) {
  const std::vector<int64_t> lengths = {2, 3}, offsets = {0, 2};
  const Parts send{"sendbuff", buffer, lengths, offsets};
  Parts recv{"recvbuff", buffer + 5, lengths, offsets};
  EXPECT_EQ(CheckAlltoAllV(send, recv, DataType::kFloat32), absl::OkStatus());
  recv.base = buffer + 4;
  EXPECT_THAT(CheckAlltoAllV(send, recv, DataType::kFloat32).message(),
              HasSubstr("part 1 of sendbuff and part 0 of recvbuff overlap"));
  const std::vector<int64_t> crossed = {0, 1};
  recv = {"recvbuff", buffer + 100, lengths, crossed};
  EXPECT_THAT(CheckAlltoAllV(send, recv, DataType::kFloat32).message(),
              HasSubstr("parts of recvbuff at displacements 0 and 1"));
  // Parts to send may overlap: they are only read.
  const Parts shared{"sendbuff", buffer, lengths, crossed};
  recv = {"recvbuff", buffer + 100, lengths, offsets};
  EXPECT_EQ(CheckAlltoAllV(shared, recv, DataType::kFloat32), absl::OkStatus());
}

TEST(CheckArgsTest, Messages) {
  MessageArgs message{true, buffer, 40, 3};
  EXPECT_EQ(CheckMessage(message, 10, DataType::kFloat32, 4), absl::OkStatus());
  EXPECT_THAT(CheckMessage(message, 10, DataType::kFloat32, 3).message(),
              HasSubstr("peer 3 is not a rank of 0 to 2"));
  message.peer = -1;
  EXPECT_FALSE(CheckMessage(message, 10, DataType::kFloat32, 3).ok());
  message = {true, nullptr, 0, 0};
  EXPECT_EQ(CheckMessage(message, 0, DataType::kFloat32, 1), absl::OkStatus());
  EXPECT_THAT(CheckMessage(message, 1, DataType::kFloat32, 1).message(),
              HasSubstr("the buffer is NULL"));
  EXPECT_FALSE(CheckMessage(message, SIZE_MAX / 2, DataType::kFloat32, 1).ok());
}

TEST(CheckArgsTest, PackedOffsetsAddUp) {
  EXPECT_EQ(PackedOffsets({3, 0, 5, 1}), (std::vector<int64_t>{0, 3, 3, 8}));
  EXPECT_TRUE(PackedOffsets({}).empty());
}

}  // namespace
}  // namespace axon
