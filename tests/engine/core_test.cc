// SPDX-License-Identifier: Apache-2.0
#include "engine/core.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace axon {
namespace {

using namespace std::chrono_literals;

// Does what the test says: steps until `ready`, then has its status.
class FakeTask final : public Task {
 public:
  explicit FakeTask(std::function<bool()> ready,
                    absl::Status status = absl::OkStatus())
      : ready_(std::move(ready)), status_(std::move(status)) {}
  Poll Step() override {
    if (!ready_()) return Poll::kPending;
    return status_.ok() ? Poll::kReady : Poll::kFailed;
  }
  bool TookStep() override { return false; }
  void Look() override {
    if (look) look();
  }
  void AskToWake() override {
    if (ask) ask();
  }
  absl::Status status() const override { return status_; }
  std::string Describe() const override { return "a fake"; }
  void Behind(const std::string& head) override {
    if (behind) behind(head);
  }

  std::function<void()> look, ask;
  std::function<void(const std::string&)> behind;

 private:
  std::function<bool()> ready_;
  absl::Status status_;
};

bool Always() { return true; }

// Waits for what another thread does; false after a minute.
bool Eventually(const std::function<bool()>& ready) {
  for (int i = 0; i < 60'000; ++i) {
    if (ready()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

class CoreTest : public testing::Test {
 protected:
  // A core's threads run to the end of the process, so it stays too.
  static Doorbell& doorbell() {
    static Doorbell& doorbell = *new Doorbell();
    return doorbell;
  }
  static Core& TheCore() {
    static Core& core = *new Core(doorbell());
    return core;
  }
  void Enqueue(Stream* stream, std::function<bool()> ready,
               absl::Status status = absl::OkStatus()) {
    core_.Enqueue(stream, std::make_unique<FakeTask>(std::move(ready),
                                                     std::move(status)));
  }

  Core& core_ = TheCore();
};

TEST_F(CoreTest, AStreamRunsInOrder) {
  Stream* const stream = core_.NewStream();
  std::vector<int> order;  // of the core's thread; read after synchronize
  for (int i = 0; i < 1000; ++i) {
    Enqueue(stream, [&order, i] {
      order.push_back(i);
      return true;
    });
  }
  EXPECT_EQ(core_.Synchronize(stream), absl::OkStatus());
  ASSERT_EQ(order.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_EQ(core_.DestroyStream(stream), absl::OkStatus());
}

TEST_F(CoreTest, StreamsDoNotWaitForEachOther) {
  Stream* const stuck = core_.NewStream();
  Stream* const free = core_.NewStream();
  std::atomic<bool> go{false};
  Enqueue(stuck, [&] { return go.load(); });
  for (int i = 0; i < 100; ++i) Enqueue(free, Always);
  EXPECT_EQ(core_.Synchronize(free), absl::OkStatus());
  absl::Status error;
  EXPECT_EQ(core_.Query(stuck, &error), Poll::kPending);
  go = true;
  EXPECT_EQ(core_.Synchronize(stuck), absl::OkStatus());
  EXPECT_EQ(core_.Query(stuck, &error), Poll::kReady);
  EXPECT_EQ(core_.DestroyStream(stuck), absl::OkStatus());
  EXPECT_EQ(core_.DestroyStream(free), absl::OkStatus());
}

// A task that is queued while the core is about to sleep on behalf of another.
TEST_F(CoreTest, PeersOfEveryTaskAreAskedBeforeTheCoreSleeps) {
  Stream* const early = core_.NewStream();
  Stream* const late = core_.NewStream();
  std::atomic<bool> go{false}, stepped{false}, asked{false};
  int asks = 0, steps = 0;  // of the core's thread
  auto late_task = std::make_unique<FakeTask>([&] {
    stepped = true;
    return go.load();
  });
  late_task->ask = [&] { asked = true; };
  auto early_task = std::make_unique<FakeTask>([&] {
    // The second step after asking comes after the sleep. By then sleeps have
    // become long.
    if (asks >= 7 && ++steps == 2) core_.Enqueue(late, std::move(late_task));
    return go.load();
  });
  early_task->ask = [&] { ++asks; };
  core_.Enqueue(early, std::move(early_task));
  ASSERT_TRUE(Eventually([&] { return stepped.load(); }));
  bool slept_unasked = false;
  while (!asked && !slept_unasked) {
    slept_unasked = doorbell().sleepers != 0 && !asked;
    std::this_thread::yield();
  }
  EXPECT_FALSE(slept_unasked);
  go = true;
  EXPECT_EQ(core_.DestroyStream(early), absl::OkStatus());
  EXPECT_EQ(core_.DestroyStream(late), absl::OkStatus());
}

// Deadlines and dead peers must be noticed though the core never waits.
TEST_F(CoreTest, ABusyStreamDoesNotKeepOthersFromBeingLookedAt) {
  Stream* const busy = core_.NewStream();
  Stream* const stuck = core_.NewStream();
  std::atomic<bool> go{false};
  std::atomic<int> looks{0}, done{0};
  std::function<bool()> again = [&] {
    ++done;
    if (!go) Enqueue(busy, again);
    return true;
  };
  Enqueue(busy, again);
  ASSERT_TRUE(Eventually([&] { return done > 0; }));
  auto task = std::make_unique<FakeTask>([&] { return go.load(); });
  task->look = [&] { ++looks; };
  core_.Enqueue(stuck, std::move(task));
  const int many = done + 1'000'000;
  while (looks == 0 && done < many) std::this_thread::yield();
  EXPECT_GT(looks, 0);
  go = true;
  EXPECT_EQ(core_.DestroyStream(stuck), absl::OkStatus());
  // Its last task may have been queued after it was asked to end.
  EXPECT_EQ(core_.Synchronize(busy), absl::OkStatus());
  EXPECT_EQ(core_.DestroyStream(busy), absl::OkStatus());
}

TEST_F(CoreTest, TheFirstErrorIsKeptUntilSynchronize) {
  Stream* const stream = core_.NewStream();
  Enqueue(stream, Always);
  Enqueue(stream, Always, absl::UnavailableError("first"));
  Enqueue(stream, Always, absl::InternalError("second"));
  Enqueue(stream, Always);
  absl::Status error;
  EXPECT_TRUE(
      Eventually([&] { return core_.Query(stream, &error) == Poll::kFailed; }));
  EXPECT_EQ(error.message(), "first");
  EXPECT_EQ(core_.Synchronize(stream).message(), "first");
  EXPECT_EQ(core_.Synchronize(stream), absl::OkStatus());
  EXPECT_EQ(core_.DestroyStream(stream), absl::OkStatus());
}

TEST_F(CoreTest, CallbacksTellOfTheCallBefore) {
  Stream* const stream = core_.NewStream();
  std::atomic<int> called{0};
  std::vector<std::string> texts;
  std::thread::id thread;
  const auto callback = [&](const absl::Status& status) {
    texts.emplace_back(status.message());
    thread = std::this_thread::get_id();
    called.fetch_add(1);
  };
  Enqueue(stream, Always, absl::UnavailableError("broken"));
  core_.AddCallback(stream, callback);
  Enqueue(stream, Always);
  core_.AddCallback(stream, callback);
  EXPECT_TRUE(Eventually([&] { return called == 2; }));
  EXPECT_EQ(texts, (std::vector<std::string>{"broken", ""}));
  EXPECT_NE(thread, std::this_thread::get_id());
  EXPECT_EQ(core_.DestroyStream(stream).message(), "broken");
}

TEST_F(CoreTest, ACallbackMayTakeItsTime) {
  Stream* const stream = core_.NewStream();
  std::atomic<bool> go{false}, done{false};
  core_.AddCallback(stream, [&](const absl::Status&) {
    done = Eventually([&] { return go.load(); });
  });
  for (int i = 0; i < 10; ++i) Enqueue(stream, Always);
  EXPECT_EQ(core_.Synchronize(stream), absl::OkStatus());
  EXPECT_FALSE(done);
  go = true;
  EXPECT_TRUE(Eventually([&] { return done.load(); }));
  EXPECT_EQ(core_.DestroyStream(stream), absl::OkStatus());
}

TEST_F(CoreTest, EventsOrderStreams) {
  Stream* const first = core_.NewStream();
  Stream* const second = core_.NewStream();
  Event* const event = core_.NewEvent();
  std::atomic<bool> go{false}, ran{false};
  EXPECT_TRUE(core_.Done(event));  // never recorded
  Enqueue(first, [&] { return go.load(); });
  core_.Record(event, first);
  EXPECT_FALSE(core_.Done(event));
  core_.WaitFor(second, event);
  Enqueue(second, [&] { return ran = true; });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(ran);
  go = true;
  core_.Synchronize(event);
  EXPECT_TRUE(core_.Done(event));
  EXPECT_EQ(core_.Synchronize(second), absl::OkStatus());
  EXPECT_TRUE(ran);
  core_.DestroyEvent(event);
  EXPECT_EQ(core_.DestroyStream(first), absl::OkStatus());
  EXPECT_EQ(core_.DestroyStream(second), absl::OkStatus());
}

TEST_F(CoreTest, AWaitIsForTheRecordThatWasMade) {
  Stream* const first = core_.NewStream();
  Stream* const second = core_.NewStream();
  Event* const event = core_.NewEvent();
  std::atomic<bool> go{false};
  core_.Record(event, first);
  core_.WaitFor(second, event);
  // Recorded again behind something that is stuck: the wait is for the first.
  Enqueue(first, [&] { return go.load(); });
  core_.Record(event, first);
  EXPECT_EQ(core_.Synchronize(second), absl::OkStatus());
  EXPECT_FALSE(core_.Done(event));
  // Destroyed while it is queued: freed when that is done.
  core_.DestroyEvent(event);
  go = true;
  EXPECT_EQ(core_.DestroyStream(first), absl::OkStatus());
  EXPECT_EQ(core_.DestroyStream(second), absl::OkStatus());
}

TEST_F(CoreTest, WhatWaitsIsLookedAtAndWhatIsBehindIsTold) {
  Stream* const stream = core_.NewStream();
  std::atomic<int> looks{0};
  std::atomic<bool> told{false};
  auto head = std::make_unique<FakeTask>([&] { return looks > 2 && told; });
  head->look = [&] { looks.fetch_add(1); };
  auto next = std::make_unique<FakeTask>(Always);
  next->behind = [&](const std::string& what) { told = what == "a fake"; };
  core_.Enqueue(stream, std::move(head));
  core_.Enqueue(stream, std::move(next));
  EXPECT_EQ(core_.Synchronize(stream), absl::OkStatus());
  EXPECT_GT(looks, 2);
  EXPECT_TRUE(told);
  EXPECT_EQ(core_.DestroyStream(stream), absl::OkStatus());
}

TEST_F(CoreTest, ManyThreadsManyStreams) {
  constexpr int kThreads = 4, kTasks = 500;
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Stream* const stream = core_.NewStream();
      Event* const event = core_.NewEvent();
      for (int i = 0; i < kTasks; ++i) {
        Enqueue(stream, [&] { return ran.fetch_add(1) >= 0; });
        if (i % 50 == 0) core_.Record(event, stream);
        if (i % 70 == 0) core_.WaitFor(stream, event);
        if (i % 90 == 0) core_.Synchronize(event);
      }
      core_.DestroyEvent(event);
      EXPECT_EQ(core_.DestroyStream(stream), absl::OkStatus());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ran, kThreads * kTasks);
}

TEST_F(CoreTest, SleepsAndWakes) {
  Stream* const stream = core_.NewStream();
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(5ms);
    Enqueue(stream, Always);
    EXPECT_EQ(core_.Synchronize(stream), absl::OkStatus());
  }
  EXPECT_EQ(core_.DestroyStream(stream), absl::OkStatus());
}

}  // namespace
}  // namespace axon
