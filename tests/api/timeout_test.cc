// SPDX-License-Identifier: Apache-2.0
// Ranks that do not come, or stop: silence ends in a timeout that says who is
// missing, and never counts as death.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/api/stage.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

enum Marks { kReady, kFailed, kDone, kGone };

class TimeoutTest : public testing::TestWithParam<Path> {};
INSTANTIATE_TEST_SUITE_P(Paths, TimeoutTest,
                         testing::Values(Path::kLine, Path::kStaged,
                                         Path::kMapped),
                         [](const auto& info) { return PathName(info.param); });

TEST_P(TimeoutTest, NamesTheRankThatNeverCalls) {
  Stage stage;
  std::vector<pid_t> pids;
  const auto texts = RunProcesses(
      3, 60'000,
      [&](int rank) {
        Member member(stage, rank, 3, 500);
        const Doubles buffer(GetParam());
        if (rank < 2) {
          const std::string text = member.Sum(buffer.data(), buffer.count());
          stage.Mark(kFailed);
          stage.Await(kDone, 1);
          return text;
        }
        stage.Await(kFailed, 2);
        const std::string text = member.Sum(buffer.data(), buffer.count());
        stage.Mark(kDone);
        return text;
      },
      [&](const std::vector<pid_t>& started) { pids = started; });
  for (const std::string& text : texts) {
    EXPECT_THAT(
        text,
        AllOf(StartsWith("axonTimeout: rank "),
              HasSubstr("timed out after 500 ms in call 1, all_reduce of "),
              HasSubstr(" float64, sum of communicator 'test'"),
              HasSubstr(absl::StrCat("missing: ", RankText(2, pids[2]),
                                     ", which has entered no call")),
              Not(HasSubstr(absl::StrCat("missing: ", RankText(0, pids[0]))))));
  }
  EXPECT_THAT(texts[2], HasSubstr("[found by rank "));
}

TEST_P(TimeoutTest, SaysWhatTheMissingRankDidLast) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) {
    Member member(stage, rank, 2, 500);
    const Doubles buffer(GetParam());
    std::string text = member.Barrier();
    if (text != "ok") return text;
    if (rank == 1) {
      stage.Await(kFailed, 1);
      return member.Query();
    }
    text = member.Sum(buffer.data(), buffer.count());
    stage.Mark(kFailed);
    return text;
  });
  for (const std::string& text : texts) {
    EXPECT_THAT(text, AllOf(StartsWith("axonTimeout: "),
                            HasSubstr("in call 2, all_reduce of"),
                            HasSubstr("whose last was call 1, barrier")));
  }
}

// The stopped rank wakes when the others have gone on: they use the memory of
// the failed communicator and their buffers again.
TEST_P(TimeoutTest, AStoppedRankIsLateAndHarmsNobodyWhenItWakes) {
  for (const int after_ms : {3, 20, 55}) {
    Stage stage;
    const auto rank_body = [&](int rank) -> std::string {
      Member member(stage, rank, 3, 700);
      std::string text;
      {
        const Doubles buffer(GetParam());
        stage.Mark(kReady);
        text = member.SumUntilFailure(buffer.data(), buffer.count());
        if (rank == 2) {
          stage.Mark(kDone);
          return text;
        }
        const std::string query = member.Query();
        if (query != text) return absl::StrCat(query, " after ", text);
      }
      member.Destroy();
      Member next(stage, rank, 2, 30'000, 1);
      const Doubles mine(Path::kMapped, size_t{3} << 19);
      const Doubles again(GetParam());
      for (size_t i = 0; i < mine.count(); ++i) {
        mine.data()[i] = static_cast<double>(i);
      }
      if (std::string sum = next.Sum(again.data(), again.count());
          sum != "ok") {
        return sum;
      }
      stage.Mark(kGone);
      stage.Await(kDone, 1);
      for (int i = 0; i < 5; ++i) {
        const std::string sum = next.Sum(again.data(), again.count());
        if (sum != "ok") return sum;
      }
      for (size_t i = 0; i < mine.count(); ++i) {
        if (mine.data()[i] != static_cast<double>(i)) return "overwritten";
      }
      return text;
    };
    const auto texts =
        RunProcesses(3, 60'000, rank_body, [&](const std::vector<pid_t>& pids) {
          stage.Await(kReady, 3);
          SleepMs(after_ms);
          stage.Strike(pids[2], SIGSTOP);
          stage.Await(kGone, 2);
          stage.Strike(pids[2], SIGCONT);
        });
    for (const std::string& text : texts) {
      EXPECT_THAT(text, AllOf(StartsWith("axonTimeout: "),
                              HasSubstr("timed out after 700 ms"),
                              Not(HasSubstr("died"))))
          << "stopped after " << after_ms << " ms";
    }
  }
}

