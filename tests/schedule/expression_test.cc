// SPDX-License-Identifier: Apache-2.0
#include "schedule/expression.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace axon {
namespace {

using testing::HasSubstr;

std::string Why(const absl::StatusOr<Expressions::Id>& id) {
  return std::string(id.status().message());
}

TEST(ExpressionsTest, EqualExpressionsHaveEqualIdsAndOrderMatters) {
  Expressions e(3, 2);
  const auto a = e.Contribution(0, 1);
  const auto b = e.Contribution(1, 1);
  const auto c = e.Contribution(2, 1);
  EXPECT_EQ(*e.Sum({a, b}), *e.Sum({a, b}));
  EXPECT_NE(*e.Sum({a, b}), *e.Sum({b, a}));
  EXPECT_NE(*e.Sum({*e.Sum({a, b}), c}), *e.Sum({a, b, c}));
  EXPECT_EQ(e.Text(*e.Sum({*e.Sum({a, b}), c})), "((r0[1]+r1[1])+r2[1])");
}

TEST(ExpressionsTest, RefusesSumsThatAreWrong) {
  Expressions e(2, 2);
  const auto a = e.Contribution(0, 0);
  const auto b = e.Contribution(1, 0);
  EXPECT_THAT(Why(e.Sum({a, Expressions::kUndefined})), HasSubstr("undefined"));
  EXPECT_THAT(Why(e.Sum({a, e.Contribution(1, 1)})),
              HasSubstr("different pieces: r0[0] and r1[1]"));
  EXPECT_THAT(Why(e.Sum({a, a})), HasSubstr("counts a rank twice"));
  EXPECT_THAT(Why(e.Sum({*e.Sum({a, b}), b})),
              HasSubstr("counts a rank twice: r1[0]"));
  EXPECT_THAT(Why(e.Sum({*e.Finish(*e.Sum({a, b})), b})),
              HasSubstr("reduces what is finished"));
}

TEST(ExpressionsTest, FinishesOnceWhatIsComplete) {
  Expressions e(2, 2);
  const auto a = e.Contribution(0, 1);
  const auto sum = *e.Sum({a, e.Contribution(1, 1)});
  EXPECT_THAT(Why(e.Finish(a)), HasSubstr("lacks contributions: r0[1]"));
  EXPECT_EQ(e.FinishedPiece(sum), -1);
  const auto finished = *e.Finish(sum);
  EXPECT_EQ(e.FinishedPiece(finished), 1);
  EXPECT_EQ(*e.Finish(sum), finished);
  EXPECT_THAT(Why(e.Finish(finished)), HasSubstr("completes twice"));
  EXPECT_THAT(Why(e.Finish(Expressions::kUndefined)), HasSubstr("undefined"));
}

// More ranks than bits in a word.
TEST(ExpressionsTest, RankOrderIsOneSumOfAllRanks) {
  for (int ranks : {1, 2, 64, 65, 130}) {
    Expressions e(ranks, 1);
    std::vector<Expressions::Id> terms;
    for (int r = 0; r < ranks; ++r) terms.push_back(e.Contribution(r, 0));
    const auto sum = ranks == 1 ? terms[0] : *e.Sum(terms);
    EXPECT_FALSE(e.InRankOrder(sum));
    EXPECT_TRUE(e.InRankOrder(*e.Finish(sum))) << ranks;
    if (ranks == 1) continue;
    std::swap(terms[0], terms.back());
    EXPECT_FALSE(e.InRankOrder(*e.Finish(*e.Sum(terms)))) << ranks;
    terms.back() = terms[0];
    EXPECT_FALSE(e.Sum(terms).ok()) << ranks;
  }
}

TEST(ExpressionsTest, LongTextsAreCut) {
  Expressions e(100, 1);
  auto sum = e.Contribution(0, 0);
  for (int r = 1; r < 100; ++r) sum = *e.Sum({sum, e.Contribution(r, 0)});
  EXPECT_LT(e.Text(sum).size(), 1500u);
}

}  // namespace
}  // namespace axon
