// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace axon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Span kMine{Buffer::kIn, 0, 2};
constexpr Span kResult{Buffer::kOut, 4, 2};

TEST(ScheduleTest, PartsAreTakenModuloTheirNumber) {
  const Span whole{Buffer::kOut, 10, 8};
  EXPECT_EQ(Part(whole, 4, 1), (Span{Buffer::kOut, 12, 2}));
  EXPECT_EQ(Part(whole, 4, -1), Part(whole, 4, 3));
  EXPECT_EQ(Part(whole, 4, 4), Part(whole, 4, 0));
}

TEST(ScheduleTest, ListsAreSortedAndKeptOnce) {
  Schedule s;
  s.Publish({3, 1, 2}, kMine);
  s.ReduceAll({2, 3, 1}, kMine, kResult);
  s.Publish({1}, kResult);
  ASSERT_EQ(s.lists.size(), 2u);
  EXPECT_THAT(s.lists[0], ElementsAre(1, 2, 3));
  EXPECT_THAT(s.Peers(s.ops[0]), ElementsAre(1, 2, 3));
  EXPECT_THAT(s.Peers(s.ops[1]), ElementsAre(1, 2, 3));
  EXPECT_THAT(s.Peers(s.ops[2]), ElementsAre(1));
}

TEST(ScheduleTest, PeersOfOthersAreOneOrNone) {
  Schedule s;
  s.Send(7, kMine);
  s.Recv(6, kResult);
  s.RecvReduce(5, kMine, kResult);
  s.Copy(kMine, kResult);
  s.Reduce(kMine, kResult);
  EXPECT_THAT(s.Peers(s.ops[0]), ElementsAre(7));
  EXPECT_THAT(s.Peers(s.ops[1]), ElementsAre(6));
  EXPECT_THAT(s.Peers(s.ops[2]), ElementsAre(5));
  EXPECT_THAT(s.Peers(s.ops[3]), IsEmpty());
  EXPECT_THAT(s.Peers(s.ops[4]), IsEmpty());
}

TEST(ScheduleTest, OperationsKeepWhatTheyWereGiven) {
  Schedule s;
  s.RecvReduce(5, kMine, kResult, /*completes=*/true);
  const Op& op = s.ops[0];
  EXPECT_EQ(op.kind, OpKind::kRecvReduce);
  EXPECT_TRUE(op.completes);
  EXPECT_EQ(op.source, kMine);
  EXPECT_EQ(op.destination, kResult);
  Schedule other = s;
  EXPECT_EQ(other, s);
  other.ops[0].completes = false;
  EXPECT_NE(other, s);
}

}  // namespace
}  // namespace axon