TEST(CallTimeoutTest, OfOneCallOfACommunicatorAndOfAGroup) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    Member member(stage, rank, 2, 300);
    double buffer[4];
    // Longer for one call, by the call and then by the communicator.
    if (rank == 1) SleepMs(1000);
    axonSetCallTimeout(30'000);
    std::string text = member.Sum(buffer, 4);
    if (text != "ok") return "own: " + text;
    axonCommSetTimeout(member.comm(), 30'000);
    if (rank == 1) SleepMs(1000);
    text = member.Sum(buffer, 4);
    if (text != "ok") return "communicator's: " + text;
    if (rank == 1) {
      stage.Await(kFailed, 1);
      return member.Query();
    }
    // Shorter, for a group.
    axonSetCallTimeout(200);
    axonGroupStart();
    axonRecv(buffer, 1, axonFloat64, 1, member.comm(), nullptr);
    axonRecv(buffer + 1, 2, axonFloat64, 1, member.comm(), nullptr);
    text = Outcome(axonGroupEnd(), member.comm());
    stage.Mark(kFailed);
    return text;
  });
  for (const std::string& text : texts) {
    EXPECT_THAT(
        text, AllOf(StartsWith("axonTimeout: "),
                    HasSubstr("timed out after 200 ms in a receive of 8 bytes "
                              "from rank 1 (host "),
                    HasSubstr("and 1 more message of "),
                    // Collectives have nothing to do with it.
                    Not(HasSubstr("missing"))));
  }
}

TEST(CallTimeoutTest, ARefusedCallUsesUpItsTimeout) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    Member member(stage, rank, 2);
    double buffer[4];
    if (axonSetCallTimeout(-1) != axonInvalidArgument) return "-1 accepted";
    if (axonCommSetTimeout(member.comm(), -1) != axonInvalidArgument) {
      return "-1 accepted";
    }
    axonSetCallTimeout(1);
    const axonResult_t refused = axonAllReduce(nullptr, buffer, 4, axonFloat64,
                                               axonSum, member.comm(), nullptr);
    if (refused != axonInvalidArgument) return Outcome(refused);
    if (rank == 1) SleepMs(300);
    return member.Sum(buffer, 4);
  });
  EXPECT_THAT(texts, testing::Each("ok"));
}

TEST(DumpTest, SaysWhatEveryRankIsDoing) {
  Stage stage;
  std::vector<pid_t> pids;
  const auto texts = RunProcesses(
      2, 60'000,
      [&](int rank) -> std::string {
        Member member(stage, rank, 2, 1500);
        const std::string fresh = member.Dump();
        std::string text = member.Barrier();
        if (text != "ok") return text;
        if (rank == 1) {
          stage.Await(kFailed, 1);
          return member.Dump();
        }
        std::string during;
        std::thread other([&] {
          SleepMs(700);
          during = member.Dump();
        });
        int64_t value = 1;
        axonAllReduce(&value, &value, 1, axonInt64, axonMax, member.comm(),
                      nullptr);
        other.join();
        stage.Mark(kFailed);
        return absl::StrCat(fresh, "---\n", during);
      },
      [&](const std::vector<pid_t>& started) { pids = started; });
  EXPECT_THAT(
      texts[0],
      AllOf(StartsWith("communicator 'test', 2 ranks, seen by rank 0\n"),
            HasSubstr(RankText(0, pids[0]) + ": has made no collective call\n"),
            HasSubstr(RankText(0, pids[0]) +
                      ": waits in call 2, all_reduce of 1 int64, max "
                      "for "),
            HasSubstr(RankText(1, pids[1]) +
                      ": last entered call 1, barrier\n")));
  EXPECT_THAT(texts[1], AllOf(HasSubstr("seen by rank 1"),
                              HasSubstr(RankText(0, pids[0])),
                              HasSubstr("\nerror: rank 0"),
                              HasSubstr("timed out after 1500 ms")));
}

TEST(DumpTest, FitsTheCallersBuffer) {
  Stage stage;
  const auto texts = RunProcesses(1, 60'000, [&](int rank) -> std::string {
    Member member(stage, rank, 1);
    size_t needed = 0;
    char text[16] = "unchanged";
    if (axonCommDump(member.comm(), text, 0, &needed) != axonSuccess ||
        std::string(text) != "unchanged" ||
        needed != member.Dump().size() + 1) {
      return absl::StrCat("needed ", needed);
    }
    axonCommDump(member.comm(), text, sizeof(text), nullptr);
    return text;
  });
  EXPECT_EQ(texts[0], "communicator 't");
}

}  // namespace
}  // namespace axon
