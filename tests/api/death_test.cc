// SPDX-License-Identifier: Apache-2.0
// Ranks that are killed at every stage: the others are told who died, inside a
// call within seconds, else at their next call or question.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/api/stage.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

enum Marks { kReady, kStruck, kDone };
// A second is promised; the machine may be busy.
constexpr int64_t kSoonMs = 3000;

// "died" texts name the rank and its process.
auto NamesTheDead(int rank, pid_t pid) {
  return AllOf(StartsWith("axonRemoteError: "),
               HasSubstr(absl::StrCat(RankText(rank, pid),
                                      " of communicator 'test' has died")));
}

// `text` unless it took too long since the strike.
std::string Timely(const Stage& stage, const std::string& text,
                   int64_t limit_ms = kSoonMs) {
  const int64_t ms = stage.MsSinceStrike();
  return ms <= limit_ms ? text : absl::StrCat("after ", ms, " ms: ", text);
}

class DeathTest : public testing::TestWithParam<Path> {};
INSTANTIATE_TEST_SUITE_P(Paths, DeathTest,
                         testing::Values(Path::kLine, Path::kStaged,
                                         Path::kMapped),
                         [](const auto& info) { return PathName(info.param); });

// Killed at any point of a run of calls, by the kernel's clock.
TEST_P(DeathTest, InsideCallsIsToldSoon) {
  for (const int after_ms : {1, 10, 37, 60}) {
    Stage stage;
    std::vector<pid_t> pids;
    const auto texts = RunProcesses(
        3, 60'000,
        [&](int rank) {
          Member member(stage, rank, 3);
          const Doubles buffer(GetParam());
          stage.Mark(kReady);
          return Timely(stage,
                        member.SumUntilFailure(buffer.data(), buffer.count()));
        },
        [&](const std::vector<pid_t>& started) {
          pids = started;
          stage.Await(kReady, 3);
          SleepMs(after_ms);
          stage.Strike(pids[1], SIGKILL);
        });
    EXPECT_THAT(texts[0], NamesTheDead(1, pids[1]));
    EXPECT_EQ(texts[1], "signal 9");
    EXPECT_THAT(texts[2], NamesTheDead(1, pids[1]));
  }
}

// Rank 0 waits for rank 1, which computes, while rank 2 dies.
TEST_P(DeathTest, IsToldWhileTheCallWaitsForAnother) {
  Stage stage;
  std::vector<pid_t> pids;
  const auto texts = RunProcesses(
      3, 60'000,
      [&](int rank) -> std::string {
        Member member(stage, rank, 3);
        const Doubles buffer(GetParam());
        stage.Mark(kReady);
        if (rank == 0) {
          const std::string text = member.Sum(buffer.data(), buffer.count());
          stage.Mark(kDone);
          return Timely(stage, text);
        }
        stage.Await(kDone, 1);
        return member.Sum(buffer.data(), buffer.count());
      },
      [&](const std::vector<pid_t>& started) {
        pids = started;
        stage.Await(kReady, 3);
        SleepMs(50);
        stage.Strike(pids[2], SIGKILL);
      });
  EXPECT_THAT(texts[0], NamesTheDead(2, pids[2]));
  EXPECT_THAT(texts[1], NamesTheDead(2, pids[2]));
}

TEST_P(DeathTest, BetweenCallsIsToldAtTheNextCallOrQuery) {
  Stage stage;
  std::vector<pid_t> pids;
  const auto texts = RunProcesses(
      3, 60'000,
      [&](int rank) -> std::string {
        Member member(stage, rank, 3);
        const Doubles buffer(GetParam());
        std::string text = member.Sum(buffer.data(), buffer.count());
        if (text != "ok") return text;
        stage.Mark(kReady);
        stage.Await(kStruck, 1);
        if (rank == 2) return member.Sum(buffer.data(), buffer.count());
        const int64_t since = stage.MsSinceStrike();
        do {
          text = member.Query();
        } while (text == "ok" && stage.MsSinceStrike() - since < kSoonMs);
        // What the query found fails later calls.
        const std::string next = member.Sum(buffer.data(), buffer.count());
        return next == text ? text : absl::StrCat(text, " then ", next);
      },
      [&](const std::vector<pid_t>& started) {
        pids = started;
        stage.Await(kReady, 3);
        stage.Strike(pids[1], SIGKILL);
        stage.Mark(kStruck);
      });
  EXPECT_THAT(texts[0], NamesTheDead(1, pids[1]));
  EXPECT_THAT(texts[2], NamesTheDead(1, pids[1]));
}

