// SPDX-License-Identifier: Apache-2.0
// Every algorithm of the table over channels that are as late, as short of
// credits and as short of space as they may be.
#include "engine/channel_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/engine/channel_calls.h"

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kSeeds = 5;  // for each rank count, size and placement

// What a seed decides.
ChannelCase Draw(const Algorithm& row, int ranks, size_t count, bool in_place,
                 uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return static_cast<int>(random() % n); };
  constexpr DataType kTypes[] = {DataType::kInt8, DataType::kInt32,
                                 DataType::kFloat32, DataType::kFloat64,
                                 DataType::kBfloat16};
  // Factors of ranks need the contributions themselves: the last is for
  // algorithms that combine them in rank order.
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax,
                               ReduceOp::kPreMulSum};
  ChannelCase c;
  c.algorithm = &row;
  c.ranks = ranks;
  c.root = below(static_cast<uint64_t>(ranks));
  c.count = count;
  c.in_place = in_place;
  c.type = kTypes[below(5)];
  c.op = kOps[below(row.rank_order ? 4 : 3)];
  c.credits = 1 + below(3);
  c.most_polls = below(4);
  c.lines = 1 + below(3);
  c.seed = seed;
  return c;
}

class ChannelRunTest : public testing::TestWithParam<const Algorithm*> {};

