// SPDX-License-Identifier: Apache-2.0
// Schedules written by hand, each wrong in one way, and what the checker says.
#include "schedule/check.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedule/text.h"

namespace axon {
namespace {

using testing::HasSubstr;

Call Written(Collective collective, absl::string_view text) {
  absl::StatusOr<std::vector<Schedule>> schedules = ParseSchedules(text);
  EXPECT_TRUE(schedules.ok()) << schedules.status();
  return {collective, 0, false, *std::move(schedules)};
}

std::string Says(Collective collective, absl::string_view text,
                 const CheckOptions& options = {}) {
  return std::string(Check(Written(collective, text), options).message());
}

constexpr absl::string_view kGoodAllReduce = R"(
rank 0 cuts 1 scratch 0
send 1 in[0:1]
recv_reduce 1 in[0:1] -> out[0:1] completes
send 1 out[0:1]
rank 1 cuts 1 scratch 0
recv 0 -> out[0:1]   # read and thrown away
send 0 in[0:1]
recv 0 -> out[0:1])";

TEST(CheckTest, AcceptsWhatIsRight) {
  for (int credits : {1, 2, 0}) {
    EXPECT_EQ(
        Says(Collective::kAllReduce, kGoodAllReduce, {.credits = credits}), "");
  }
}

TEST(CheckTest, InPlaceSharesTheBuffers) {
  // Rank 1 loses its own contribution before it sends it.
  EXPECT_THAT(Says(Collective::kAllReduce, kGoodAllReduce, {.in_place = true}),
              HasSubstr("rank 0 operation 1 (recv_reduce 1 in[0:1] -> out[0:1] "
                        "completes): counts a rank twice"));
}

TEST(CheckTest, WaitsForEver) {
  EXPECT_THAT(Says(Collective::kBarrier,
                   "rank 0 cuts 1 scratch 0\n"
                   "recv 1 -> out[0:0]\nsend 1 out[0:0]\n"
                   "rank 1 cuts 1 scratch 0\n"
                   "recv 0 -> out[0:0]\nsend 0 out[0:0]\n"),
              HasSubstr("rank 0 operation 0 (recv 1 -> out[0:0]): waits for "
                        "ever"));
}

TEST(CheckTest, CountsCredits) {
  constexpr absl::string_view kTwoInFlight =
      "rank 0 cuts 1 scratch 0\n"
      "send 1 out[0:0]\nsend 1 out[0:0]\n"
      "recv 1 -> out[0:0]\nrecv 1 -> out[0:0]\n"
      "rank 1 cuts 1 scratch 0\n"
      "send 0 out[0:0]\nsend 0 out[0:0]\n"
      "recv 0 -> out[0:0]\nrecv 0 -> out[0:0]\n";
  EXPECT_EQ(Says(Collective::kBarrier, kTwoInFlight, {.credits = 0}), "");
  EXPECT_EQ(Says(Collective::kBarrier, kTwoInFlight, {.credits = 2}), "");
  EXPECT_THAT(Says(Collective::kBarrier, kTwoInFlight, {.credits = 1}),
              HasSubstr("operation 1 (send 1 out[0:0]): waits for ever"));
}

TEST(CheckTest, UnreadMessage) {
  EXPECT_EQ(Says(Collective::kBarrier,
                 "rank 0 cuts 1 scratch 0\n"
                 "send 1 out[0:0]\nrecv 1 -> out[0:0]\n"
                 "rank 1 cuts 1 scratch 0\n"
                 "send 0 out[0:0]\nsend 0 out[0:0]\nrecv 0 -> out[0:0]\n"),
            "a message from rank 1 to rank 0 is never read");
}

TEST(CheckTest, LeavesABarrierTooEarly) {
  EXPECT_THAT(Says(Collective::kBarrier,
                   "rank 0 cuts 1 scratch 0\nsend 1 out[0:0]\n"
                   "rank 1 cuts 1 scratch 0\nrecv 0 -> out[0:0]\n",
                   {.sending = Sending::kCopied}),
              HasSubstr("rank 0 at its end: leaves the barrier though rank 1 "
                        "may not have come"));
}

TEST(CheckTest, SizesOfMessages) {
  EXPECT_THAT(Says(Collective::kBroadcast,
                   "rank 0 cuts 2 scratch 0\n"
                   "copy in[0:2] -> out[0:2]\nsend 1 in[0:1]\n"
                   "rank 1 cuts 2 scratch 0\nrecv 0 -> out[0:2]\n"),
              HasSubstr("takes 2 pieces where rank 0 sends 1"));
}

TEST(CheckTest, OverwritesWhatAPeerMayStillRead) {
  constexpr absl::string_view kExchange =
      "rank 0 cuts 1 scratch 0\n"
      "send 1 in[0:1]\nreduce_all {1} in[0:1] -> out[0:1] completes\n"
      "rank 1 cuts 1 scratch 0\n"
      "send 0 in[0:1]\nreduce_all {0} in[0:1] -> out[0:1] completes\n";
  EXPECT_EQ(Says(Collective::kAllReduce, kExchange), "");
  EXPECT_THAT(
      Says(Collective::kAllReduce, kExchange, {.in_place = true}),
      HasSubstr("rank 1 operation 1 (reduce_all {0} in[0:1] -> out[0:1] "
                "completes): overwrites what rank 0 may still read"));
  EXPECT_EQ(Says(Collective::kAllReduce, kExchange,
                 {.in_place = true, .sending = Sending::kCopied}),
            "");
}

TEST(CheckTest, RanksSumInDifferentOrders) {
  EXPECT_THAT(
      Says(Collective::kAllReduce,
           "rank 0 cuts 1 scratch 0\n"
           "send 1 in[0:1]\nrecv_reduce 1 in[0:1] -> out[0:1] completes\n"
           "rank 1 cuts 1 scratch 0\n"
           "send 0 in[0:1]\nrecv_reduce 0 in[0:1] -> out[0:1] completes\n"),
      HasSubstr("has summed in another order than the first to be done"));
}

TEST(CheckTest, ClaimsRankOrder) {
  Call call = Written(Collective::kReduce,
                      "rank 0 cuts 1 scratch 1\n"
                      "copy in[0:1] -> scratch[0:1]\n"
                      "recv 1 -> out[0:1]\n"
                      "reduce scratch[0:1] -> out[0:1] completes\n"
                      "rank 1 cuts 1 scratch 0\nsend 0 in[0:1]\n");
  EXPECT_TRUE(Check(call, {}).ok());
  call.rank_order = true;
  EXPECT_THAT(std::string(Check(call, {}).message()),
              HasSubstr("out[0] is finished((r1[0]+r0[0])), not piece 0 of all "
                        "in rank order, finished"));
}

// One rank alone: what is wrong with a single operation.
TEST(CheckTest, SingleOperations) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"copy in[0:2] -> out[0:2] completes", "names pieces out of range"},
      {"copy scratch[0:1] -> out[0:1]", "copies an undefined piece"},
      {"copy in[0:1] -> out[0:0]", "of different sizes"},
      {"copy out[0:1] -> in[0:1]", "writes `in`"},
      {"copy in[0:0] -> out[0:0] completes", "completes nothing"},
      {"send 0 in[0:1]", "has its own rank as a peer"},
      {"send 1 in[0:1]", "has a peer that is no rank"},
      {"publish {1} in[0:1]", "has a peer that is no rank"},
      {"reduce_all {0} in[0:1] -> out[0:1]", "has its own rank as a peer"},
      {"reduce in[0:1] -> out[0:1]", "reduces an undefined piece"},
      {"copy in[0:1] -> out[0:1]", "out[0] is r0[0], not piece 0 of all"},
      {"", "out[0] is undefined, not piece 0 of all"},
  };
  for (const auto& [op, text] : kWrong) {
    EXPECT_THAT(Says(Collective::kAllReduce,
                     absl::StrCat("rank 0 cuts 1 scratch 1\n", op)),
                HasSubstr(text))
        << op;
  }
}

