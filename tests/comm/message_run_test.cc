// SPDX-License-Identifier: Apache-2.0
#include "comm/message_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/fake_transport.h"

namespace axon {
namespace {

std::vector<uint8_t> Data(size_t bytes, uint8_t seed) {
  std::vector<uint8_t> data(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<uint8_t>(i * 7 + i / 251 + seed);
  }
  return data;
}

// Steps both ends in turn, at most so often.
bool Exchange(MessageRun& a, MessageRun& b, int steps = 1'000'000) {
  Poll first = Poll::kPending, second = Poll::kPending;
  for (int i = 0; i < steps; ++i) {
    if (first == Poll::kPending) first = a.Step();
    if (second == Poll::kPending) second = b.Step();
    if (first != Poll::kPending && second != Poll::kPending) break;
  }
  return first == Poll::kReady && second == Poll::kReady;
}

TEST(MessageRunTest, EverySizeArrivesWhole) {
  for (const size_t most : {9, 64, 1000}) {
    for (const int credits : {1, 3}) {
      FakeTransport transport(2, {most, credits, 5, 42});
      // Around the borders of channel messages, whose first has a header.
      for (const size_t bytes :
           {size_t{0}, size_t{1}, most - 9, most - 8, most - 7, 2 * most - 8,
            2 * most - 7, 10 * most + 3}) {
        std::vector<uint8_t> from = Data(bytes, 3), to(bytes + 8, 0xee);
        MessageRun send(transport.channel(0, 1), {true, from.data(), bytes, 1});
        MessageRun receive(transport.channel(1, 0),
                           {false, to.data(), bytes, 0});
        ASSERT_TRUE(Exchange(send, receive)) << bytes;
        // Nothing beyond the end is touched.
        from.resize(bytes + 8, 0xee);
        EXPECT_EQ(to, from) << bytes << " bytes in messages of " << most;
      }
      EXPECT_EQ(transport.unread(), 0);
    }
  }
}

TEST(MessageRunTest, OneAfterTheOther) {
  FakeTransport transport(2, {128, 2, 3, 7});
  for (uint8_t i = 0; i < 50; ++i) {
    std::vector<uint8_t> from = Data(i * 11U, i), to(i * 11U);
    MessageRun send(transport.channel(0, 1),
                    {true, from.data(), from.size(), 1});
    MessageRun receive(transport.channel(1, 0),
                       {false, to.data(), to.size(), 0});
    ASSERT_TRUE(Exchange(send, receive));
    EXPECT_EQ(to, from);
  }
}

TEST(MessageRunTest, SizesThatDifferAreAMismatch) {
  for (const size_t expected : {99, 101, 0}) {
    FakeTransport transport(2, {});
    std::vector<uint8_t> from = Data(100, 1), to(200, 0xee);
    const std::vector<uint8_t> untouched = to;
    MessageRun send(transport.channel(0, 1), {true, from.data(), 100, 1});
    MessageRun receive(transport.channel(1, 0),
                       {false, to.data(), expected, 0});
    EXPECT_FALSE(Exchange(send, receive));
    EXPECT_TRUE(receive.mismatch());
    EXPECT_EQ(receive.sent_bytes(), 100U);
    EXPECT_EQ(receive.bytes(), expected);
    EXPECT_FALSE(send.mismatch());
    EXPECT_EQ(to, untouched);
  }
}

TEST(MessageRunTest, AFailedChannelFailsBothEnds) {
  FakeTransport transport(2, {64, 1});
  std::vector<uint8_t> from = Data(10000, 1), to(10000);
  MessageRun send(transport.channel(0, 1), {true, from.data(), 10000, 1});
  MessageRun receive(transport.channel(1, 0), {false, to.data(), 10000, 0});
  transport.FailAfter(0, 1, 40, absl::UnavailableError("cut"));
  EXPECT_FALSE(Exchange(send, receive));
  EXPECT_FALSE(receive.mismatch());
  EXPECT_EQ(receive.status().message(), "cut");
  EXPECT_EQ(send.status().message(), "cut");
}

TEST(MessageRunTest, NobodyThereIsPending) {
  FakeTransport transport(2, {64, 1});
  std::vector<uint8_t> data(1000);
  MessageRun receive(transport.channel(1, 0), {false, data.data(), 1000, 0});
  MessageRun send(transport.channel(0, 1), {true, data.data(), 1000, 1});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(receive.Step(), Poll::kPending);
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(send.Step(), Poll::kPending);
  EXPECT_EQ(send.peer(), 1);
  EXPECT_TRUE(send.sends());
}

// However much the channel takes at once.
TEST(MessageRunTest, ALongMessageGivesOthersTheirTurn) {
  constexpr size_t kTurns = 5;
  for (const size_t most :
       {MessageRun::kBytesPerStep / 8 + 8, MessageRun::kBytesPerStep * 8}) {
    FakeTransport transport(2, {most, 1000});
    std::vector<uint8_t> from = Data(kTurns * MessageRun::kBytesPerStep, 1),
                         to(from.size());
    MessageRun send(transport.channel(0, 1),
                    {true, from.data(), from.size(), 1});
    MessageRun receive(transport.channel(1, 0),
                       {false, to.data(), to.size(), 0});
    for (MessageRun* run : {&send, &receive}) {
      size_t steps = 1;
      for (; run->Step() == Poll::kPending; ++steps) {
        ASSERT_TRUE(run->TookStep());
      }
      EXPECT_TRUE(run->TookStep());
      EXPECT_FALSE(run->TookStep());
      EXPECT_GE(steps, kTurns);
    }
    EXPECT_EQ(to, from);
  }
}

// Sends these many bytes as one piece, the first with the size of a message.
void SendPiece(Channel& channel, size_t bytes, uint64_t message_bytes = 0) {
  std::vector<std::byte> piece(bytes);
  if (message_bytes > 0) {
    ASSERT_GE(bytes, sizeof(message_bytes));
    std::memcpy(piece.data(), &message_bytes, sizeof(message_bytes));
  }
  ASSERT_EQ(TrySend(channel, piece), Poll::kReady);
}

TEST(MessageRunTest, PiecesThatCannotBeAreRefused) {
  constexpr size_t kBytes = 100, kHeader = 8;
  // Of the first two pieces.
  constexpr size_t kNone = ~size_t{0};
  const struct {
    size_t first, second;
    const char* why;
  } kCases[] = {
      {0, kNone, "a piece of 0 bytes at the begin of a message of 100"},
      {7, kNone, "a piece of 7 bytes at the begin"},
      {kHeader, kNone, "a piece of 0 bytes at the begin"},
      {kHeader + 101, kNone, "a piece of 101 bytes at the begin"},
      {kHeader + 60, 41, "a piece of 41 bytes after 60"},
      {kHeader + 60, 0, "a piece of 0 bytes after 60"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.why);
    FakeTransport transport(2, {});
    Channel& channel = transport.channel(0, 1);
    SendPiece(channel, c.first, c.first >= kHeader ? kBytes : 0);
    if (c.second != kNone) SendPiece(channel, c.second);
    std::vector<uint8_t> to(2 * kBytes, 0xee);
    MessageRun receive(transport.channel(1, 0), {false, to.data(), kBytes, 0});
    EXPECT_EQ(receive.Step(), Poll::kFailed);
    EXPECT_FALSE(receive.mismatch());
    EXPECT_EQ(receive.status().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(receive.status().message()),
                testing::AllOf(testing::HasSubstr("rank 0 sent"),
                               testing::HasSubstr(c.why),
                               testing::HasSubstr("overwritten")));
    EXPECT_EQ(to[kBytes], 0xee);
  }
}

}  // namespace
}  // namespace axon
