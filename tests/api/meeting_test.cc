// SPDX-License-Identifier: Apache-2.0
// Ranks that cannot meet: a number taken twice, sizes that differ, an id used
// again, settings that differ, and strangers at the door.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/fd.h"
#include "tests/api/stage.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

enum Marks { kMade, kOver };
// What is wrong is known at once; the machine may be busy.
constexpr int64_t kAtOnceMs = 5000;

// The outcome of joining as `rank` of `ranks`, if it came at once. Returns when
// `of` processes have come so far, since the first serves them all.
std::string Join(Stage& stage, bool makes_id, int rank, int ranks, int of) {
  const axonUniqueId id = stage.Id(makes_id);
  const int64_t began = NowNs();
  axonComm_t comm = nullptr;
  const std::string text = Outcome(axonCommInitRank(&comm, ranks, id, rank));
  if (text == "ok") axonCommDestroy(comm);
  const int64_t ms = (NowNs() - began) / 1'000'000;
  stage.Mark(kOver);
  stage.Await(kOver, of);
  return ms <= kAtOnceMs ? text : absl::StrCat("after ", ms, " ms: ", text);
}

TEST(MeetingTest, ANumberTakenTwiceIsToldAtOnce) {
  Stage stage;
  std::vector<pid_t> pids;
  // Ranks 0, 1 and 1 of 3.
  const auto texts = RunProcesses(
      3, 60'000,
      [&](int i) { return Join(stage, i == 0, i == 0 ? 0 : 1, 3, 3); },
      [&](const std::vector<pid_t>& started) { pids = started; });
  EXPECT_THAT(texts,
              Each(AllOf(StartsWith("axonInvalidUsage: "), HasSubstr("rank 1"),
                         HasSubstr(absl::StrCat("pid ", pids[1])),
                         HasSubstr(absl::StrCat("pid ", pids[2])))));
}

TEST(MeetingTest, SizesThatDifferAreToldAtOnce) {
  Stage stage;
  const auto texts = RunProcesses(3, 60'000, [&](int rank) {
    return Join(stage, rank == 0, rank, rank == 2 ? 4 : 3, 3);
  });
  EXPECT_THAT(texts,
              Each(AllOf(StartsWith("axonInvalidUsage: "), HasSubstr("4"),
                         HasSubstr("3"), HasSubstr("rank 2"))));
}

TEST(MeetingTest, AnIdUsedTwiceIsToldAtOnce) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) -> std::string {
    const std::string first = Join(stage, rank == 0, rank, 2, 2);
    if (first != "ok") return first;
    return Join(stage, false, rank, 2, 4);
  });
  EXPECT_THAT(texts,
              Each(AllOf(StartsWith("axonInvalidUsage: "), HasSubstr("used"))));
}

TEST(MeetingTest, SettingsThatDifferAreToldAtOnce) {
  Stage stage;
  const auto texts = RunProcesses(2, 60'000, [&](int rank) {
    if (rank == 1) setenv("AXON_OUTBOX_SIZE", "1M", 1);
    return Join(stage, rank == 0, rank, 2, 2);
  });
  EXPECT_THAT(texts, Each(AllOf(StartsWith("axonInvalidUsage: "),
                                HasSubstr("AXON_OUTBOX_SIZE"))));
}

TEST(MeetingTest, AnIllFormedIdIsRefused) {
  const auto texts = RunProcesses(1, 60'000, [](int) {
    axonUniqueId id = {};
    id.internal[5] = 17;
    axonComm_t comm = nullptr;
    return Outcome(axonCommInitRank(&comm, 2, id, 1));
  });
  EXPECT_THAT(texts[0], StartsWith("axonInvalidArgument: "));
}

// Ports of `table` (tcp, tcp6) at which somebody listens.
std::vector<uint16_t> ListeningPorts(const char* table) {
  std::ifstream lines(absl::StrCat("/proc/self/net/", table));
  std::vector<uint16_t> ports;
  std::string line;
  while (std::getline(lines, line)) {
    unsigned port = 0, state = 0;
    if (sscanf(line.c_str(), "%*d: %*[0-9A-F]:%4x %*[0-9A-F]:%*4x %2x", &port,
               &state) == 2 &&
        state == 0x0a) {
      ports.push_back(static_cast<uint16_t>(port));
    }
  }
  return ports;
}

Fd Connect(uint16_t port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to));
  return fd;
}

// A scanner connects everywhere, talks nonsense or says nothing, and stays.
TEST(MeetingTest, StrangersHarmNothing) {
  Stage stage;
  setenv("AXON_PORT_RANGE", "18600-18699", 1);
  const auto texts = RunProcesses(4, 60'000, [&](int rank) -> std::string {
    if (rank < 3) {
      const axonUniqueId id = stage.Id(rank == 0);
      if (rank == 0) stage.Mark(kMade);
      stage.Await(kMade, 2);
      axonComm_t comm = nullptr;
      const std::string text = Outcome(axonCommInitRank(&comm, 3, id, rank));
      stage.Mark(kOver);
      stage.Await(kOver, 3);
      return text;
    }
    stage.Await(kMade, 1);
    std::vector<Fd> guests;
    for (const char* table : {"tcp", "tcp6"}) {
      for (const uint16_t port : ListeningPorts(table)) {
        if (port < 18600 || port > 18699) continue;
        for (int i = 0; i < 3; ++i) guests.push_back(Connect(port));
      }
    }
    SleepMs(50);
    const std::string nonsense(3000, 'G');
    for (size_t i = 0; i < guests.size(); i += 2) {
      const ssize_t sent =
          send(guests[i].get(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
      if (sent < 0) return "nobody listens to a stranger";
    }
    stage.Mark(kMade);
    SleepMs(200);
    return guests.size() < 3 ? "no guests" : "guests";
  });
  unsetenv("AXON_PORT_RANGE");
  EXPECT_THAT(texts, testing::ElementsAre("ok", "ok", "ok", "guests"));
}

}  // namespace
}  // namespace axon