TEST(CheckTest, CopiesBetweenOverlappingSpans) {
  EXPECT_THAT(Says(Collective::kBroadcast,
                   "rank 0 cuts 3 scratch 0\ncopy in[0:3] -> out[0:3]\n"
                   "copy out[0:2] -> out[1:3]\n"),
              HasSubstr("copies between overlapping spans"));
}

TEST(CheckTest, CompletesTwiceOrTooEarly) {
  EXPECT_THAT(Says(Collective::kAllReduce,
                   "rank 0 cuts 1 scratch 1\n"
                   "copy in[0:1] -> scratch[0:1] completes\n"
                   "copy scratch[0:1] -> out[0:1] completes\n"),
              HasSubstr("completes twice: finished(r0[0])"));
  EXPECT_THAT(Says(Collective::kReduce,
                   "rank 0 cuts 1 scratch 0\n"
                   "copy in[0:1] -> out[0:1] completes\n"
                   "rank 1 cuts 1 scratch 0\n"),
              HasSubstr("completes what lacks contributions: r0[0]"));
}

TEST(CheckTest, ReducesDifferentPieces) {
  EXPECT_THAT(Says(Collective::kAllReduce,
                   "rank 0 cuts 2 scratch 0\n"
                   "recv_reduce 1 in[0:1] -> out[0:1]\n"
                   "rank 1 cuts 2 scratch 0\nsend 0 in[1:2]\n"),
              HasSubstr("reduces different pieces: r0[0] and r1[1]"));
}

