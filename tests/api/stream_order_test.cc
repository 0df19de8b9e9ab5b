// SPDX-License-Identifier: Apache-2.0
// Two communicators used in opposite order: a hang on one stream each, which is
// told as such; no trouble on two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/api/stage.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

axonComm_t Create(Stage& stage, int rank, int number, const char* name,
                  int timeout_ms) {
  axonComm_t comm = nullptr;
  axonConfig_t config = AXON_CONFIG_INITIALIZER;
  config.commName = name;
  axonCommInitRankConfig(&comm, 2, stage.Id(rank == 0, number), rank, &config);
  axonCommSetTimeout(comm, timeout_ms);
  return comm;
}

// Each rank sums on both communicators, rank 1 the other way round; the error
// of the first one that fails, or "ok" with right sums.
std::string Cross(Stage& stage, int rank, int streams) {
  // Rank 0 alone loses patience, so that only its words are heard.
  const int timeout_ms = streams == 1 && rank == 0 ? 700 : 30'000;
  const axonComm_t comms[] = {Create(stage, rank, 0, "alpha", timeout_ms),
                              Create(stage, rank, 1, "beta", timeout_ms)};
  axonStream_t stream[2];
  axonStreamCreate(&stream[0]);
  axonStreamCreate(&stream[1]);
  double values[2] = {1.0 + rank, 10.0 + rank};
  for (int i = 0; i < 2; ++i) {
    const int which = rank == 0 ? i : 1 - i;
    axonAllReduce(&values[which], &values[which], 1, axonFloat64, axonSum,
                  comms[which], stream[which % streams]);
  }
  std::string text = "ok";
  for (int i = 0; i < streams; ++i) {
    const axonResult_t result = axonStreamSynchronize(stream[i]);
    if (result != axonSuccess && text == "ok") text = Outcome(result);
  }
  if (text == "ok" && (values[0] != 3 || values[1] != 21)) text = "wrong data";
  for (const axonComm_t comm : comms) axonCommDestroy(comm);
  return text;
}

TEST(StreamOrderTest, OppositeOrderOnOneStreamIsDiagnosed) {
  Stage stage;
  const auto texts =
      RunProcesses(2, 60'000, [&](int rank) { return Cross(stage, rank, 1); });
  for (const std::string& text : texts) {
    EXPECT_THAT(
        text,
        AllOf(StartsWith("axonTimeout: rank 0 "),
              HasSubstr("of communicator 'alpha'; missing: rank 1 (host "),
              HasSubstr("it has queued this one, behind call 1, all_reduce of "
                        "1 float64, sum of communicator 'beta')")));
  }
  EXPECT_THAT(texts[1], HasSubstr("[found by rank 0 "));
}

TEST(StreamOrderTest, OppositeOrderOnTwoStreamsIsFine) {
  Stage stage;
  const auto texts =
      RunProcesses(2, 60'000, [&](int rank) { return Cross(stage, rank, 2); });
  EXPECT_THAT(texts, testing::Each("ok"));
}

// In one group of blocking calls both progress together.
TEST(StreamOrderTest, OppositeOrderInAGroupIsFine) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    Member first(stage, rank, 2), second(stage, rank, 2, 30'000, 1);
    const axonComm_t comms[] = {first.comm(), second.comm()};
    double values[2] = {1.0 + rank, 10.0 + rank};
    axonGroupStart();
    for (int i = 0; i < 2; ++i) {
      const int which = rank == 0 ? i : 1 - i;
      axonAllReduce(&values[which], &values[which], 1, axonFloat64, axonSum,
                    comms[which], nullptr);
    }
    const axonResult_t result = axonGroupEnd();
    if (result != axonSuccess) return Outcome(result);
    return values[0] == 3 && values[1] == 21 ? "ok" : "wrong data";
  });
  EXPECT_THAT(texts, testing::Each("ok"));
}

