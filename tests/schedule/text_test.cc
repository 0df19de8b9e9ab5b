// SPDX-License-Identifier: Apache-2.0
#include "schedule/text.h"

#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/algorithms.h"
#include "schedule/check.h"
#include "schedule/cost.h"

namespace axon {
namespace {

TEST(TextTest, IsWhatTheHeaderShows) {
  const Algorithm* mesh = FindAlgorithm(Collective::kAllReduce, "mesh");
  ASSERT_NE(mesh, nullptr);
  EXPECT_EQ(SchedulesText(MakeCall(*mesh, 2, 0).schedules),
            "rank 0 cuts 2 scratch 0\n"
            "send 1 in[1:2]\n"
            "reduce_all {1} in[0:1] -> out[0:1] completes\n"
            "publish {1} out[0:1]\n"
            "recv 1 -> out[1:2]\n"
            "rank 1 cuts 2 scratch 0\n"
            "send 0 in[0:1]\n"
            "reduce_all {0} in[1:2] -> out[1:2] completes\n"
            "publish {0} out[1:2]\n"
            "recv 0 -> out[0:1]\n");
}

TEST(TextTest, EveryRowIsReadBackEqual) {
  for (const Algorithm& row : Algorithms()) {
    for (int ranks : {1, 2, 3, 4, 7, 8, 16, 33}) {
      if (!Applies(row, ranks)) continue;
      const Call call = MakeCall(row, ranks, ranks / 2);
      const auto read = ParseSchedules(SchedulesText(call.schedules));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(*read, call.schedules) << row.name;
    }
  }
}

TEST(TextTest, EveryKindOfOperationIsReadBackEqual) {
  const std::string text =
      "rank 0 cuts 3 scratch 65535\n"
      "send 32767 in[0:65535]\n"
      "publish {0,5,32767} out[65535:65535]\n"
      "recv 1 -> scratch[2:3]\n"
      "recv_reduce 1 in[0:1] -> out[0:1] completes\n"
      "recv_reduce 1 in[0:1] -> out[0:1]\n"
      "reduce_all {1,2} in[0:1] -> out[0:1]\n"
      "copy in[0:1] -> out[0:1] completes\n"
      "reduce in[0:1] -> out[0:1] completes\n";
  const auto read = ParseSchedules(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(SchedulesText(*read), text);
}

TEST(TextTest, SpaceAndCommentsDoNotMatter) {
  const auto a = ParseSchedules(
      "# two\n\n  rank 0   cuts 1 scratch 0 # one\r\n"
      "\tcopy in[0:1]  -> out[0:1]#x");
  const auto b =
      ParseSchedules("rank 0 cuts 1 scratch 0\ncopy in[0:1] -> out[0:1]\n");
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(*a, *b);
}

TEST(TextTest, ErrorsNameTheLine) {
  const std::string start = "rank 0 cuts 1 scratch 0\n# one\n";
  const std::pair<std::string, std::string> kWrong[] = {
      {"copy in[0:1] -> out[0:1]",
       "line 1: 'copy' stands before any 'rank 0 cuts N scratch N'"},
      {"rank 1 cuts 1 scratch 0", "line 1: rank 1 stands where rank 0 should"},
      {"rank 0 cuts 0 scratch 0", "line 1: cuts is 0, not 1 or more"},
      {"rank 0 scratch 0", "line 1: 'cuts' is missing before 'scratch'"},
      {"rank 0 cuts 65536 scratch 0",
       "line 1: cuts is '65536', not a number from 0 to 65535"},
      {start + "move in[0:1]", "line 3: there is no operation 'move'"},
      {start + "send in[0:1]",
       "line 3: the peer is 'in[0:1]', not a number from 0 to 32767"},
      {start + "send -1 in[0:1]",
       "line 3: the peer is '-1', not a number from 0 to 32767"},
      {start + "send 1",
       "line 3: '' is no span; write in[first:end], "
       "out[...] or scratch[...]"},
      {start + "send 1 inn[0:1]",
       "line 3: 'inn[0:1]' is no span; write in[first:end], out[...] or "
       "scratch[...]"},
      {start + "send 1 in[1:0]",
       "line 3: 'in[1:0]' is no span; write in[first:end], out[...] or "
       "scratch[...]"},
      {start + "send 1 in[0]",
       "line 3: the end of a span is '', not a number from 0 to 65535"},
      {start + "send 1 in[0:1] -> out[0:1]",
       "line 3: '->' is one word too many"},
      {start + "send 1 in[0:1] completes",
       "line 3: 'completes' is one word too many"},
      {start + "recv 1 out[0:1]", "line 3: '->' is missing before 'out[0:1]'"},
      {start + "publish 1 in[0:1]",
       "line 3: '1' is no list of ranks; write {1,2,5}"},
      {start + "publish {2,1} in[0:1]", "line 3: '{2,1}' does not ascend at 1"},
      {start + "publish {} in[0:1]",
       "line 3: a rank of the list is '', not a number from 0 to 32767"},
  };
  for (const auto& [text, error] : kWrong) {
    EXPECT_EQ(ParseSchedules(text).status().message(), error) << text;
  }
}

// Whatever is read is either refused or can be printed, checked and priced.
void Survives(const std::string& text) {
  auto schedules = ParseSchedules(text);
  if (!schedules.ok()) {
    EXPECT_THAT(std::string(schedules.status().message()),
                testing::StartsWith("line "));
    return;
  }
  const auto again = ParseSchedules(SchedulesText(*schedules));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *schedules);
  PredictSeconds(*schedules, 1, {.links = {{}}});
  for (int c = 0; c < kNumCollectives; ++c) {
    Check({static_cast<Collective>(c), 0, false, *schedules}, {}).IgnoreError();
  }
}

TEST(TextTest, SurvivesSpoiledText) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return random() % n; };
  const std::string kLetters = "0123456789{}[]:,->#\n inoutscrachkedpublvm\xff";
  for (int i = 0; i < 20000; ++i) {
    const Algorithm& row = Algorithms()[below(Algorithms().size())];
    const int ranks = row.power_of_two_only ? 4 : 1 + int(below(5));
    std::string text = SchedulesText(MakeCall(row, ranks, 0).schedules);
    for (size_t k = 0; k <= below(3); ++k) {
      text[below(text.size())] = kLetters[below(kLetters.size())];
      if (below(8) == 0) text.erase(below(text.size()), below(20));
      if (text.empty()) text.push_back(' ');
    }
    Survives(text);
  }
}

TEST(TextTest, SurvivesNoise) {
  std::mt19937 random(8);
  for (int i = 0; i < 5000; ++i) {
    std::string text(random() % 200, '\0');
    for (char& c : text) c = static_cast<char>(random());
    Survives(text);
  }
  Survives(std::string(1 << 20, '{'));
  Survives("rank 0 cuts 1 scratch 0\nsend 99999999999999999999 in[0:1]");
}

TEST(TextTest, RefusesTooManyLists) {
  std::string text = "rank 0 cuts 1 scratch 0\n";
  for (int i = 0; i <= 4096; ++i) {
    absl::StrAppend(&text, "publish {", i, "} in[0:1]\n");
  }
  EXPECT_EQ(ParseSchedules(text).status().message(),
            "line 4098: a rank has more different lists of ranks than 4096");
}

}  // namespace
}  // namespace axon
