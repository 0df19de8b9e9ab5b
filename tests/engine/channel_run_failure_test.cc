// SPDX-License-Identifier: Apache-2.0
// Links that fail while a schedule runs over them: who needs them says so, and
// nobody hangs or hands out a wrong result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/engine/channel_calls.h"

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr char kCut[] = "the cable is cut";
constexpr char kGivenUp[] = "the communicator was given up";
constexpr uint64_t kSeeds = 24;  // for each row and number of ranks

struct Outcome {
  int failed = 0;  // because of the link
  int given_up = 0;
  int done = 0;
};

// Whether the status names the link between a and b, from either end.
void ExpectNames(const absl::Status& status, int a, int b) {
  const auto link = [](int from, int to) {
    return AllOf(HasSubstr(absl::StrCat("rank ", from, " cannot ")),
                 HasSubstr(absl::StrCat(" rank ", to, " (slice ")));
  };
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), AnyOf(link(a, b), link(b, a)));
}

// One link fails at its `calls`-th call; then everyone goes on as far as
// possible, and then the communicator is given up.
Outcome RunWithFault(const ChannelCase& c, int a, int b, int64_t calls) {
  SCOPED_TRACE(absl::StrCat(Describe(c), "; ", a, "-", b, " fails at ", calls));
  ChannelCalls run(c);
  run.transport().FailAfter(a, b, calls, absl::UnavailableError(kCut));
  run.Run();
  std::vector<bool> alone(static_cast<size_t>(c.ranks));
  for (int r = 0; r < c.ranks; ++r) {
    alone[static_cast<size_t>(r)] = run.result(r) == Poll::kPending;
  }
  run.transport().FailAll(absl::UnavailableError(kGivenUp));
  run.Run();
  Outcome outcome;
  for (int r = 0; r < c.ranks; ++r) {
    EXPECT_NE(run.result(r), Poll::kPending) << run.Positions();
    if (run.result(r) == Poll::kReady) {
      ++outcome.done;
    } else if (alone[static_cast<size_t>(r)]) {
      ++outcome.given_up;
      EXPECT_THAT(std::string(run.status(r).message()), HasSubstr(kGivenUp));
    } else {
      ++outcome.failed;
      EXPECT_TRUE(r == a || r == b) << "rank " << r << " has nothing to do "
                                    << "with the link: " << run.status(r);
      ExpectNames(run.status(r), a, b);
      EXPECT_THAT(std::string(run.status(r).message()), HasSubstr(kCut));
    }
  }
  EXPECT_EQ(run.difference(), "");
  // Somebody waits only if somebody has failed.
  EXPECT_TRUE(outcome.given_up == 0 || outcome.failed > 0) << run.Positions();
  return outcome;
}

class ChannelRunFailureTest : public testing::TestWithParam<const Algorithm*> {
};

TEST_P(ChannelRunFailureTest, NobodyHangs) {
  Outcome total;
  uint64_t seed = 0;
  for (int ranks : {2, 3, 4, 7, 8}) {
    if (!Applies(*GetParam(), ranks)) continue;
    for (uint64_t i = 0; i < kSeeds; ++i) {
      std::mt19937_64 random(++seed);
      ChannelCase c;
      c.algorithm = GetParam();
      c.ranks = ranks;
      c.count = 100;
      c.credits = 1 + static_cast<int>(random() % 3);
      c.most_polls = static_cast<int>(random() % 3);
      c.seed = seed;
      const auto n = static_cast<uint64_t>(ranks);
      const int a = static_cast<int>(random() % n);
      const int b = (a + 1 + static_cast<int>(random() % (n - 1))) % ranks;
      const Outcome outcome =
          RunWithFault(c, a, b, static_cast<int64_t>(random() % 60));
      if (HasFailure()) return;
      total.failed += outcome.failed;
      total.done += outcome.done;
      total.given_up += outcome.given_up;
    }
  }
  // The seeds do cover both ends.
  EXPECT_GT(total.failed, 0);
  EXPECT_GT(total.done, 0);
}

// A link that everyone's data must cross fails at once: both its ends fail, and
// no other rank believes that it is done.
TEST(ChannelRunFaults, ACutRingFailsAtBothEnds) {
  ChannelCase c;
  c.algorithm = FindAlgorithm(Collective::kAllReduce, "ring");
  c.ranks = 4;
  c.count = 100;
  const Outcome outcome = RunWithFault(c, 1, 2, 0);
  EXPECT_EQ(outcome.failed, 2);
  EXPECT_EQ(outcome.given_up, 2);
}

// A link that nobody uses may fail.
TEST(ChannelRunFaults, AnIdleLinkHarmsNobody) {
  ChannelCase c;
  c.algorithm = FindAlgorithm(Collective::kAllReduce, "ring");
  c.ranks = 4;
  c.count = 100;
  EXPECT_EQ(RunWithFault(c, 0, 2, 0).done, 4);
}

INSTANTIATE_TEST_SUITE_P(Table, ChannelRunFailureTest,
                         testing::ValuesIn(AllRows()),
                         [](const auto& info) { return NameOf(*info.param); });

}  // namespace
}  // namespace axon
