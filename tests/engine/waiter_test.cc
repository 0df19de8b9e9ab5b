// SPDX-License-Identifier: Apache-2.0
#include "engine/waiter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/clock.h"

namespace axon {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

bool Never() { return false; }

TEST(WaiterTest, SpinsYieldsThenAsks) {
  Doorbell doorbell{};
  Waiter waiter(doorbell, {100, 10});
  int asked = 0;
  const auto ask = [&] { ++asked; };
  for (int i = 0; i < 100; ++i) waiter.Wait(ask, Never);
  EXPECT_EQ(asked, 0);
  for (int i = 0; i < 10; ++i) waiter.Wait(ask, Never);
  EXPECT_LE(asked, 10);  // yields end early on a busy machine
  const int before = asked;
  EXPECT_TRUE(waiter.Wait(ask, Never));
  EXPECT_EQ(asked, before + 1);
}

TEST(WaiterTest, LearnsHowLongToSpin) {
  Doorbell doorbell{};
  int learned = 100;
  const auto wait = [&](int polls) {
    // A busy machine must not make the first yield look like the last.
    constexpr int64_t kForever = int64_t{1} << 62;
    Waiter waiter(doorbell, {100, 50, kForever}, &learned);
    for (int i = 0; i < polls; ++i) waiter.Wait([] {}, Never);
    waiter.Reset();
  };
  wait(101);  // the first yield brought it: the peer shares the processor
  EXPECT_EQ(learned, 50);
  wait(51);
  EXPECT_EQ(learned, 32);  // no fewer
  wait(10);                // while spinning
  EXPECT_EQ(learned, 64);
  wait(10);
  EXPECT_EQ(learned, 100);  // no more than the policy's
  wait(120);                // later than the first yields: says nothing
  EXPECT_EQ(learned, 100);
}

TEST(WaiterTest, LooksNowAndThenWhileItSpins) {
  Doorbell doorbell{};
  Waiter waiter(doorbell, {10000, 0});
  int looks = 0;
  for (int i = 0; i < 10000; ++i) looks += waiter.Wait([] {}, Never) ? 1 : 0;
  EXPECT_GE(looks, 5);
  EXPECT_LE(looks, 20);
}

TEST(WaiterTest, AnswersReadyInsteadOfSleeping) {
  Doorbell doorbell{};
  Waiter waiter(doorbell, {2, 0});
  bool asked = false;
  for (int i = 0; i < 2; ++i) waiter.Wait([] {}, Never);
  // What became ready while it asked must not be slept on.
  EXPECT_TRUE(waiter.Wait([&] { asked = true; }, [&] { return asked; }));
  // That was progress: it spins again.
  asked = false;
  waiter.Wait([&] { asked = true; }, Never);
  EXPECT_FALSE(asked);
}

TEST(WaiterTest, ResetBeginsAnew) {
  Doorbell doorbell{};
  Waiter waiter(doorbell, {1, 0});
  int asked = 0;
  waiter.Wait([&] { ++asked; }, Never);
  waiter.Wait([&] { ++asked; }, Never);
  EXPECT_EQ(asked, 1);
  waiter.Reset();
  waiter.Wait([&] { ++asked; }, Never);
  EXPECT_EQ(asked, 1);
}

TEST(WaiterTest, LooksNowAndThenWhileItIsBusy) {
  Doorbell doorbell{};
  Waiter waiter(doorbell, {1, 0});
  int looks = 0;
  for (int i = 0; i < 10000; ++i) looks += waiter.Stepped() ? 1 : 0;
  EXPECT_GE(looks, 5);
  EXPECT_LE(looks, 20);
  // Each was progress.
  bool asked = false;
  waiter.Wait([&] { asked = true; }, Never);
  EXPECT_FALSE(asked);
}

TEST(WaiterTest, ARingEndsEverySleep) {
  RegisterForHeavyFence();
  Doorbell doorbell{};
  std::atomic<int> published{0};
  std::atomic<bool> wanted{false};
  constexpr int kRounds = 300;
  std::thread publisher([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (!wanted.exchange(false)) std::this_thread::yield();
      published.store(round, std::memory_order_release);
      Ring(doorbell);
    }
  });
  const int64_t began = NowNs();
  Waiter waiter(doorbell, {0, 0});
  for (int round = 1; round <= kRounds; ++round) {
    const auto ready = [&] {
      return published.load(std::memory_order_acquire) >= round;
    };
    wanted.store(true);
    while (!ready()) {
      waiter.Wait([] {}, ready);
      ASSERT_LT(NowNs() - began, 60 * kSecond) << "round " << round;
    }
    waiter.Reset();
  }
  publisher.join();
}

TEST(WaiterTest, SleepsEndByThemselves) {
  Doorbell doorbell{};
  Waiter waiter(doorbell, {0, 0});
  const int64_t began = NowNs();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(waiter.Wait([] {}, Never));
  EXPECT_LT(NowNs() - began, 30 * kSecond);
}

}  // namespace
}  // namespace axon
