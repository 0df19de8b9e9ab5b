// SPDX-License-Identifier: Apache-2.0
// axonCommAbort from another thread frees whoever is stuck, soon, whatever the
// peers do; the peers are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tests/api/ranks.h"
#include "tests/api/stage.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

enum Marks { kAborted, kDone };
// A second is promised; the machine may be busy.
constexpr int64_t kSoonMs = 3000;

// What rank 0 is stuck in when it is aborted.
struct Stuck {
  const char* name;
  std::string (*call)(Member& member, const Doubles& buffer);
};

std::string InSum(Member& member, const Doubles& buffer) {
  return member.Sum(buffer.data(), buffer.count());
}
std::string InReceive(Member& member, const Doubles& buffer) {
  return Outcome(axonRecv(buffer.data(), buffer.count(), axonFloat64, 1,
                          member.comm(), nullptr));
}
std::string InSend(Member& member, const Doubles& buffer) {
  return Outcome(axonSend(buffer.data(), buffer.count(), axonFloat64, 1,
                          member.comm(), nullptr));
}
std::string InGroup(Member& member, const Doubles& buffer) {
  axonGroupStart();
  axonRecv(buffer.data(), 1, axonFloat64, 1, member.comm(), nullptr);
  axonAllReduce(buffer.data() + 1, buffer.data() + 1, 1, axonFloat64, axonSum,
                member.comm(), nullptr);
  return Outcome(axonGroupEnd());
}
std::string InSplit(Member& member, const Doubles&) {
  axonComm_t made = nullptr;
  return Outcome(axonCommSplit(member.comm(), 0, 0, &made, nullptr));
}
std::string InStreamSynchronize(Member& member, const Doubles& buffer) {
  axonStream_t stream = nullptr;
  axonStreamCreate(&stream);
  for (size_t i = 0; i < 3; ++i) {
    axonAllReduce(buffer.data() + i, buffer.data() + i, 1, axonFloat64, axonSum,
                  member.comm(), stream);
  }
  std::string text = Outcome(axonStreamSynchronize(stream));
  axonStreamDestroy(stream);
  return text;
}

class AbortTest : public testing::TestWithParam<Stuck> {};
INSTANTIATE_TEST_SUITE_P(, AbortTest,
                         testing::Values(Stuck{"collective", InSum},
                                         Stuck{"receive", InReceive},
                                         Stuck{"send", InSend},
                                         Stuck{"group", InGroup},
                                         Stuck{"split", InSplit},
                                         Stuck{"stream", InStreamSynchronize}),
                         [](const auto& info) { return info.param.name; });

// Both members' outcomes: of the stuck call, and of the peer's next one.
TEST_P(AbortTest, FreesTheCallerAndTellsThePeer) {
  for (const Path path : {Path::kStaged, Path::kMapped}) {
    Stage stage;
    std::vector<pid_t> pids;
    const auto texts = RunProcesses(
        2, 60'000,
        [&](int rank) -> std::string {
          Member member(stage, rank, 2);
          const Doubles buffer(path);
          if (rank == 1) {
            stage.Await(kAborted, 1);
            const std::string text = member.Sum(buffer.data(), buffer.count());
            stage.Mark(kDone);
            return text;
          }
          std::string stuck;
          std::thread caller([&] { stuck = GetParam().call(member, buffer); });
          SleepMs(200);
          const int64_t began = NowNs();
          const std::string aborted = Outcome(axonCommAbort(member.comm()));
          member.Forget();
          const int64_t ms = (NowNs() - began) / 1'000'000;
          caller.join();
          stage.Mark(kAborted);
          if (aborted != "ok") return aborted;
          if (ms > kSoonMs) return absl::StrCat("aborted after ", ms, " ms");
          stage.Await(kDone, 1);
          return stuck;
        },
        [&](const std::vector<pid_t>& started) { pids = started; });
    EXPECT_THAT(
        texts[0],
        AllOf(StartsWith("axonInvalidUsage: "),
              HasSubstr("communicator 'test' was aborted by this rank")));
    EXPECT_THAT(texts[1],
                AllOf(StartsWith("axonRemoteError: "),
                      HasSubstr(absl::StrCat(RankText(0, pids[0]),
                                             " aborted communicator 'test'"))));
  }
}