// What waits for its turn waits for the calls before it, not for its peer: that
// one may have sent all and be gone.
TEST(StreamOrderTest, MessagesInTheQueueOutliveTheirSender) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    Member late(stage, rank, 2), early(stage, rank, 2, 30'000, 1);
    int64_t values[] = {1, 2, 3};
    if (rank == 0) {
      axonSend(&values[1], 1, axonInt64, 1, early.comm(), nullptr);
      axonSend(&values[2], 1, axonInt64, 1, early.comm(), nullptr);
      early.Destroy();
      SleepMs(500);
      return Outcome(
          axonSend(&values[0], 1, axonInt64, 1, late.comm(), nullptr));
    }
    int64_t got[3] = {};
    axonStream_t stream = nullptr;
    axonStreamCreate(&stream);
    axonRecv(&got[0], 1, axonInt64, 0, late.comm(), stream);
    axonRecv(&got[1], 1, axonInt64, 0, early.comm(), stream);
    std::string text =
        Outcome(axonRecv(&got[2], 1, axonInt64, 0, early.comm(), nullptr));
    if (text == "ok") text = Outcome(axonStreamDestroy(stream));
    if (text != "ok") return text;
    return std::equal(got, got + 3, values) ? "ok" : "wrong data";
  });
  EXPECT_THAT(texts, testing::Each("ok"));
}

// So does a call behind one that is queued behind another communicator's: it
// ends when its own communicator has failed, whatever the other's does.
TEST(StreamOrderTest, AFailureEndsCallsThatWaitForTheirTurn) {
  for (const bool message : {false, true}) {
    Stage stage;
    const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
      Member stuck(stage, rank, 2), failing(stage, rank, 2, 30'000, 1);
      double values[3] = {};
      if (rank == 0) {
        axonCommSetTimeout(failing.comm(), 300);
        std::string text = failing.Sum(values, 1);
        stage.Await(0, 1, 5'000);
        axonSend(values, 1, axonFloat64, 1, stuck.comm(), nullptr);
        return text;
      }
      axonStream_t stream = nullptr;
      axonStreamCreate(&stream);
      axonRecv(&values[0], 1, axonFloat64, 0, stuck.comm(), stream);
      axonRecv(&values[1], 1, axonFloat64, 0, failing.comm(), stream);
      axonAllReduce(&values[1], &values[1], 1, axonFloat64, axonSum,
                    failing.comm(), stream);
      std::string text = message ? Outcome(axonRecv(&values[2], 1, axonFloat64,
                                                    0, failing.comm(), nullptr))
                                 : failing.Sum(&values[2], 1);
      stage.Mark(0);
      axonStreamDestroy(stream);
      return text;
    });
    EXPECT_THAT(texts, testing::Each(StartsWith("axonTimeout: rank 0 ")));
  }
}

// A call that waits long for its own peer on one stream does not hold another.
TEST(StreamOrderTest, AStuckStreamHoldsNoOther) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    Member late(stage, rank, 2), other(stage, rank, 2, 30'000, 1);
    axonStream_t streams[2];
    axonStreamCreate(&streams[0]);
    axonStreamCreate(&streams[1]);
    double one[4], many[4];
    if (rank == 0) {
      for (double& value : one) value = 1;
      axonAllReduce(one, one, 4, axonFloat64, axonSum, late.comm(), streams[0]);
    }
    for (int i = 0; i < 50; ++i) {
      const std::string text = other.Sum(many, 4, streams[1]);
      if (text != "ok") return text;
    }
    if (rank == 0) return Outcome(axonStreamSynchronize(streams[0]));
    for (double& value : one) value = 1;
    axonAllReduce(one, one, 4, axonFloat64, axonSum, late.comm(), nullptr);
    return one[3] == 2 ? "ok" : "wrong data";
  });
  EXPECT_THAT(texts, testing::Each("ok"));
}

}  // namespace
}  // namespace axon
