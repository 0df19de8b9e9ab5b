// SPDX-License-Identifier: Apache-2.0
#include "tests/transport/conformance.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tests/support/threads.h"

namespace axon {
namespace {

constexpr int64_t kPatienceMs = 30'000;
// Polls after which what is there must have been seen, and what is not is
// believed not to come.
constexpr int kPolls = 200;

uint64_t Scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t KeyOf(uint64_t stream, uint64_t index) {
  return Scramble(stream * 0x9e3779b97f4a7c15 + index);
}

std::byte ByteOf(uint64_t key, size_t at) {
  return static_cast<std::byte>((key >> at % 8 * 8) + at / 8);
}

// Polls until something else than kPending comes or patience ends.
template <typename Ask>
Poll Await(Ask ask) {
  const Deadline deadline = Deadline::In(kPatienceMs);
  for (int i = 1;; ++i) {
    const Poll poll = ask();
    if (poll != Poll::kPending) return poll;
    if (i % 64 == 0) sched_yield();
    if (i % 4096 == 0 && deadline.passed()) return poll;
  }
}

// Whether it stays kPending.
template <typename Ask>
bool StaysPending(Ask ask) {
  for (int i = 0; i < kPolls; ++i) {
    if (ask() != Poll::kPending) return false;
  }
  return true;
}

void Fill(std::byte* place, uint64_t stream, uint64_t index, size_t size) {
  const uint64_t key = KeyOf(stream, index);
  for (size_t i = 0; i < size; ++i) place[i] = ByteOf(key, i);
}

std::string Wrong(Bytes message, uint64_t stream, uint64_t index, size_t size) {
  if (message.size() != size) {
    return absl::StrCat("message ", index, " has ", message.size(),
                        " bytes, not ", size);
  }
  const uint64_t key = KeyOf(stream, index);
  for (size_t i = 0; i < size; ++i) {
    if (message[i] != ByteOf(key, i)) {
      return absl::StrCat("byte ", i, " of message ", index, " of ", size,
                          " bytes is wrong");
    }
  }
  return "";
}

}  // namespace

size_t SizeOfMessage(uint64_t stream, uint64_t index, size_t most) {
  const uint64_t draw = KeyOf(~stream, index);
  // Small ones, odd ones, and now and then one of the largest.
  switch (draw % 8) {
    case 0:
      return 0;
    case 1:
      return most - (draw >> 8) % 3;
    case 2:
    case 3:
      return (draw >> 8) % (most + 1);
    default:
      return (draw >> 8) % std::min<size_t>(most + 1, 130);
  }
}

bool SendMessage(Channel& channel, uint64_t stream, uint64_t index,
                 size_t size) {
  std::byte* place = nullptr;
  const Poll poll = Await([&] { return channel.Reserve(size, &place); });
  if (poll != Poll::kReady) return false;
  Fill(place, stream, index, size);
  channel.Commit();
  return true;
}

std::string ReceiveMessage(Channel& channel, uint64_t stream, uint64_t index,
                           size_t size) {
  Bytes message;
  const Poll poll = Await([&] { return channel.TryPeek(&message); });
  if (poll != Poll::kReady) {
    return absl::StrCat("message ", index,
                        " does not come: ", channel.status().ToString());
  }
  const std::string wrong = Wrong(message, stream, index, size);
  channel.Pop();
  return wrong;
}

TEST_P(ChannelConformance, CarriesEverySizeUpToTheLargest) {
  const auto world = GetParam().make(2);
  Channel& a = world->channel(0, 1);
  Channel& b = world->channel(1, 0);
  const size_t most = a.max_message();
  ASSERT_EQ(b.max_message(), most);
  ASSERT_GE(most, 64u);
  uint64_t index = 0;
  for (size_t size = 0; size <= most; size += size < 300 ? 1 : 97) {
    ASSERT_TRUE(SendMessage(a, 1, index, size)) << a.status();
    ASSERT_EQ(ReceiveMessage(b, 1, index, size), "");
    ++index;
  }
  ASSERT_TRUE(SendMessage(b, 2, 0, most));
  ASSERT_EQ(ReceiveMessage(a, 2, 0, most), "");
}

TEST_P(ChannelConformance, RefusesMoreThanTheLargest) {
  const auto world = GetParam().make(2);
  Channel& a = world->channel(0, 1);
  const size_t most = a.max_message();
  std::byte* place = nullptr;
  EXPECT_EQ(a.Reserve(most + 1, &place), Poll::kFailed);
  EXPECT_THAT(std::string(a.status().message()),
              testing::AllOf(testing::HasSubstr(absl::StrCat(most + 1)),
                             testing::HasSubstr(absl::StrCat(most))));
}

TEST_P(ChannelConformance, ReservingAgainGivesTheSamePlace) {
  const auto world = GetParam().make(2);
  Channel& a = world->channel(0, 1);
  Channel& b = world->channel(1, 0);
  for (uint64_t index = 0; index < 50; ++index) {
    const size_t size = SizeOfMessage(1, index, a.max_message());
    std::byte *first = nullptr, *again = nullptr;
    ASSERT_EQ(Await([&] { return a.Reserve(size, &first); }), Poll::kReady);
    Fill(first, 1, index, size);
    ASSERT_EQ(Await([&] { return a.Reserve(size, &again); }), Poll::kReady);
    ASSERT_EQ(again, first);
    Bytes message;
    ASSERT_TRUE(StaysPending([&] { return b.TryPeek(&message); }))
        << "a message can be seen before it is committed";
    a.Commit();
    ASSERT_EQ(ReceiveMessage(b, 1, index, size), "");
  }
}

TEST_P(ChannelConformance, AMessageStaysUntilItIsPopped) {
  const auto world = GetParam().make(2);
  Channel& a = world->channel(0, 1);
  Channel& b = world->channel(1, 0);
  ASSERT_TRUE(SendMessage(a, 1, 0, 40));
  Bytes message;
  ASSERT_EQ(Await([&] { return b.TryPeek(&message); }), Poll::kReady);
  std::byte* place = nullptr;
  if (a.Reserve(40, &place) == Poll::kReady) {
    Fill(place, 9, 9, 40);
    a.Commit();
  }
  EXPECT_EQ(Wrong(message, 1, 0, 40), "");
  Bytes again;
  ASSERT_EQ(Await([&] { return b.TryPeek(&again); }), Poll::kReady);
  EXPECT_EQ(again.data(), message.data());
  EXPECT_EQ(Wrong(again, 1, 0, 40), "");
}

TEST_P(ChannelConformance, PushesBackAndGivesCreditsAgain) {
  const auto world = GetParam().make(2);
  Channel& a = world->channel(0, 1);
  Channel& b = world->channel(1, 0);
  const size_t size = a.max_message();
  uint64_t sent = 0, received = 0;
  for (int round = 0; round < 20; ++round) {
    std::byte* place = nullptr;
    while (!StaysPending([&] { return a.Reserve(size, &place); })) {
      ASSERT_EQ(a.Reserve(size, &place), Poll::kReady) << a.status();
      Fill(place, 1, sent++, size);
      a.Commit();
      ASSERT_LT(sent, 100'000u) << "there is no bound";
    }
    ASSERT_GT(sent, received);
    // One or all, so that the next round begins at various places.
    const uint64_t until = round % 2 == 0 ? received + 1 : sent;
    while (received < until) {
      ASSERT_EQ(ReceiveMessage(b, 1, received++, size), "");
    }
    ASSERT_EQ(Await([&] { return a.Reserve(size, &place); }), Poll::kReady);
  }
}

TEST_P(ChannelConformance, FlushWaitsUntilAllIsPopped) {
  const auto world = GetParam().make(2);
  Channel& a = world->channel(0, 1);
  Channel& b = world->channel(1, 0);
  EXPECT_EQ(Await([&] { return a.Flush(); }), Poll::kReady);
  for (uint64_t index = 0; index < 20; ++index) {
    ASSERT_TRUE(SendMessage(a, 1, index, 60));
    ASSERT_TRUE(StaysPending([&] { return a.Flush(); }));
    Bytes message;
    ASSERT_EQ(Await([&] { return b.TryPeek(&message); }), Poll::kReady);
    ASSERT_TRUE(StaysPending([&] { return a.Flush(); })) << "only peeked";
    ASSERT_EQ(Wrong(message, 1, index, 60), "");
    b.Pop();
    ASSERT_EQ(Await([&] { return a.Flush(); }), Poll::kReady);
  }
}

// Messages of one size push the place where the next begins through the whole
// buffer, whatever that is.
TEST_P(ChannelConformance, WrapsRoundAtEveryPlace) {
  const auto world = GetParam().make(2);
  Channel& a = world->channel(0, 1);
  Channel& b = world->channel(1, 0);
  const size_t most = a.max_message();
  uint64_t index = 0;
  const auto pass = [&](size_t size) {
    ASSERT_TRUE(SendMessage(a, 1, index, size)) << a.status();
    ASSERT_EQ(ReceiveMessage(b, 1, index, size), "");
    ++index;
  };
  for (size_t size : {size_t{0}, size_t{57}, most / 3, most / 2, most}) {
    for (size_t before = 0; before < 2 * most / 64 + 4; ++before) {
      pass(size);
      pass(1);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(ChannelConformance, BothDirectionsAreIndependent) {
  const auto world = GetParam().make(2);
  Channel* ends[] = {&world->channel(0, 1), &world->channel(1, 0)};
  uint64_t sent[2] = {};
  for (int e : {0, 1}) {
    std::byte* place = nullptr;
    while (!StaysPending([&] { return ends[e]->Reserve(60, &place); })) {
      ASSERT_EQ(ends[e]->Reserve(60, &place), Poll::kReady);
      Fill(place, static_cast<uint64_t>(e), sent[e]++, 60);
      ends[e]->Commit();
    }
    ASSERT_GT(sent[e], 0u);
  }
  for (int e : {0, 1}) {
    for (uint64_t i = 0; i < sent[e]; ++i) {
      ASSERT_EQ(ReceiveMessage(*ends[1 - e], static_cast<uint64_t>(e), i, 60),
                "");
    }
  }
}

TEST_P(ChannelConformance, ManyPeersDoNotMix) {
  constexpr int kRanks = 5;
  const auto world = GetParam().make(kRanks);
  const auto stream = [](int from, int to) {
    return static_cast<uint64_t>(from * kRanks + to);
  };
  for (uint64_t index = 0; index < 40; ++index) {
    for (int from = 0; from < kRanks; ++from) {
      for (int to = 0; to < kRanks; ++to) {
        if (from == to) continue;
        Channel& channel = world->channel(from, to);
        const size_t size =
            SizeOfMessage(stream(from, to), index, channel.max_message());
        ASSERT_TRUE(SendMessage(channel, stream(from, to), index, size));
      }
    }
    for (int to = 0; to < kRanks; ++to) {
      for (int from = kRanks - 1; from >= 0; --from) {
        if (from == to) continue;
        Channel& channel = world->channel(to, from);
        const size_t size =
            SizeOfMessage(stream(from, to), index, channel.max_message());
        ASSERT_EQ(ReceiveMessage(channel, stream(from, to), index, size), "");
      }
    }
  }
}

// Random calls of both ends against a queue.
TEST_P(ChannelConformance, IsAQueueUnderRandomCalls) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const auto world = GetParam().make(2);
    Channel& a = world->channel(0, 1);
    Channel& b = world->channel(1, 0);
    std::mt19937_64 random(seed);
    std::deque<size_t> queue;
    uint64_t sent = 0, received = 0;
    for (int i = 0; i < 2000; ++i) {
      if (random() % 2 == 0) {
        const size_t size = SizeOfMessage(seed, sent, a.max_message());
        std::byte* place = nullptr;
        const Poll poll = a.Reserve(size, &place);
        ASSERT_NE(poll, Poll::kFailed) << a.status();
        if (poll != Poll::kReady || random() % 4 == 0) continue;
        Fill(place, seed, sent++, size);
        a.Commit();
        queue.push_back(size);
      } else {
        Bytes message;
        const Poll poll = b.TryPeek(&message);
        ASSERT_NE(poll, Poll::kFailed) << b.status();
        if (poll != Poll::kReady) continue;
        ASSERT_FALSE(queue.empty()) << "a message out of nothing";
        ASSERT_EQ(Wrong(message, seed, received, queue.front()), "");
        if (random() % 4 == 0) continue;
        b.Pop();
        queue.pop_front();
        ++received;
      }
      if (queue.empty()) continue;
      ASSERT_EQ(a.Flush(), Poll::kPending);
    }
    ASSERT_GT(received, 100u);
  }
}

// Each half of each end on a thread of its own.
TEST_P(ChannelConformance, FourThreadsStress) {
  constexpr uint64_t kMessages = 10'000;
  const auto world = GetParam().make(2);
  std::string wrong[4];
  RunRanks(4, [&](int thread) {
    const int end = thread / 2;
    Channel& channel = world->channel(end, 1 - end);
    const bool sends = thread % 2 == 0;
    const auto stream = static_cast<uint64_t>(sends ? end : 1 - end);
    for (uint64_t i = 0; i < kMessages && wrong[thread].empty(); ++i) {
      const size_t size = SizeOfMessage(stream, i, channel.max_message());
      if (!sends) {
        wrong[thread] = ReceiveMessage(channel, stream, i, size);
      } else if (!SendMessage(channel, stream, i, size)) {
        wrong[thread] = absl::StrCat("cannot send message ", i);
      }
    }
  });
  for (const std::string& text : wrong) EXPECT_EQ(text, "");
}

TEST_P(ChannelConformance, SaysWhyItFailed) {
  const auto world = GetParam().make(3);
  ASSERT_TRUE(SendMessage(world->channel(0, 2), 1, 0, 8));
  world->Break(1, 0);
  Channel& broken = world->channel(1, 0);
  Bytes message;
  EXPECT_EQ(Await([&] { return broken.TryPeek(&message); }), Poll::kFailed);
  EXPECT_FALSE(broken.status().ok());
  EXPECT_GT(broken.status().message().size(), 10u);
  for (int i = 0; i < kPolls; ++i) {
    ASSERT_EQ(broken.TryPeek(&message), Poll::kFailed) << "came back to life";
  }
  EXPECT_EQ(ReceiveMessage(world->channel(2, 0), 1, 0, 8), "")
      << "other links go on";
}

}  // namespace axon
