// SPDX-License-Identifier: Apache-2.0
// How processes and communicators end: without destroying, in any order, while
// peers are in the last call; and what a child of fork may do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tests/api/stage.h"
#include "tests/support/processes.h"
#include "tests/support/sanitizer.h"

namespace axon {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

enum Marks { kDone, kLeft };

// The last call's data reach the peers though a rank leaves at once.
class LastCallTest : public testing::TestWithParam<Path> {};
INSTANTIATE_TEST_SUITE_P(Paths, LastCallTest,
                         testing::Values(Path::kLine, Path::kStaged,
                                         Path::kMapped),
                         [](const auto& info) { return PathName(info.param); });

// Which of the ways a rank takes after its last call.
enum class Leave { kReturn, kDestroy, kExit };

std::string SumAndLeave(Stage& stage, int rank, Path path, Leave leave) {
  Member member(stage, rank, 3);
  const Doubles buffer(path);
  for (int i = 0; i < 3; ++i) {
    const std::string text = member.Sum(buffer.data(), buffer.count());
    if (text != "ok") return text;
  }
  // A broadcast whose root need not wait for anybody.
  double* const at = buffer.data();
  for (size_t i = 0; i < buffer.count(); ++i) {
    at[i] = rank == 0 ? static_cast<double>(i) : -1;
  }
  if (rank == 1) SleepMs(100);
  const std::string text = Outcome(
      axonBcast(at, buffer.count(), axonFloat64, 0, member.comm(), nullptr),
      member.comm());
  for (size_t i = 0; i < buffer.count(); ++i) {
    if (at[i] != static_cast<double>(i))
      return absl::StrCat(text, ", not data");
  }
  if (leave == Leave::kExit) exit(text == "ok" ? 40 : 41);
  if (leave == Leave::kReturn) member.Forget();
  return text;
}

TEST_P(LastCallTest, ReachesAllThoughRanksDestroyAtOnce) {
  for (int i = 0; i < 5; ++i) {
    Stage stage;
    const auto texts = RunProcesses(3, 60'000, [&](int rank) {
      return SumAndLeave(stage, rank, GetParam(), Leave::kDestroy);
    });
    EXPECT_THAT(texts, Each("ok"));
  }
}

TEST_P(LastCallTest, ReachesAllThoughProcessesEndWithoutDestroying) {
  for (int i = 0; i < 5; ++i) {
    Stage stage;
    const auto texts = RunProcesses(3, 60'000, [&](int rank) {
      return SumAndLeave(stage, rank, GetParam(), Leave::kReturn);
    });
    EXPECT_THAT(texts, Each("ok"));
  }
}

// exit() runs destructors of static objects while the library's threads live.
TEST_P(LastCallTest, ReachesAllThoughProcessesExit) {
  Stage stage;
  const auto texts = RunProcesses(3, 60'000, [&](int rank) {
    return SumAndLeave(stage, rank, GetParam(), Leave::kExit);
  });
  EXPECT_THAT(texts, Each("exit 40"));
}

TEST(ExitTest, WithWorkOnStreamsIsClean) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    Member member(stage, rank, 2);
    member.Barrier();
    axonStream_t stream = nullptr;
    axonStreamCreate(&stream);
    static double values[64] = {};
    for (double& value : values) {
      // Rank 1 makes half of the calls.
      if (rank == 1 && &value - values > 32) break;
      axonAllReduce(&value, &value, 1, axonFloat64, axonSum, member.comm(),
                    stream);
    }
    exit(42);
  });
  EXPECT_THAT(texts, Each("exit 42"));
}

// A process that ends as soon as it has met the others, be it the one that
// served the meeting, does not spoil it for them.
TEST(ExitTest, RightAfterMeetingHarmsNobody) {
  for (int i = 0; i < 20; ++i) {
    Stage stage;
    const auto texts = RunProcesses(3, 60'000, [&](int rank) {
      const axonUniqueId id = stage.Id(rank == 0);
      axonComm_t comm = nullptr;
      return Outcome(axonCommInitRank(&comm, 3, id, rank));
    });
    EXPECT_THAT(texts, Each("ok"));
  }
}

TEST(DestroyTest, WorksInAnyOrder) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    Member parent(stage, rank, 2), other(stage, rank, 2, 30'000, 1);
    std::vector<axonComm_t> children(4);
    for (axonComm_t& child : children) {
      axonCommSplit(parent.comm(), 0, 1 - rank, &child, nullptr);
    }
    double value = 1;
    // The parent first on one rank, last on the other; children in between.
    if (rank == 0) parent.Destroy();
    for (size_t i = 0; i < children.size(); ++i) {
      const size_t at = rank == 0 ? i : children.size() - 1 - i;
      if (axonCommDestroy(children[at]) != axonSuccess) return "not destroyed";
      children[at] = nullptr;
    }
    if (rank == 1) parent.Destroy();
    std::string text = other.Sum(&value, 1);
    if (text != "ok") return text;
    // Streams may outlive communicators.
    axonStream_t stream = nullptr;
    axonStreamCreate(&stream);
    text = other.Sum(&value, 1, stream);
    other.Destroy();
    const axonResult_t result = axonStreamDestroy(stream);
    return result == axonSuccess ? text : Outcome(result);
  });
  EXPECT_THAT(texts, Each("ok"));
}