TEST(MessageDeathTest, OfASenderAndOfAReceiver) {
  Stage stage;
  std::vector<pid_t> pids;
  const auto texts = RunProcesses(
      3, 60'000,
      [&](int rank) -> std::string {
        Member member(stage, rank, 3);
        const Doubles buffer(Path::kStaged);
        stage.Mark(kReady);
        if (rank == 2) SleepMs(60'000);
        // More than a channel holds, so that the sender waits.
        const axonResult_t result =
            rank == 0 ? axonSend(buffer.data(), buffer.count(), axonFloat64, 2,
                                 member.comm(), nullptr)
                      : axonRecv(buffer.data(), buffer.count(), axonFloat64, 2,
                                 member.comm(), nullptr);
        return Timely(stage, Outcome(result, member.comm()));
      },
      [&](const std::vector<pid_t>& started) {
        pids = started;
        stage.Await(kReady, 3);
        SleepMs(50);
        stage.Strike(pids[2], SIGKILL);
      });
  EXPECT_THAT(texts[0], NamesTheDead(2, pids[2]));
  EXPECT_THAT(texts[1], NamesTheDead(2, pids[2]));
}

TEST(StreamDeathTest, EndsWhatIsQueued) {
  Stage stage;
  std::vector<pid_t> pids;
  const auto texts = RunProcesses(
      2, 60'000,
      [&](int rank) -> std::string {
        Member member(stage, rank, 2);
        stage.Mark(kReady);
        if (rank == 1) SleepMs(60'000);
        axonStream_t stream = nullptr;
        axonStreamCreate(&stream);
        double values[3] = {1, 2, 3};
        for (double& value : values) {
          axonAllReduce(&value, &value, 1, axonFloat64, axonSum, member.comm(),
                        stream);
        }
        return Timely(stage, Outcome(axonStreamSynchronize(stream)));
      },
      [&](const std::vector<pid_t>& started) {
        pids = started;
        stage.Await(kReady, 2);
        SleepMs(50);
        stage.Strike(pids[1], SIGKILL);
      });
  EXPECT_THAT(texts[0], NamesTheDead(1, pids[1]));
}

// Killed while the ranks meet, at many moments: before it comes, the others
// miss it; then they are told at once, or have a communicator whose first call
// tells them.
TEST(InitDeathTest, IsToldAtAnyMoment) {
  for (int i = 0; i < 16; ++i) {
    Stage stage;
    std::vector<pid_t> pids;
    // Rank 0, which serves the meeting, and another by turns.
    const int dead = i % 2 == 0 ? 2 : 0;
    const auto body = [&](int rank) -> std::string {
      setenv("AXON_INIT_TIMEOUT", "5000", 1);
      const axonUniqueId id = stage.Id(rank == 0);
      stage.Mark(kReady);
      stage.Await(kReady, 3);
      axonComm_t comm = nullptr;
      axonConfig_t config = AXON_CONFIG_INITIALIZER;
      config.commName = "test";
      axonResult_t result = axonCommInitRankConfig(&comm, 3, id, rank, &config);
      while (result == axonSuccess) result = axonBarrier(comm, nullptr);
      // A place where nobody listens is tried for 3 s.
      return Timely(stage, Outcome(result, comm), kSoonMs + 5000);
    };
    const auto texts =
        RunProcesses(3, 60'000, body, [&](const std::vector<pid_t>& started) {
          pids = started;
          stage.Await(kReady, 3);
          usleep(static_cast<useconds_t>(i * 700));
          stage.Strike(pids[static_cast<size_t>(dead)], SIGKILL);
        });
    const std::string pid = absl::StrCat(pids[static_cast<size_t>(dead)]);
    for (int rank = 0; rank < 3; ++rank) {
      const std::string& text = texts[static_cast<size_t>(rank)];
      if (rank == dead) {
        EXPECT_EQ(text, "signal 9");
        continue;
      }
      EXPECT_THAT(
          text,
          AnyOf(AllOf(StartsWith("axonRemoteError: "), HasSubstr(pid)),
                AllOf(StartsWith("axonRemoteError: "),
                      HasSubstr("the process that made this id has ended")),
                AllOf(StartsWith("axonTimeout: "),
                      HasSubstr(absl::StrCat("rank ", dead)))))
          << "killed after " << i * 700 << " us";
    }
  }
}

TEST(InitDeathTest, OfOneThatNeverCameEndsAtTheTimeLimit) {
  Stage stage;
  const auto texts = RunProcesses(3, 60'000, [&](int rank) -> std::string {
    setenv("AXON_INIT_TIMEOUT", "700", 1);
    const axonUniqueId id = stage.Id(rank == 0);
    if (rank == 1) raise(SIGKILL);
    axonComm_t comm = nullptr;
    return Outcome(axonCommInitRank(&comm, 3, id, rank));
  });
  for (const int rank : {0, 2}) {
    EXPECT_THAT(texts[static_cast<size_t>(rank)],
                AllOf(StartsWith("axonTimeout: "), HasSubstr("rank 1")));
  }
}

}  // namespace
}  // namespace axon