TEST(CheckTest, MalformedCalls) {
  EXPECT_EQ(Check(Call{}, {}).message(),
            "a call has schedules for 0 ranks, "
            "not for 0");
  Call call{Collective::kBarrier, 2, false, {Schedule(), Schedule()}};
  EXPECT_EQ(Check(call, {}).message(), "root 2 is none of 2 ranks");
  call.root = 0;
  call.schedules[1].cuts = 3;
  EXPECT_EQ(Check(call, {}).message(),
            "ranks cut a block into 1 and into 3 pieces");
  call.collective = Collective::kAllGather;
  call.schedules[0].cuts = call.schedules[1].cuts = 40000;
  EXPECT_EQ(Check(call, {}).message(),
            "2 blocks of 40000 pieces are more than a span can name");
  call.collective = Collective::kBarrier;
  // A list of peers that is not there.
  call.schedules[0].cuts = call.schedules[1].cuts = 1;
  call.schedules[0].Publish({1}, {});
  call.schedules[0].ops[0].peer = 3;
  EXPECT_THAT(Check(call, {}).message(), HasSubstr("has no list of peers"));
  call.schedules[0].lists = {{}};
  call.schedules[0].ops[0].peer = 0;
  EXPECT_THAT(Check(call, {}).message(), HasSubstr("an empty list of peers"));
  call.schedules[0].lists = {{1, 1}};
  EXPECT_THAT(Check(call, {}).message(), HasSubstr("does not ascend"));
}

// Every rank but the root is done with the first call at once and runs ahead.
TEST(CheckTest, TakesAMessageOfAnotherCall) {
  const Call first = Written(Collective::kBroadcast,
                             "rank 0 cuts 1 scratch 0\n"
                             "copy in[0:1] -> out[0:1]\n"
                             "send 1 in[0:1]\nsend 1 in[0:1]\n"
                             "rank 1 cuts 1 scratch 0\nrecv 0 -> out[0:1]\n");
  const CheckOptions copied{.sending = Sending::kCopied};
  EXPECT_THAT(Check(first, copied).message(), HasSubstr("is never read"));
  EXPECT_THAT(CheckSequence({first, first}, copied).message(),
              HasSubstr("rank 1 call 1 operation 0 (recv 0 -> out[0:1]): reads "
                        "a message that rank 0 sent in another call"));
}

}  // namespace
}  // namespace axon
