// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/bootstrap/meet.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class BootstrapTest : public ::testing::Test {
 protected:
  BootstrapTest() {
    auto id = rendezvous_.Open({});
    EXPECT_TRUE(id.ok()) << id.status();
    id_ = *std::move(id);
  }
  // Every rank with options of its own.
  template <typename Change>
  std::vector<std::string> Meet(int n, Change change) {
    return RunThreads(n, [&](int rank) {
      int number = rank, size = n;
      BootstrapOptions options = MeetOptions();
      change(rank, &number, &size, &options);
      return Exchange(id_, number, size, options);
    });
  }

  Rendezvous rendezvous_;
  UniqueId id_;
};

class BootstrapSizes : public BootstrapTest,
                       public ::testing::WithParamInterface<int> {};

TEST_P(BootstrapSizes, ThreadsMeetAndExchange) {
  const int n = GetParam();
  EXPECT_THAT(Meet(n, [](auto...) {}), Each(Exchanged(n)));
}

TEST_P(BootstrapSizes, ProcessesMeetAndExchange) {
  const int n = GetParam();
  EXPECT_THAT(RunProcesses(n, 30000,
                           [&](int rank) {
                             return Exchange(id_, rank, n, MeetOptions());
                           }),
              Each(Exchanged(n)));
}

INSTANTIATE_TEST_SUITE_P(Ranks, BootstrapSizes,
                         ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                           12, 13, 14, 15, 16));

TEST_F(BootstrapTest, TwoHundredAndFiftySixThreads) {
  EXPECT_THAT(Meet(256, [](auto...) {}), Each(Exchanged(256)));
}

TEST_F(BootstrapTest, LargePartsArrive) {
  const auto texts = RunThreads(4, [&](int rank) -> std::string {
    auto b = Bootstrap::Join(id_, rank, 4, MeetOptions());
    if (!b.ok()) return b.status().ToString();
    for (int round = 0; round < 3; ++round) {
      const std::string mine(3 << 20, static_cast<char>('a' + rank + round));
      const auto parts = (*b)->AllGather(mine);
      if (!parts.ok()) return parts.status().ToString();
      for (int i = 0; i < 4; ++i) {
        if ((*parts)[static_cast<size_t>(i)] !=
            std::string(3 << 20, static_cast<char>('a' + i + round))) {
          return "wrong bytes";
        }
      }
    }
    return "good";
  });
  EXPECT_THAT(texts, Each("good"));
}

TEST_F(BootstrapTest, KnowsItsPeers) {
  auto b = Bootstrap::Join(id_, 0, 1, MeetOptions());
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ((*b)->rank(), 0);
  ASSERT_EQ((*b)->size(), 1);
  EXPECT_EQ((*b)->peers()[0].pid, getpid());
  EXPECT_NE((*b)->peers()[0].host, "");
}