// Ranks that leave and end while another looks for deaths have not died.
TEST(DestroyTest, BeforeTheProcessEndsIsNoDeath) {
  for (int i = 0; i < 40; ++i) {
    Stage stage;
    const auto texts = RunProcesses(6, 60'000, [&](int rank) -> std::string {
      Member member(stage, rank, 6);
      member.Barrier();
      if (rank > 0) {
        SleepMs(2 * rank);
        member.Destroy();
        _exit(40);
      }
      const Deadline until = Deadline::In(50);
      std::string text = "ok";
      while (text == "ok" && !until.passed()) text = member.Query();
      return text;
    });
    ASSERT_EQ(texts[0], "ok");
  }
}

// A peer that waits for a rank which has left is told so.
TEST(DestroyTest, ATooEarlyOneIsToldToThePeers) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    Member member(stage, rank, 2);
    if (rank == 1) {
      member.Destroy();
      stage.Await(kDone, 1);
      return "destroyed";
    }
    const std::string text = member.Barrier();
    stage.Mark(kDone);
    return text;
  });
  EXPECT_EQ(texts[1], "destroyed");
  EXPECT_THAT(texts[0], AllOf(StartsWith("axonRemoteError: rank 1 (host "),
                              HasSubstr("has destroyed it while rank 0"),
                              HasSubstr("waits for it in call 1, barrier")));
}

TEST(ForkTest, TheChildIsRefusedAndTheParentGoesOn) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    Member member(stage, rank, 2);
    const Doubles buffer(Path::kMapped);
    std::string text = member.Sum(buffer.data(), buffer.count());
    for (int i = 0; i < 3 && text == "ok"; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        double value = 1;
        axonUniqueId id;
        axonStream_t stream = nullptr;
        const axonResult_t results[] = {
            axonAllReduce(&value, &value, 1, axonFloat64, axonSum,
                          member.comm(), nullptr),
            axonBarrier(member.comm(), nullptr), axonGetUniqueId(&id),
            axonCommAbort(member.comm()), axonStreamCreate(&stream)};
        for (const axonResult_t result : results) {
          if (result != axonInvalidUsage) _exit(50 + result);
        }
        const std::string why = axonGetLastError(nullptr);
        if (why.find("child of fork()") == std::string::npos) _exit(70);
        // An orderly end with all that the parent had.
        if (i == 0 && !kAddressSanitizer) exit(7);
        _exit(7);
      }
      text = member.Sum(buffer.data(), buffer.count());
      int status = 0;
      waitpid(child, &status, 0);
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) {
        return absl::StrCat("the child ended with status ", status);
      }
      if (text == "ok") text = member.Sum(buffer.data(), buffer.count());
    }
    return text;
  });
  EXPECT_THAT(texts, Each("ok"));
}

// The calls of a group that was open when fork came are the parent's alone.
TEST(ForkTest, TheChildRunsNothingOfAnOpenGroup) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    Member member(stage, rank, 2);
    double sum = 1, got = 0;
    axonGroupStart();
    axonAllReduce(&sum, &sum, 1, axonFloat64, axonSum, member.comm(), nullptr);
    axonSend(&sum, 1, axonFloat64, 1 - rank, member.comm(), nullptr);
    axonRecv(&got, 1, axonFloat64, 1 - rank, member.comm(), nullptr);
    const pid_t child = fork();
    if (child == 0) {
      if (axonGroupEnd() != axonInvalidUsage) _exit(1);
      const std::string why = axonGetLastError(nullptr);
      if (why.find("child of fork()") == std::string::npos) _exit(2);
      _exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) {
      return absl::StrCat("the child ended with status ", status);
    }
    const axonResult_t ended = axonGroupEnd();
    if (ended != axonSuccess) return Outcome(ended);
    return sum == 2 && got >= 1 ? member.Sum(&sum, 1) : "wrong";
  });
  EXPECT_THAT(texts, Each("ok"));
}

// A child writes into what it inherited, and its own child sees that; nobody
// else does.
TEST(ForkTest, WhatTheChildWritesIsItsOwn) {
  const auto texts = RunProcesses(1, 60'000, [&](int) -> std::string {
    const Doubles buffer(Path::kMapped);
    buffer.data()[0] = 1;
    const pid_t child = fork();
    if (child == 0) {
      if (buffer.data()[0] != 1) _exit(1);
      buffer.data()[0] = 2;
      const pid_t grandchild = fork();
      if (grandchild == 0) _exit(buffer.data()[0] == 2 ? 7 : 2);
      int status = 0;
      waitpid(grandchild, &status, 0);
      _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) {
      return absl::StrCat("the child ended with status ", status);
    }
    return buffer.data()[0] == 1 ? "ok" : "written by the child";
  });
  EXPECT_THAT(texts, Each("ok"));
}

// A child that lives on does not keep its parent looking alive.
TEST(ForkTest, AChildDoesNotHideItsParentsDeath) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    Member member(stage, rank, 2);
    member.Barrier();
    if (rank == 1) {
      const pid_t child = fork();
      if (child == 0) {
        // Nobody waits for it: it must end by itself.
        stage.Await(kDone, 1, 20'000);
        _exit(0);
      }
      raise(SIGKILL);
    }
    const std::string text = member.Barrier();
    stage.Mark(kDone);
    return text;
  });
  EXPECT_EQ(texts[1], "signal 9");
  EXPECT_THAT(texts[0], AllOf(StartsWith("axonRemoteError: rank 1 "),
                              HasSubstr("has died")));
}

}  // namespace
}  // namespace axon