TEST_P(ChannelRunTest, EveryRankCountAndSize) {
  uint64_t seed = 0;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    if (!Applies(*GetParam(), ranks)) continue;
    for (size_t count : {0, 1, 7, 129, 1531}) {
      for (bool in_place : {false, true}) {
        for (uint64_t i = 0; i < kSeeds; ++i) {
          const ChannelCase c =
              Draw(*GetParam(), ranks, count, in_place, ++seed);
          ChannelCalls calls(c);
          calls.Run();
          for (int r = 0; r < ranks; ++r) {
            ASSERT_EQ(calls.result(r), Poll::kReady) << Describe(c) << "\n"
                                                     << calls.status(r) << "\n"
                                                     << calls.Positions();
          }
          ASSERT_EQ(calls.difference(), "") << Describe(c);
          ASSERT_EQ(calls.transport().unread(), 0) << Describe(c);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ChannelRunTest, testing::ValuesIn(AllRows()),
                         [](const auto& info) { return NameOf(*info.param); });

// Two ranks, of which the test plays the second.
class ChannelRunWithPeer : public testing::Test {
 protected:
  ChannelRunWithPeer() : transport_(2, {256, 1, 0, 1}) {
    setup_.schedule = &schedule_;
    setup_.call.type = DataType::kInt32;
    setup_.call.in = reinterpret_cast<const std::byte*>(in_);
    setup_.call.out = reinterpret_cast<std::byte*>(out_);
    setup_.call.in_layout.length = setup_.call.out_layout.length = 2;
    setup_.call.reduce = FindReduce(DataType::kInt32, ReduceOp::kSum);
    setup_.cutting = Cut(2, 4, 1, 256);
  }
  Channel& peer() { return transport_.channel(1, 0); }
  void SendFromPeer(std::vector<int32_t> values) {
    ASSERT_EQ(TrySend(peer(), {reinterpret_cast<std::byte*>(values.data()),
                               values.size() * 4}),
              Poll::kReady);
  }

  static constexpr Span kInSpan{Buffer::kIn, 0, 1};
  static constexpr Span kOutSpan{Buffer::kOut, 0, 1};

  FakeTransport transport_;
  ChannelRun run_{0, transport_.channels(0)};
  Schedule schedule_;
  ChannelRun::Setup setup_;
  int32_t in_[2] = {3, 4};
  int32_t out_[2] = {-1, -1};
};

TEST_F(ChannelRunWithPeer, RefusesAMessageOfAnotherSize) {
  schedule_.Recv(1, kOutSpan);
  run_.Start(setup_);
  SendFromPeer({1});
  EXPECT_EQ(run_.Step(), Poll::kFailed);
  EXPECT_THAT(std::string(run_.status().message()),
              AllOf(HasSubstr("rank 1 sent a message of 4 bytes"),
                    HasSubstr("rank 0 awaits 8"),
                    HasSubstr("slice 1 of 1, operation 1 of 1")));
  EXPECT_EQ(out_[0], -1) << "wrote what did not belong there";
  EXPECT_EQ(run_.Step(), Poll::kFailed) << "came back to life";
}

TEST_F(ChannelRunWithPeer, TellsWhetherItTookAStep) {
  schedule_.Recv(1, kOutSpan);
  run_.Start(setup_);
  EXPECT_EQ(run_.Step(), Poll::kPending);
  EXPECT_FALSE(run_.TookStep());
  SendFromPeer({8, 9});
  EXPECT_EQ(run_.Step(), Poll::kReady);
  EXPECT_TRUE(run_.TookStep());
  EXPECT_FALSE(run_.TookStep());
  EXPECT_EQ(out_[1], 9);
}

// The only credit is taken: the reduction must not wait for it, since the peer
// may wait for its own message to be read.
TEST_F(ChannelRunWithPeer, ReducesBeforeItMaySendTheResult) {
  schedule_.Send(1, kInSpan);
  schedule_.RecvReduce(1, kInSpan, kOutSpan);
  schedule_.Send(1, kOutSpan);
  run_.Start(setup_);
  SendFromPeer({10, 20});
  EXPECT_EQ(run_.Step(), Poll::kPending);
  EXPECT_EQ(out_[1], 24);
  EXPECT_EQ(peer().Flush(), Poll::kReady) << "did not give the space back";
  Bytes message;
  ASSERT_EQ(peer().TryPeek(&message), Poll::kReady);
  peer().Pop();
  EXPECT_EQ(run_.Step(), Poll::kReady);
  int32_t result[2];
  ASSERT_EQ(TryRecv(peer(), {reinterpret_cast<std::byte*>(result), 8}),
            Poll::kReady);
  EXPECT_EQ(result[0], 13);
  EXPECT_EQ(result[1], 24);
}

TEST_F(ChannelRunWithPeer, ReducesWhatItHasItself) {
  schedule_.Copy(kInSpan, kOutSpan);
  schedule_.Reduce(kInSpan, kOutSpan, /*completes=*/true);
  run_.Start(setup_);
  EXPECT_EQ(run_.Step(), Poll::kReady);
  EXPECT_EQ(out_[0], 6);
  EXPECT_EQ(out_[1], 8);
}

// What a call that failed had begun is forgotten when the next one starts.
TEST_F(ChannelRunWithPeer, StartsAfreshAfterAFailure) {
  Schedule two;
  two.Recv(1, kOutSpan);
  setup_.schedule = &two;
  run_.Start(setup_);
  SendFromPeer({1});
  ASSERT_EQ(run_.Step(), Poll::kFailed);
  Bytes message;
  ASSERT_EQ(transport_.channel(0, 1).TryPeek(&message), Poll::kReady);
  transport_.channel(0, 1).Pop();
  run_.Start(setup_);
  EXPECT_TRUE(run_.status().ok());
  SendFromPeer({5, 6});
  EXPECT_EQ(run_.Step(), Poll::kReady);
  EXPECT_EQ(out_[1], 6);
}

TEST_F(ChannelRunWithPeer, GivesOthersTheirTurn) {
  for (int i = 0; i < 40; ++i) schedule_.Copy(kInSpan, kOutSpan);
  run_.Start(setup_);
  int steps = 0;
  while (run_.Step() == Poll::kPending && steps < 100) {
    EXPECT_TRUE(run_.TookStep());
    ++steps;
  }
  EXPECT_GT(steps, 1);
  EXPECT_LT(steps, 40);
}

TEST(MaxPieceBytesTest, MakesTheLongestMessageFit) {
  Schedule few, many;
  few.Send(1, {Buffer::kIn, 0, 1});
  many.Send(0, {Buffer::kIn, 0, 3});
  many.Recv(0, {Buffer::kOut, 0, 7});
  CollectiveCall call;
  EXPECT_EQ(MaxPieceBytes({few}, call, 1000), 960u);
  EXPECT_EQ(MaxPieceBytes({few, many}, call, 1000), 320u);
  EXPECT_EQ(MaxPieceBytes({few, many}, call, 192), 64u);
  EXPECT_EQ(MaxPieceBytes({few, many}, call, 191), 0u);
  call.has_factor = true;
  EXPECT_EQ(MaxPieceBytes({few, many}, call, 192), 0u);
  EXPECT_EQ(MaxPieceBytes({few}, call, 4), 0u);
}

}  // namespace
}  // namespace axon
