// SPDX-License-Identifier: Apache-2.0
// The copying forms, and the channels that other tests use.
#include "transport/channel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "tests/support/fake_transport.h"
#include "tests/transport/conformance.h"

namespace axon {
namespace {

class FakeWorld final : public ChannelWorld {
 public:
  FakeWorld(int ranks, const FakeTransport::Options& options)
      : transport_(ranks, options) {}
  Channel& channel(int me, int peer) override {
    return transport_.channel(me, peer);
  }
  void Break(int me, int peer) override {
    transport_.Fail(me, peer, absl::UnavailableError("the cable is cut"));
  }

 private:
  FakeTransport transport_;
};

ChannelKind Fake(const char* name, const FakeTransport::Options& options) {
  return {name, [options](int ranks) {
            return std::make_unique<FakeWorld>(ranks, options);
          }};
}

INSTANTIATE_TEST_SUITE_P(Fake, ChannelConformance,
                         testing::Values(Fake("one_credit", {512, 1, 0, 1}),
                                         Fake("late", {1000, 3, 5, 2}),
                                         Fake("many_credits", {64, 50, 2, 3})),
                         KindName);

Bytes BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

class CopyingForms : public testing::Test {
 protected:
  Poll Receive(size_t size) {
    text_.assign(size, '?');
    return TryRecv(transport_.channel(1, 0),
                   {reinterpret_cast<std::byte*>(text_.data()), size});
  }
  FakeTransport transport_{2, {16, 1, 0, 1}};
  std::string text_;
};

TEST_F(CopyingForms, CarryAMessage) {
  EXPECT_EQ(Receive(5), Poll::kPending);
  EXPECT_EQ(TrySend(transport_.channel(0, 1), BytesOf("hello")), Poll::kReady);
  EXPECT_EQ(TrySend(transport_.channel(0, 1), BytesOf("again")),
            Poll::kPending);
  EXPECT_EQ(Receive(5), Poll::kReady);
  EXPECT_EQ(text_, "hello");
  EXPECT_EQ(TrySend(transport_.channel(0, 1), BytesOf("")), Poll::kReady);
  EXPECT_EQ(Receive(0), Poll::kReady);
}

TEST_F(CopyingForms, RefuseAnotherSizeAndLeaveTheMessage) {
  EXPECT_EQ(TrySend(transport_.channel(0, 1), BytesOf("hello")), Poll::kReady);
  EXPECT_EQ(Receive(4), Poll::kFailed);
  EXPECT_EQ(text_, "????");
  EXPECT_EQ(Receive(6), Poll::kFailed);
  EXPECT_EQ(Receive(5), Poll::kReady);
}

TEST_F(CopyingForms, FailWithTheChannel) {
  transport_.Fail(0, 1, absl::UnavailableError("gone"));
  EXPECT_EQ(TrySend(transport_.channel(0, 1), BytesOf("hello")), Poll::kFailed);
  EXPECT_EQ(Receive(5), Poll::kFailed);
}

}  // namespace
}  // namespace axon
