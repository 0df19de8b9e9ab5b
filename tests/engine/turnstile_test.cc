// SPDX-License-Identifier: Apache-2.0
#include "engine/turnstile.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <vector>

#include "tests/support/threads.h"

namespace axon {
namespace {

TEST(TurnstileTest, OneAfterTheOther) {
  Turnstile turnstile;
  EXPECT_TRUE(turnstile.idle());
  const uint64_t first = turnstile.Take(), second = turnstile.Take();
  EXPECT_FALSE(turnstile.idle());
  EXPECT_TRUE(turnstile.MyTurn(first));
  EXPECT_FALSE(turnstile.MyTurn(second));
  turnstile.Done();
  EXPECT_FALSE(turnstile.MyTurn(first));
  EXPECT_TRUE(turnstile.MyTurn(second));
  turnstile.Done();
  EXPECT_TRUE(turnstile.idle());
}

TEST(TurnstileTest, ThreadsKeepTheOrderAndSeeEachOther) {
  constexpr int kThreads = 4, kCalls = 2000;
  Turnstile turnstile;
  std::vector<uint64_t> tickets(kThreads * kCalls);
  for (uint64_t& ticket : tickets) ticket = turnstile.Take();
  std::vector<uint64_t> ran;  // plain memory: the turn is its only guard
  RunRanks(kThreads, [&](int me) {
    for (size_t i = static_cast<size_t>(me); i < tickets.size();
         i += kThreads) {
      while (!turnstile.MyTurn(tickets[i])) sched_yield();
      ran.push_back(tickets[i]);
      turnstile.Done();
    }
  });
  EXPECT_EQ(ran, tickets);
}

}  // namespace
}  // namespace axon
