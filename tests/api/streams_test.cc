// SPDX-License-Identifier: Apache-2.0
// Streams and events: order, queries, waits across streams, callbacks,
// progress of independent communicators, and rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "axon/axon.h"
#include "tests/api/ranks.h"

namespace axon {
namespace {

using std::chrono::milliseconds;

class Queue {
 public:
  Queue() { EXPECT_AXON_OK(axonStreamCreate(&stream_)); }
  ~Queue() { EXPECT_AXON_OK(axonStreamDestroy(stream_)); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  operator axonStream_t() const { return stream_; }  // NOLINT: a handle

 private:
  axonStream_t stream_ = nullptr;
};

class Mark {
 public:
  Mark() { EXPECT_AXON_OK(axonEventCreate(&event_)); }
  ~Mark() {
    if (event_ != nullptr) Destroy();
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  operator axonEvent_t() const { return event_; }  // NOLINT: a handle
  void Destroy() {
    EXPECT_AXON_OK(axonEventDestroy(event_));
    event_ = nullptr;
  }

 private:
  axonEvent_t event_ = nullptr;
};

axonResult_t Sum(int32_t& value, axonComm_t comm, axonStream_t stream) {
  return axonAllReduce(&value, &value, 1, axonInt32, axonSum, comm, stream);
}

// Waits for something that must come; a minute is for ever.
bool Comes(const std::function<bool()>& it) {
  for (int i = 0; i < 60'000; ++i) {
    if (it()) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

TEST(StreamTest, RunsCallsInOrder) {
  OnThreads(3, [](axonComm_t comm, int rank) {
    const Queue queue;
    std::vector<int32_t> values(1000, rank == 0 ? 1 : 0);
    int32_t last = rank;
    for (int i = 0; i < 100; ++i) {
      // Each call changes what the call before made: 3^100 modulo 2^32.
      ASSERT_AXON_OK(axonAllReduce(values.data(), values.data(), 1000,
                                   axonInt32, axonSum, comm, queue));
    }
    ASSERT_AXON_OK(axonBcast(&last, 1, axonInt32, 2, comm, queue));
    ASSERT_AXON_OK(axonStreamSynchronize(queue));
    uint32_t power = 1;
    for (int i = 1; i < 100; ++i) power *= 3;
    EXPECT_THAT(values, testing::Each(static_cast<int32_t>(power)));
    EXPECT_EQ(last, 2);
    EXPECT_AXON_OK(axonStreamQuery(queue));
  });
}

TEST(StreamTest, QueryTellsWhetherAllIsDone) {
  const Comms comms(2);
  const Queue first, second;
  EXPECT_AXON_OK(axonStreamQuery(first));
  int32_t a = 1, b = 2;
  ASSERT_AXON_OK(Sum(a, comms[0], first));
  EXPECT_EQ(axonStreamQuery(first), axonInProgress);
  axonResult_t state = axonSuccess;
  EXPECT_AXON_OK(axonCommGetAsyncError(comms[0], &state));
  EXPECT_EQ(state, axonInProgress);
  ASSERT_AXON_OK(Sum(b, comms[1], second));
  EXPECT_TRUE(Comes([&] { return axonStreamQuery(first) == axonSuccess; }));
  ASSERT_AXON_OK(axonStreamSynchronize(second));
  EXPECT_EQ(a, 3);
  EXPECT_EQ(b, 3);
  EXPECT_AXON_OK(axonCommFinalize(comms[0]));
  EXPECT_AXON_OK(axonCommGetAsyncError(comms[0], &state));
  EXPECT_EQ(state, axonSuccess);
}

TEST(StreamTest, ABlockingCallComesAfterQueuedOnes) {
  OnThreads(2, [](axonComm_t comm, int) {
    const Queue one, other;
    for (int i = 0; i < 20; ++i) {
      int32_t value = 1;
      ASSERT_AXON_OK(Sum(value, comm, one));
      ASSERT_AXON_OK(Sum(value, comm, other));
      ASSERT_AXON_OK(Sum(value, comm, nullptr));
      ASSERT_EQ(value, 8);
    }
  });
}

// One rank queues, the other blocks: the wire does not know.
TEST(StreamTest, RanksMayDifferInHowTheyCall) {
  OnThreads(2, [](axonComm_t comm, int rank) {
    const Queue queue;
    int32_t value = 1;
    for (int i = 0; i < 12; ++i) {
      ASSERT_AXON_OK(Sum(
          value, comm,
          (i + rank) % 2 == 0 ? static_cast<axonStream_t>(queue) : nullptr));
    }
    ASSERT_AXON_OK(axonStreamSynchronize(queue));
    EXPECT_EQ(value, 4096);
  });
}

TEST(StreamTest, CommunicatorsOnTheirOwnStreamsAreIndependent) {
  const Comms a(2), b(2), c(2);
  const Queue queues[2][3];
  int32_t values[2][3] = {{1, 10, 100}, {1, 10, 100}};
  const Comms* const comms[] = {&a, &b, &c};
  // Rank 0 has queued all three; rank 1 comes to them in the opposite order,
  // each only when the one before is done. One queue would never move.
  for (int k = 0; k < 3; ++k) {
    ASSERT_AXON_OK(Sum(values[0][k], (*comms[k])[0], queues[0][k]));
  }
  for (int k = 2; k >= 0; --k) {
    ASSERT_AXON_OK(Sum(values[1][k], (*comms[k])[1], queues[1][k]));
    ASSERT_AXON_OK(axonStreamSynchronize(queues[1][k]));
    ASSERT_AXON_OK(axonStreamSynchronize(queues[0][k]));
    EXPECT_EQ(axonStreamQuery(queues[0][0]),
              k == 0 ? axonSuccess : axonInProgress);
  }
  EXPECT_THAT(values[0], testing::ElementsAre(2, 20, 200));
  EXPECT_THAT(values[1], testing::ElementsAre(2, 20, 200));
}

TEST(StreamTest, DestroyWaitsForWhatIsQueued) {
  OnThreads(2, [](axonComm_t comm, int) {
    std::vector<int32_t> values(100'000, 1);
    axonStream_t stream = nullptr;
    ASSERT_AXON_OK(axonStreamCreate(&stream));
    ASSERT_AXON_OK(axonAllReduce(values.data(), values.data(), values.size(),
                                 axonInt32, axonSum, comm, stream));
    ASSERT_AXON_OK(axonStreamDestroy(stream));
    EXPECT_THAT(values, testing::Each(2));
  });
}

std::string DumpOf(axonComm_t comm) {
  char text[4096];
  EXPECT_AXON_OK(axonCommDump(comm, text, sizeof(text), nullptr));
  return text;
}

TEST(StreamTest, ADumpTellsWhatMessagesACallWaitsBehind) {
  const Comms first(2), second(2);
  const Queue queue;
  int32_t a = 1, got = 0;
  ASSERT_AXON_OK(axonRecv(&got, 1, axonInt32, 1, first[0], queue));
  ASSERT_AXON_OK(Sum(a, second[0], queue));
  EXPECT_TRUE(Comes(
      [&] { return DumpOf(second[0]).find("behind") != std::string::npos; }));
  EXPECT_THAT(DumpOf(second[0]),
              testing::HasSubstr("behind a receive of 4 bytes from rank 1"));
  const int32_t sent = 5;
  int32_t b = 1;
  ASSERT_AXON_OK(axonSend(&sent, 1, axonInt32, 0, first[1], nullptr));
  ASSERT_AXON_OK(Sum(b, second[1], nullptr));
  ASSERT_AXON_OK(axonStreamSynchronize(queue));
}

// While it waits behind another call a dump says so, and no longer.
TEST(StreamTest, ADumpTellsWhatACallWaitsBehind) {
  const Comms first(2), second(2);
  const Queue queue;
  int32_t a = 1, b = 1, sent = 5, got = 0;
  ASSERT_AXON_OK(Sum(a, first[0], queue));
  ASSERT_AXON_OK(axonSend(&sent, 1, axonInt32, 1, second[0], queue));
  EXPECT_TRUE(Comes([&] {
    return DumpOf(second[0]).find("behind") != std::string::npos;
  })) << DumpOf(second[0]);
  ASSERT_AXON_OK(Sum(b, first[1], nullptr));
  ASSERT_AXON_OK(axonRecv(&got, 1, axonInt32, 0, second[1], nullptr));
  ASSERT_AXON_OK(axonStreamSynchronize(queue));
  EXPECT_EQ(got, 5);
  EXPECT_THAT(DumpOf(second[0]), testing::Not(testing::HasSubstr("behind")));
}

TEST(StreamTest, AnIdleCommunicatorUsesNoProcessor) {
  InProcesses(
      1, [](int) { return std::vector<std::string>{}; },
      [](int) {
        const Comms comms(2);
        const Queue queue, other;
        int32_t a = 1, b = 1;
        ASSERT_AXON_OK(Sum(a, comms[0], queue));
        ASSERT_AXON_OK(Sum(b, comms[1], other));
        ASSERT_AXON_OK(axonStreamSynchronize(queue));
        ASSERT_AXON_OK(axonStreamSynchronize(other));
        const auto used = [] {
          rusage usage;
          getrusage(RUSAGE_SELF, &usage);
          return usage.ru_utime.tv_sec * 1e3 + usage.ru_utime.tv_usec * 1e-3 +
                 usage.ru_stime.tv_sec * 1e3 + usage.ru_stime.tv_usec * 1e-3;
        };
        // Whoever spun has gone to sleep by then.
        std::this_thread::sleep_for(milliseconds(100));
        const double before = used();
        std::this_thread::sleep_for(milliseconds(500));
        EXPECT_LT(used() - before, 25) << "milliseconds of 500";
      });
}

TEST(EventTest, OrdersStreams) {
  const Comms comms(2), others(2);
  const Queue first, second, peer;
  const Mark mark;
  int32_t a = 1, b = 2, c = 100, d = 200;
  // `second` copies what `first` made, through a communicator of its own.
  ASSERT_AXON_OK(Sum(a, comms[0], first));
  ASSERT_AXON_OK(axonEventRecord(mark, first));
  ASSERT_AXON_OK(axonStreamWaitEvent(second, mark));
  ASSERT_AXON_OK(
      axonAllReduce(&a, &c, 1, axonInt32, axonSum, others[0], second));
  ASSERT_AXON_OK(Sum(d, others[1], peer));
  EXPECT_EQ(axonEventQuery(mark), axonInProgress);
  EXPECT_EQ(axonStreamQuery(second), axonInProgress);
  ASSERT_AXON_OK(Sum(b, comms[1], nullptr));
  ASSERT_AXON_OK(axonEventSynchronize(mark));
  EXPECT_AXON_OK(axonEventQuery(mark));
  EXPECT_EQ(a, 3);
  ASSERT_AXON_OK(axonStreamSynchronize(second));
  ASSERT_AXON_OK(axonStreamSynchronize(peer));
  EXPECT_EQ(c, 203);
}

TEST(EventTest, NeverRecordedIsDone) {
  const Queue queue;
  const Mark mark;
  EXPECT_AXON_OK(axonEventQuery(mark));
  EXPECT_AXON_OK(axonEventSynchronize(mark));
  ASSERT_AXON_OK(axonStreamWaitEvent(queue, mark));
  EXPECT_AXON_OK(axonStreamSynchronize(queue));
}

TEST(EventTest, AWaitKeepsTheRecordThatItSaw) {
  const Comms comms(2), others(2);
  const Queue done, blocked, waiting, peer;
  const Mark mark;
  ASSERT_AXON_OK(axonEventRecord(mark, done));
  ASSERT_AXON_OK(axonEventSynchronize(mark));
  ASSERT_AXON_OK(axonStreamWaitEvent(waiting, mark));
  int32_t a = 1, b = 2;
  ASSERT_AXON_OK(Sum(a, comms[0], blocked));
  ASSERT_AXON_OK(axonEventRecord(mark, blocked));
  // The first record was done: `waiting` is free, the event is not.
  EXPECT_AXON_OK(axonStreamSynchronize(waiting));
  EXPECT_EQ(axonEventQuery(mark), axonInProgress);
  ASSERT_AXON_OK(Sum(b, comms[1], nullptr));
  EXPECT_AXON_OK(axonEventSynchronize(mark));
  EXPECT_EQ(a, 3);
}

TEST(EventTest, MayBeDestroyedWhileWaitedFor) {
  const Comms comms(2);
  const Queue blocked, waiting;
  int32_t a = 1, b = 2;
  ASSERT_AXON_OK(Sum(a, comms[0], blocked));
  Mark mark;
  ASSERT_AXON_OK(axonEventRecord(mark, blocked));
  ASSERT_AXON_OK(axonStreamWaitEvent(waiting, mark));
  mark.Destroy();
  EXPECT_EQ(axonStreamQuery(waiting), axonInProgress);
  ASSERT_AXON_OK(Sum(b, comms[1], nullptr));
  EXPECT_AXON_OK(axonStreamSynchronize(waiting));
  EXPECT_EQ(a, 3);
}

// What callbacks were called with.
struct Calls {
  std::vector<int> order;
  std::vector<axonResult_t> results;
  std::vector<std::thread::id> threads;
  std::atomic<int> done{0};  // by the callback, last; release: the lists
};

struct Argument {
  Calls* calls;
  int number;
};

void Note(axonResult_t result, void* arg) {
  const auto* argument = static_cast<Argument*>(arg);
  Calls& calls = *argument->calls;
  calls.order.push_back(argument->number);
  calls.results.push_back(result);
  calls.threads.push_back(std::this_thread::get_id());
  calls.done.fetch_add(1, std::memory_order_release);
}

TEST(CallbackTest, ComeInOrderOnAThreadOfTheirOwn) {
  const Comms comms(1);
  Calls calls;
  std::vector<Argument> arguments;
  for (int i = 0; i < 50; ++i) arguments.push_back({&calls, i});
  const Queue queue;
  int32_t value = 1;
  for (Argument& argument : arguments) {
    ASSERT_AXON_OK(Sum(value, comms[0], queue));
    ASSERT_AXON_OK(axonStreamAddCallback(queue, Note, &argument));
  }
  ASSERT_TRUE(Comes([&] { return calls.done.load() == 50; }));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(calls.order[static_cast<size_t>(i)], i);
  }
  EXPECT_THAT(calls.results, testing::Each(axonSuccess));
  EXPECT_THAT(calls.threads, testing::Each(calls.threads[0]));
  EXPECT_NE(calls.threads[0], std::this_thread::get_id());
}

TEST(CallbackTest, WaitsForWhatCameBeforeIt) {
  const Comms comms(2);
  const Queue queue;
  Calls calls;
  Argument argument{&calls, 0};
  int32_t a = 1, b = 2;
  ASSERT_AXON_OK(Sum(a, comms[0], queue));
  ASSERT_AXON_OK(axonStreamAddCallback(queue, Note, &argument));
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(calls.done.load(), 0);
  ASSERT_AXON_OK(Sum(b, comms[1], nullptr));
  EXPECT_TRUE(Comes([&] { return calls.done.load() == 1; }));
  EXPECT_EQ(a, 3);
}

struct Chain {
  axonComm_t comm;
  axonStream_t stream;
  int32_t value = 1;
  std::atomic<int> left{10};  // by the callback; read by the test
};

// Makes a blocking call, queues another and comes again.
void GoOn(axonResult_t result, void* arg) {
  auto* chain = static_cast<Chain*>(arg);
  EXPECT_EQ(result, axonSuccess);
  EXPECT_AXON_OK(axonAllReduce(&chain->value, &chain->value, 1, axonInt32,
                               axonSum, chain->comm, nullptr));
  if (chain->left.load() == 1) {
    chain->left.store(0);
    return;
  }
  EXPECT_AXON_OK(axonAllReduce(&chain->value, &chain->value, 1, axonInt32,
                               axonSum, chain->comm, chain->stream));
  EXPECT_AXON_OK(axonStreamSynchronize(chain->stream));
  chain->left.fetch_sub(1);
  EXPECT_AXON_OK(axonStreamAddCallback(chain->stream, GoOn, arg));
}

// In processes: all ranks of one would share the thread that calls back.
TEST(CallbackTest, MayMakeCalls) {
  OnProcesses(2, {}, [](axonComm_t comm, int) {
    const Queue queue;
    Chain chain{comm, queue};
    ASSERT_AXON_OK(axonStreamAddCallback(queue, GoOn, &chain));
    ASSERT_TRUE(Comes([&] { return chain.left.load() == 0; }));
    EXPECT_EQ(chain.value, 1 << 19);
  });
}

}  // namespace
}  // namespace axon