TEST(AbortOfPeersTest, EndsTheirCallsSoon) {
  Stage stage;
  const auto texts = RunProcesses(3, 60'000, [&](int rank) -> std::string {
    Member member(stage, rank, 3);
    double buffer[4];
    if (rank == 2) {
      SleepMs(300);
      stage.Strike(getpid(), 0);
      const std::string text = Outcome(axonCommAbort(member.comm()));
      member.Forget();
      return text;
    }
    const std::string text = member.Sum(buffer, 4);
    const int64_t ms = stage.MsSinceStrike();
    return ms <= kSoonMs ? text : absl::StrCat("after ", ms, " ms: ", text);
  });
  EXPECT_EQ(texts[2], "ok");
  for (const int rank : {0, 1}) {
    EXPECT_THAT(texts[static_cast<size_t>(rank)],
                AllOf(StartsWith("axonRemoteError: rank 2 "),
                      HasSubstr("aborted communicator 'test'")));
  }
}

// Calls that are queued behind another communicator's need not wait for it.
TEST(AbortOfQueuedTest, DoesNotWaitForOthersOfTheStream) {
  const Comms busy(2);
  axonComm_t comms[2];
  ASSERT_AXON_OK(axonCommInitAll(comms, 2, nullptr));
  axonStream_t first = nullptr, second = nullptr;
  ASSERT_AXON_OK(axonStreamCreate(&first));
  ASSERT_AXON_OK(axonStreamCreate(&second));
  int32_t values[6] = {1, 1, 1, 1, 1, 1};
  const auto sum = [&](int i, axonComm_t comm, axonStream_t stream) {
    return axonAllReduce(&values[i], &values[i], 1, axonInt32, axonSum, comm,
                         stream);
  };
  EXPECT_AXON_OK(sum(0, busy[0], first));
  EXPECT_AXON_OK(sum(1, comms[0], first));
  EXPECT_AXON_OK(axonSend(&values[2], 1, axonInt32, 1, comms[0], first));
  // Waits for its turn, behind the first stream's.
  EXPECT_AXON_OK(sum(3, comms[0], second));
  EXPECT_AXON_OK(sum(4, busy[0], first));
  EXPECT_AXON_OK(axonCommAbort(comms[0]));
  EXPECT_AXON_ERROR(axonStreamDestroy(second), axonInvalidUsage, "aborted");
  EXPECT_AXON_ERROR(axonBarrier(comms[1], nullptr), axonRemoteError, "aborted");
  EXPECT_AXON_OK(axonCommDestroy(comms[1]));
  EXPECT_EQ(axonStreamQuery(first), axonInProgress);
  // The others of the stream are not concerned.
  values[5] = 2;
  EXPECT_AXON_OK(sum(5, busy[1], nullptr));
  EXPECT_AXON_OK(sum(5, busy[1], nullptr));
  EXPECT_AXON_ERROR(axonStreamDestroy(first), axonInvalidUsage, "aborted");
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(values[4], 4);
}

TEST(AbortOfQueuedTest, DropsWhatTheThreadsGroupHolds) {
  const Comms others(1);
  axonComm_t comm = nullptr;
  ASSERT_AXON_OK(axonCommInitAll(&comm, 1, nullptr));
  int32_t value = 1, other = 1;
  ASSERT_AXON_OK(axonGroupStart());
  EXPECT_AXON_OK(axonBcast(&value, 1, axonInt32, 0, comm, nullptr));
  EXPECT_AXON_OK(axonRecv(&other, 1, axonInt32, 0, others[0], nullptr));
  EXPECT_AXON_OK(axonCommAbort(comm));
  EXPECT_AXON_OK(axonSend(&value, 1, axonInt32, 0, others[0], nullptr));
  EXPECT_AXON_OK(axonGroupEnd());
}

