// SPDX-License-Identifier: Apache-2.0
#include "comm/message_run.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace axon
