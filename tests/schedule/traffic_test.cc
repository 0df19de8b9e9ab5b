// SPDX-License-Identifier: Apache-2.0
// What ranks know of each other. Two or three ranks, call 0 unless it is said.
#include "schedule/traffic.h"

#include "gtest/gtest.h"

namespace axon {
namespace {

constexpr int16_t kTo1[] = {1};
constexpr int16_t kTo0[] = {0};
constexpr int16_t kTo12[] = {1, 2};

// Rank `rank` takes one message from `peer`, as an event of its own.
void Take(Traffic& traffic, int rank, int peer) {
  traffic.Advance(rank);
  traffic.Receive(rank, peer);
}

TEST(TrafficTest, OnlyAnAnswerTellsThatAMessageWasRead) {
  Traffic traffic(2, 1, {});
  traffic.Enter(0, 0);
  traffic.Enter(1, 0);
  traffic.Send(1, 0, kTo0, {});  // before it reads
  const int id = traffic.Send(0, 0, kTo1, {});
  EXPECT_EQ(traffic.MayStillRead(0, id), 1);
  Take(traffic, 1, 0);
  EXPECT_EQ(traffic.MayStillRead(0, id), 1);  // done, but 0 cannot know
  Take(traffic, 0, 1);
  EXPECT_EQ(traffic.MayStillRead(0, id), 1);  // sent too early to tell
  traffic.Send(1, 0, kTo0, {});
  Take(traffic, 0, 1);
  EXPECT_EQ(traffic.MayStillRead(0, id), -1);
}

TEST(TrafficTest, EveryReaderOfOneWriteCounts) {
  Traffic traffic(3, 1, {});
  const int id = traffic.Send(0, 0, kTo12, {});
  Take(traffic, 1, 0);
  traffic.Send(1, 0, kTo0, {});
  Take(traffic, 0, 1);
  EXPECT_EQ(traffic.MayStillRead(0, id), 2);
  EXPECT_EQ(traffic.MayStillReadOf(0, 0), 2);
  EXPECT_FALSE(traffic.Flush(0, 0));
  EXPECT_EQ(traffic.Unread(), std::pair(0, 2));
  Take(traffic, 2, 0);
  EXPECT_TRUE(traffic.Flush(0, 0));
  EXPECT_EQ(traffic.MayStillReadOf(0, 0), -1);
  EXPECT_EQ(traffic.Unread(), std::nullopt);
}

TEST(TrafficTest, CreditsLimitMessagesInFlight) {
  Traffic traffic(2, 1, {.credits = 2});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(traffic.CanSend(0, 0, kTo1));
    traffic.Send(0, 0, kTo1, {});
  }
  EXPECT_FALSE(traffic.CanSend(0, 0, kTo1));
  EXPECT_TRUE(traffic.CanSend(1, 0, kTo0));
  Take(traffic, 1, 0);
  EXPECT_TRUE(traffic.CanSend(0, 0, kTo1));
}

TEST(TrafficTest, NewsOfThirdRanksTravelsAlong) {
  Traffic traffic(3, 1, {});
  for (int rank = 0; rank < 3; ++rank) traffic.Enter(rank, 0);
  constexpr int16_t kTo2[] = {2};
  traffic.Send(0, 0, kTo1, {});
  EXPECT_EQ(traffic.MayBeMissing(2, 0), 0);
  Take(traffic, 1, 0);
  traffic.Send(1, 0, kTo2, {});
  Take(traffic, 2, 1);
  EXPECT_EQ(traffic.MayBeMissing(2, 0), -1);
}

// One message a call from 0 to 1 through an outbox of two slots.
class SlotsTest : public testing::Test {
 protected:
  void Call(Traffic& traffic, int call) {
    traffic.Enter(0, call);
    ASSERT_TRUE(traffic.CanSend(0, call, kTo1));
    taken_from_ = traffic.TakeSlot(0, call);
    traffic.Send(0, call, kTo1, {});
  }
  int taken_from_ = -1;
};

TEST_F(SlotsTest, ASlotIsTakenWhenItsReadersHaveMovedOn) {
  Traffic traffic(2, 4, {.sending = Sending::kCopied, .slots = 2});
  Call(traffic, 0);
  Call(traffic, 1);
  traffic.Enter(0, 2);
  EXPECT_FALSE(traffic.CanSend(0, 2, kTo1));
  traffic.Enter(1, 0);
  Take(traffic, 1, 0);
  EXPECT_FALSE(traffic.CanSend(0, 2, kTo1));
  traffic.Enter(1, 1);
  EXPECT_TRUE(traffic.CanSend(0, 2, kTo1));
  EXPECT_EQ(traffic.TakeSlot(0, 2), -1);
}

TEST_F(SlotsTest, TakenARunTooEarlyItsReaderIsNamed) {
  Traffic traffic(2, 4, {.sending = Sending::kCopied, .slots = 2, .early = 1});
  traffic.Enter(1, 0);
  Call(traffic, 0);
  Call(traffic, 1);
  EXPECT_EQ(taken_from_, -1);
  Call(traffic, 2);
  EXPECT_EQ(taken_from_, 1);
}

}  // namespace
}  // namespace axon