// Another thread's group cannot be entered: the remedy is told, and works.
TEST(AbortOfQueuedTest, WaitsForAnotherThreadsGroup) {
  axonComm_t comm = nullptr;
  ASSERT_AXON_OK(axonCommInitAll(&comm, 1, nullptr));
  int32_t value = 1;
  ASSERT_AXON_OK(axonGroupStart());
  EXPECT_AXON_OK(axonBcast(&value, 1, axonInt32, 0, comm, nullptr));
  std::thread([&] {
    EXPECT_AXON_ERROR(axonCommAbort(comm), axonInvalidUsage, "abort it again");
  }).join();
  EXPECT_AXON_ERROR(axonGroupEnd(), axonInvalidUsage, "aborted");
  EXPECT_AXON_OK(axonCommAbort(comm));
}

// Each thread finds it alive or gone, and it is freed once.
TEST(AbortTogetherTest, WithAnotherAbortOrADestroyFreesOnce) {
  for (int i = 0; i < 200; ++i) {
    axonComm_t comm = nullptr;
    ASSERT_AXON_OK(axonCommInitAll(&comm, 1, nullptr));
    std::atomic<int> ready{0}, ended{0};
    const auto end = [&](axonResult_t (*how)(axonComm_t)) {
      ready.fetch_add(1);
      while (ready.load() < 3) {
      }
      const axonResult_t result = how(comm);
      if (result == axonSuccess) {
        ended.fetch_add(1);
      } else {
        EXPECT_THAT(LastError(), testing::HasSubstr("not a live one"));
      }
    };
    std::thread first([&] { end(axonCommAbort); });
    std::thread second([&] { end(axonCommAbort); });
    end(axonCommDestroy);
    first.join();
    second.join();
    EXPECT_GE(ended.load(), 1);
    EXPECT_AXON_ERROR(axonCommAbort(comm), axonInvalidArgument, "live");
  }
}

// A destroy that waits for the communicator's calls is freed by an abort.
TEST(AbortTogetherTest, EndsADestroyThatWaits) {
  axonComm_t comms[2];
  ASSERT_AXON_OK(axonCommInitAll(comms, 2, nullptr));
  axonStream_t stream = nullptr;
  ASSERT_AXON_OK(axonStreamCreate(&stream));
  int32_t value = 1;
  ASSERT_AXON_OK(
      axonAllReduce(&value, &value, 1, axonInt32, axonSum, comms[0], stream));
  std::thread destroy([&] { axonCommDestroy(comms[0]); });
  SleepMs(20);
  EXPECT_AXON_OK(axonCommAbort(comms[0]));
  destroy.join();
  EXPECT_AXON_ERROR(axonStreamDestroy(stream), axonInvalidUsage, "aborted");
  EXPECT_AXON_OK(axonCommDestroy(comms[1]));
}

// After the abort the process goes on with another communicator.
TEST(AbortOfPeersTest, LeavesOthersOfTheProcessAlone) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    Member good(stage, rank, 2);
    Member bad(stage, rank, 2, 30'000, 1);
    double buffer[4];
    if (rank == 0) {
      std::thread stuck([&] { bad.Barrier(); });
      SleepMs(100);
      const axonResult_t result = axonCommAbort(bad.comm());
      bad.Forget();
      stuck.join();
      if (result != axonSuccess) return Outcome(result);
    }
    for (int i = 0; i < 100; ++i) {
      const std::string text = good.Sum(buffer, 4);
      if (text != "ok") return text;
    }
    return "ok";
  });
  EXPECT_THAT(texts, testing::Each("ok"));
}

}  // namespace
}  // namespace axon
