// SPDX-License-Identifier: Apache-2.0
// Meetings at a place that the user names (AXON_COMM_ID), where rank 0 listens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/socket.h"
#include "tests/bootstrap/meet.h"
#include "tests/support/ports.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

UniqueId Place(const std::string& host, uint16_t port,
               const std::string& secret = "s") {
  const auto id = FixedUniqueId(absl::StrCat(host, ":", port), secret);
  EXPECT_TRUE(id.ok()) << id.status();
  return *id;
}

// One rank in a process of its own, with its own server.
std::string RunRank(const UniqueId& id, int rank, int n, int64_t timeout_ms) {
  Rendezvous rendezvous;
  return Exchange(id, rank, n, MeetOptions(timeout_ms, &rendezvous));
}

class FixedPlace : public ::testing::TestWithParam<const char*> {};

TEST_P(FixedPlace, ProcessesMeetInAnyOrder) {
  const UniqueId id = Place(GetParam(), FreePort());
  const auto texts = RunProcesses(4, 20000, [&](int i) {
    if (i == 3) usleep(200'000);
    return RunRank(id, 3 - i, 4, 10000);  // rank 0 starts last
  });
  EXPECT_THAT(texts, Each(Exchanged(4)));
}

INSTANTIATE_TEST_SUITE_P(Hosts, FixedPlace,
                         ::testing::Values("127.0.0.1", "[::1]", "localhost"));

TEST(FixedPlaceTest, OnePlaceServesOneMeetingAfterAnother) {
  const UniqueId id = Place("127.0.0.1", FreePort());
  Rendezvous rendezvous;
  const auto texts = RunThreads(4, [&](int rank) -> std::string {
    for (int i = 0; i < 50; ++i) {
      const std::string text =
          Exchange(id, rank, 4, MeetOptions(20000, &rendezvous));
      if (text != Exchanged(4)) return absl::StrCat(i, ": ", text);
    }
    return "good";
  });
  EXPECT_THAT(texts, Each("good"));
}

TEST(FixedPlaceTest, SecondRankZeroIsToldToAll) {
  const UniqueId id = Place("127.0.0.1", FreePort());
  const auto texts = RunProcesses(3, 20000, [&](int i) {
    if (i == 2) usleep(200'000);
    return RunRank(id, i == 2 ? 0 : i, 3, 10000);
  });
  EXPECT_THAT(texts, Each(AllOf(StartsWith("FAILED_PRECONDITION"),
                                HasSubstr("claim rank 0 of 3"))));
}

TEST(FixedPlaceTest, NobodyThere) {
  const uint16_t port = FreePort();
  EXPECT_THAT(
      RunRank(Place("127.0.0.1", port), 1, 2, 300),
      AllOf(StartsWith("DEADLINE_EXCEEDED"),
            HasSubstr(absl::StrCat("127.0.0.1:", port)), HasSubstr("300 ms"),
            HasSubstr("errno 111"), HasSubstr("has rank 0 started")));
  EXPECT_THAT(RunRank(Place("no-such-host.invalid", port), 1, 2, 300),
              AllOf(StartsWith("DEADLINE_EXCEEDED"),
                    HasSubstr("'no-such-host.invalid' cannot be looked up")));
}

TEST(FixedPlaceTest, AnotherProgramThere) {
  const uint16_t port = FreePort();
  const auto other = ListenAnywhere({port, port});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT(
      RunRank(Place("127.0.0.1", port), 0, 2, 300),
      AllOf(StartsWith("DEADLINE_EXCEEDED"), HasSubstr("does not answer"),
            HasSubstr("Address already in use")));
}

TEST(FixedPlaceTest, OtherSecret) {
  const uint16_t port = FreePort();
  const auto texts = RunProcesses(2, 20000, [&](int rank) {
    return RunRank(Place("127.0.0.1", port, rank == 0 ? "a" : "b"), rank, 2,
                   500);
  });
  EXPECT_THAT(texts[0], HasSubstr("missing: rank 1;"));
  EXPECT_THAT(texts[1],
              AllOf(StartsWith("DEADLINE_EXCEEDED"), HasSubstr("127.0.0.1")));
}

TEST(FixedPlaceTest, RankZeroElsewhere) {
  EXPECT_THAT(RunRank(Place("192.0.2.1", FreePort()), 0, 2, 5000),
              AllOf(StartsWith("RESOURCE_EXHAUSTED"), HasSubstr("192.0.2.1"),
                    HasSubstr("where AXON_COMM_ID points to")));
}

}  // namespace
}  // namespace axon