TEST_F(BootstrapTest, DuplicateRankIsToldToAll) {
  const int64_t start = NowNs();
  const auto texts = Meet(3, [](int rank, int* number, auto...) {
    *number = rank == 2 ? 1 : rank;  // 0, 1, 1
  });
  EXPECT_THAT(texts, Each(AllOf(StartsWith("FAILED_PRECONDITION"),
                                HasSubstr("claim rank 1 of 3"),
                                HasSubstr(absl::StrCat("pid ", getpid())))));
  EXPECT_LT(NowNs() - start, 1'000'000'000);
}

TEST_F(BootstrapTest, DifferentSizesAreToldToAll) {
  const auto texts = Meet(
      3, [](int rank, int*, int* size, auto...) { *size = rank == 1 ? 4 : 3; });
  EXPECT_THAT(texts, Each(AllOf(StartsWith("FAILED_PRECONDITION"),
                                HasSubstr("expects 4"), HasSubstr("rank 1"))));
}

TEST_F(BootstrapTest, RankOutOfRange) {
  for (const int rank : {-1, 2, 1 << 30}) {
    Rendezvous rendezvous;
    const auto id = rendezvous.Open({});
    ASSERT_TRUE(id.ok());
    EXPECT_THAT(Exchange(*id, rank, 2, MeetOptions()),
                AllOf(StartsWith("FAILED_PRECONDITION"),
                      HasSubstr(absl::StrCat("rank ", rank, " "))));
  }
}

TEST_F(BootstrapTest, VersionsMustAgree) {
  const auto texts =
      Meet(3, [](int rank, int*, int*, BootstrapOptions* options) {
        options->version = rank == 2 ? 10203 : 100;
      });
  EXPECT_THAT(texts,
              Each(AllOf(StartsWith("FAILED_PRECONDITION"), HasSubstr("1.2.3"),
                         HasSubstr("0.1.0"), HasSubstr("rank 2"))));
}

TEST_F(BootstrapTest, SettingsMustAgree) {
  const auto texts =
      Meet(3, [](int rank, int*, int*, BootstrapOptions* options) {
        if (rank == 2) options->digest = "A=1 B=3";
      });
  EXPECT_THAT(texts,
              Each(AllOf(StartsWith("FAILED_PRECONDITION"), HasSubstr("B=2"),
                         HasSubstr("B=3"), Not(HasSubstr("A=1")))));
}

TEST_F(BootstrapTest, UsedIdIsRefusedDuringAndAfter) {
  std::string during;
  const auto texts = RunThreads(2, [&](int rank) -> std::string {
    auto b = Bootstrap::Join(id_, rank, 2, MeetOptions());
    if (!b.ok()) return b.status().ToString();
    if (rank == 0) during = Exchange(id_, 1, 2, MeetOptions());
    return (*b)->Barrier().ToString();
  });
  EXPECT_THAT(texts, Each("OK"));  // the intruder disturbs nobody
  const auto used =
      AllOf(StartsWith("FAILED_PRECONDITION"), HasSubstr("already been used"));
  EXPECT_THAT(during, used);
  EXPECT_THAT(Exchange(id_, 0, 2, MeetOptions()), used);
  EXPECT_THAT(Exchange(id_, 0, 1, MeetOptions()), used);
}

TEST_F(BootstrapTest, LateComersLearnWhyTheMeetingFailed) {
  Meet(2, [](int, int* number, auto...) { *number = 1; });
  EXPECT_THAT(Exchange(id_, 0, 2, MeetOptions()),
              HasSubstr("claim rank 1 of 2"));
}

TEST_F(BootstrapTest, TimeoutNamesTheMissingAndThePresent) {
  const int64_t start = NowNs();
  const auto texts = RunThreads(2, [&](int i) {
    return Exchange(id_, i * 2, 4, MeetOptions(300));  // 0 and 2 of 4
  });
  EXPECT_THAT(
      texts,
      Each(AllOf(StartsWith("DEADLINE_EXCEEDED"), HasSubstr("only 2 of 4"),
                 HasSubstr("missing: rank 1, rank 3; present: rank 0"),
                 HasSubstr(absl::StrCat("pid ", getpid())))));
  EXPECT_GE(NowNs() - start, 300'000'000);
  EXPECT_LT(NowNs() - start, 2'000'000'000);
}

TEST_F(BootstrapTest, TimeoutOfAnAllGatherNamesTheMissing) {
  const auto texts = RunThreads(3, [&](int rank) -> std::string {
    auto b = Bootstrap::Join(id_, rank, 3, MeetOptions());
    if (!b.ok()) return b.status().ToString();
    (*b)->SetTimeout(300);
    if (rank == 1) {
      usleep(1'000'000);
      return (*b)->Barrier().ToString();
    }
    return (*b)->Barrier().ToString();
  });
  EXPECT_THAT(texts, Each(AllOf(StartsWith("DEADLINE_EXCEEDED"),
                                HasSubstr("missing: rank 1 (host"))));
}

TEST_F(BootstrapTest, TheTimeLimitIsOfAllCallsTogether) {
  const auto texts = RunThreads(2, [&](int rank) -> std::string {
    auto b = Bootstrap::Join(id_, rank, 2, MeetOptions(1000));
    if (!b.ok()) return b.status().ToString();
    usleep(rank == 0 ? 1'200'000 : 1'600'000);
    return (*b)->Barrier().ToString();
  });
  EXPECT_THAT(texts, Each(AllOf(StartsWith("DEADLINE_EXCEEDED"),
                                HasSubstr("missing: rank 1 (host"))));
}

// A rank that is killed, as the others see it: `during` says when.
class KilledRank : public BootstrapTest {
 protected:
  void Check(int n, const std::function<std::string(int rank)>& run) {
    int64_t killed_at = 0;
    std::string pid;
    const auto texts =
        RunProcesses(n, 20000, run, [&](const std::vector<pid_t>& pids) {
          usleep(300'000);
          kill(pids[1], SIGKILL);
          killed_at = NowNs();
          pid = absl::StrCat("pid ", pids[1]);
        });
    EXPECT_LT(NowNs() - killed_at, 1'000'000'000);
    EXPECT_EQ(texts[1], "signal 9");
    for (size_t i = 0; i < texts.size(); ++i) {
      if (i == 1) continue;
      EXPECT_THAT(texts[i], AllOf(StartsWith("UNAVAILABLE"),
                                  HasSubstr("rank 1 (host"), HasSubstr(pid)));
    }
  }
};

TEST_F(KilledRank, BeforeAllHaveCome) {
  // Four of five come.
  Check(4, [&](int rank) { return Exchange(id_, rank, 5, MeetOptions()); });
}

TEST_F(KilledRank, DuringAnAllGather) {
  Check(4, [&](int rank) -> std::string {
    auto b = Bootstrap::Join(id_, rank, 4, MeetOptions());
    if (!b.ok()) return b.status().ToString();
    if (const auto first = (*b)->AllGather("x"); !first.ok()) return "early";
    if (rank == 1) pause();
    return (*b)->AllGather("y").status().ToString();
  });
}

TEST(BootstrapGoneTest, DeathOfTheServingProcessIsNoticed) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  // The server lives in process 0, which is killed; 1 and 2 wait for rank 3.
  const auto texts = RunProcesses(3, 20000, [&](int i) -> std::string {
    if (i == 0) {
      Rendezvous rendezvous;
      const auto id = rendezvous.Open({});
      if (!id.ok()) return id.status().ToString();
      for (int reader = 0; reader < 2; ++reader) {
        if (write(ends[1], PackUniqueId(*id).data(), kUniqueIdSize) < 0) {
          return "pipe";
        }
      }
      usleep(300'000);
      kill(getpid(), SIGKILL);
    }
    std::string bytes(kUniqueIdSize, '\0');
    if (read(ends[0], bytes.data(), bytes.size()) !=
        static_cast<ssize_t>(bytes.size())) {
      return "pipe";
    }
    const auto id = UnpackUniqueId(bytes);
    if (!id.ok()) return id.status().ToString();
    return Exchange(*id, i, 4, MeetOptions());
  });
  for (const size_t i : {1, 2}) {
    EXPECT_THAT(texts[i], AllOf(StartsWith("UNAVAILABLE"),
                                HasSubstr("serves the rendezvous"),
                                HasSubstr("has ended")));
  }
  close(ends[0]);
  close(ends[1]);
}

TEST(BootstrapGoneTest, IdOfAnEndedProcessFailsSoon) {
  UniqueId id;
  {
    Rendezvous rendezvous;
    id = *rendezvous.Open({});
  }
  const int64_t start = NowNs();
  EXPECT_THAT(Exchange(id, 0, 2, MeetOptions(60000)),
              AllOf(StartsWith("UNAVAILABLE"), HasSubstr("nobody listens")));
  EXPECT_LT(NowNs() - start, 8'000'000'000);
}

TEST_F(BootstrapTest, LeavingEarlyDisturbsOnlyThoseWhoNeedMore) {
  const auto texts = RunThreads(3, [&](int rank) -> std::string {
    auto b = Bootstrap::Join(id_, rank, 3, MeetOptions());
    if (!b.ok()) return b.status().ToString();
    if (const absl::Status s = (*b)->Barrier(); !s.ok()) return s.ToString();
    if (rank == 2) return "left";
    return (*b)->Barrier().ToString();
  });
  EXPECT_EQ(texts[2], "left");
  for (const size_t i : {0, 1}) {
    EXPECT_THAT(texts[i],
                AllOf(StartsWith("FAILED_PRECONDITION"),
                      HasSubstr("rank 2 (host"), HasSubstr("has left")));
  }
}

TEST_F(BootstrapTest, FailureOfOneRankReachesAllAndStays) {
  const auto texts = RunThreads(3, [&](int rank) -> std::string {
    auto b = Bootstrap::Join(id_, rank, 3, MeetOptions());
    if (!b.ok()) return b.status().ToString();
    if (rank == 1) {
      (*b)->Fail(absl::ResourceExhaustedError("no shared memory"));
      return (*b)->Barrier().ToString();
    }
    const std::string first = (*b)->Barrier().ToString();
    return (*b)->Barrier().ToString() == first ? first : "not kept";
  });
  EXPECT_EQ(texts[1], "RESOURCE_EXHAUSTED: no shared memory");
  for (const size_t i : {0, 2}) {
    EXPECT_THAT(texts[i], AllOf(StartsWith("RESOURCE_EXHAUSTED: rank 1 (host"),
                                HasSubstr("no shared memory")));
  }
}

}  // namespace
}  // namespace axon
