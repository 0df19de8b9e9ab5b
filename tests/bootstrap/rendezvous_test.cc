// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/wire.h"
#include "tests/bootstrap/meet.h"
#include "tests/support/ports.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

UniqueId MustOpen(Rendezvous* rendezvous) {
  const auto id = rendezvous->Open({});
  EXPECT_TRUE(id.ok()) << id.status();
  return *id;
}

Fd MustConnect(const UniqueId& id) {
  auto fd = ConnectTcp(id.addresses[0], Deadline::In(5000));
  EXPECT_TRUE(fd.ok()) << fd.status();
  return fd.ok() ? *std::move(fd) : Fd();
}

void Say(const Fd& fd, const std::string& bytes) {
  // The server may have closed already, which is what some tests want.
  (void)send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// True when the server closes the connection, without a word, in time.
bool IsDropped(const Fd& fd, int64_t limit_ms) {
  Connection connection{Fd(dup(fd.get()))};
  const Deadline deadline = Deadline::In(limit_ms);
  while (!deadline.passed()) {
    pollfd waiting{connection.fd(), POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(deadline.LeftMs(1000)));
    if (!connection.Receive()) return connection.received().empty();
  }
  return false;
}

std::string HelloWith(const std::string& secret) {
  return PackHello(secret, {1, 2, 100, 1, 0, "h", "d"});
}

std::vector<std::string> MeetIn(const UniqueId& id, int n) {
  return RunThreads(
      n, [&](int rank) { return Exchange(id, rank, n, MeetOptions()); });
}

TEST(RendezvousTest, StrangersAreDropped) {
  Rendezvous rendezvous;
  const UniqueId id = MustOpen(&rendezvous);
  const std::string good = HelloWith(id.secret);
  std::string huge = good;
  huge[14] = '\x7f';  // the length
  std::string wrong = good;
  wrong[31] = static_cast<char>(wrong[31] ^ 1);  // the last byte of the secret
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.0\r\n\r\n"), std::string(100, '\0'), wrong,
        wrong.substr(0, kHelloPrefix), huge, std::string("\x16\x03\x01")}) {
    const Fd fd = MustConnect(id);
    Say(fd, bytes);
    EXPECT_TRUE(IsDropped(fd, 2000)) << bytes.substr(0, 8);
  }
  EXPECT_THAT(MeetIn(id, 3), Each(Exchanged(3)));
}

TEST(RendezvousTest, SilenceIsDroppedAfterFiveSeconds) {
  Rendezvous rendezvous;
  const UniqueId id = MustOpen(&rendezvous);
  const Fd silent = MustConnect(id), half = MustConnect(id),
           no_body = MustConnect(id);
  const std::string good = HelloWith(id.secret);
  Say(half, good.substr(0, 20));
  Say(no_body, good.substr(0, kHelloPrefix + 3));
  EXPECT_THAT(MeetIn(id, 3), Each(Exchanged(3)));
  for (const Fd* fd : {&silent, &half, &no_body}) {
    EXPECT_TRUE(IsDropped(*fd, 7000));
  }
}

TEST(RendezvousTest, HelloInSmallPartsIsAccepted) {
  Rendezvous rendezvous;
  const UniqueId id = MustOpen(&rendezvous);
  const Fd fd = MustConnect(id);
  for (const char c : HelloWith(id.secret)) Say(fd, std::string(1, c));
  Connection connection{Fd(dup(fd.get()))};
  Frame frame{};
  const Deadline deadline = Deadline::In(5000);
  while (connection.NextFrame(&frame) == Poll::kPending && !deadline.passed()) {
    usleep(1000);
    ASSERT_TRUE(connection.Receive());
  }
  EXPECT_EQ(frame.kind, FrameKind::kWelcome);
}

TEST(RendezvousTest, MemberThatTalksNonsenseFailsTheMeetingClearly) {
  Rendezvous rendezvous;
  const UniqueId id = MustOpen(&rendezvous);
  const Fd fd = MustConnect(id);
  BootstrapOptions options = MeetOptions();
  options.digest = "d";
  Say(fd, HelloWith(id.secret) + PackFrame(static_cast<FrameKind>(77), "?"));
  EXPECT_THAT(Exchange(id, 0, 2, options),
              AllOf(HasSubstr("rank 1 (host h, pid 1)"),
                    HasSubstr("unexpected frame 77")));
}

TEST(RendezvousTest, OtherProtocolVersionIsToldToAll) {
  Rendezvous rendezvous;
  const UniqueId id = MustOpen(&rendezvous);
  std::string future = HelloWith(id.secret);
  future[8] = 9;
  const auto texts = RunThreads(2, [&](int i) -> std::string {
    if (i == 0) return Exchange(id, 0, 2, MeetOptions());
    usleep(100'000);
    Say(MustConnect(id), future);
    return "";
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("version 9 of the rendezvous"),
                              HasSubstr("one version of Axon")));
}

// Connections are made in a child whose own limit does not matter here.
TEST(RendezvousTest, ThousandsOfStrangersHarmNothing) {
  Rendezvous rendezvous;
  const UniqueId id = MustOpen(&rendezvous);
  const int before = CountFds();
  const auto texts = RunProcesses(1, 60000, [&](int) -> std::string {
    std::vector<Fd> open;
    for (int i = 0; i < 5000; ++i) {
      auto fd = ConnectTcp(id.addresses[0], Deadline::In(5000));
      if (!fd.ok()) return fd.status().ToString();
      if (i % 2 == 0) Say(*fd, "garbage");
      open.push_back(*std::move(fd));
      if (open.size() > 300) open.erase(open.begin(), open.begin() + 100);
      if (i == 2500) {
        const std::string text = Exchange(id, 0, 1, MeetOptions());
        if (text != Exchanged(1)) return text;
      }
    }
    return "done";
  });
  EXPECT_EQ(texts[0], "done");
  const Deadline deadline = Deadline::In(10000);
  while (CountFds() > before && !deadline.passed()) usleep(10'000);
  EXPECT_LE(CountFds(), before);
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec +
                                    usage.ru_stime.tv_usec);
}

// The server has 60 descriptors, 200 silent strangers come: the ranks still
// meet, and the server does not spin.
TEST(RendezvousTest, StrangersTakeLittleMemory) {
  const auto texts = RunProcesses(1, 60000, [](int) -> std::string {
    const auto resident_mib = [] {
      std::ifstream file("/proc/self/statm");
      long pages = 0;
      file >> pages >> pages;
      return pages * sysconf(_SC_PAGESIZE) >> 20;
    };
    Rendezvous rendezvous;
    const UniqueId id = MustOpen(&rendezvous);
    const long before = resident_mib();
    std::vector<Fd> strangers;
    for (int i = 0; i < 400; ++i) strangers.push_back(MustConnect(id));
    // Whoever came later has been served, so they have been too.
    const auto met = MeetIn(id, 2);
    const long more = resident_mib() - before;
    if (met[0] != Exchanged(2)) return met[0];
    return more < 40 ? "little" : absl::StrCat(more, " MiB");
  });
  EXPECT_EQ(texts[0], "little");
}

TEST(RendezvousTest, OutOfDescriptorsStrangersGoFirst) {
  const auto texts = RunProcesses(1, 40000, [](int) -> std::string {
    Rendezvous rendezvous;
    const auto id = rendezvous.Open({});
    if (!id.ok()) return id.status().ToString();
    const auto inner = RunProcesses(
        4, 30000,
        [&](int i) -> std::string {
          if (i < 3) {
            usleep(300'000);
            return Exchange(*id, i, 3, MeetOptions());
          }
          std::vector<Fd> strangers;
          for (int k = 0; k < 200; ++k) strangers.push_back(MustConnect(*id));
          usleep(1'500'000);
          return Exchanged(3);
        },
        [](const std::vector<pid_t>&) {
          const rlimit limit{60, 60};
          setrlimit(RLIMIT_NOFILE, &limit);
        });
    for (const std::string& text : inner) {
      if (text != Exchanged(3)) return text;
    }
    const double cpu = CpuSeconds();
    return cpu < 0.5 ? "good" : absl::StrCat("used ", cpu, " s of CPU");
  });
  EXPECT_EQ(texts[0], "good");
}

TEST(RendezvousTest, DescriptorsUsedUpByMembersAreNamedInTheTimeout) {
  const auto texts = RunProcesses(1, 40000, [](int) -> std::string {
    Rendezvous rendezvous;
    const auto id = rendezvous.Open({});
    int gate[2];
    if (!id.ok() || pipe(gate) != 0) return "no gate";
    const auto inner = RunProcesses(
        20, 30000,
        [&](int i) -> std::string {
          char go = 0;
          if (read(gate[0], &go, 1) != 1) return "no gate";
          return Exchange(*id, i, 20, MeetOptions(1500));
        },
        // When all have started, room is left for half of them.
        [&](const std::vector<pid_t>&) {
          const auto most = static_cast<rlim_t>(CountFds() + 10);
          const rlimit limit{most, most};
          setrlimit(RLIMIT_NOFILE, &limit);
          if (write(gate[1], std::string(20, 'g').data(), 20) != 20) abort();
        });
    for (const std::string& text : inner) {
      if (text.find("Too many open files") != std::string::npos) return text;
    }
    return inner[0];
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("DEADLINE_EXCEEDED: only "),
                              HasSubstr("of 20 ranks"),
                              HasSubstr("Too many open files")));
}

TEST(RendezvousTest, ThreeHundredCyclesLeaveNothing) {
  const auto texts = RunProcesses(1, 120000, [](int) -> std::string {
    const rlimit limit{256, 256};
    setrlimit(RLIMIT_NOFILE, &limit);
    Rendezvous rendezvous;
    int fds = 0, threads = 0;
    for (int i = 0; i < 300; ++i) {
      const auto id = rendezvous.Open({});
      if (!id.ok()) return id.status().ToString();
      for (const std::string& text : MeetIn(*id, 4)) {
        if (text != Exchanged(4)) return absl::StrCat(i, ": ", text);
      }
      if (i == 0) {
        usleep(100'000);
        fds = CountFds();
        threads = CountThreads();
      }
    }
    usleep(100'000);
    if (CountFds() != fds || CountThreads() != threads) {
      return absl::StrCat("descriptors ", fds, " to ", CountFds(), ", threads ",
                          threads, " to ", CountThreads());
    }
    return "flat";
  });
  EXPECT_EQ(texts[0], "flat");
}

TEST(RendezvousTest, ManyMeetingsAtOnce) {
  Rendezvous rendezvous;
  std::vector<UniqueId> ids;
  for (int i = 0; i < 8; ++i) ids.push_back(MustOpen(&rendezvous));
  const auto texts = RunThreads(32, [&](int i) {
    return Exchange(ids[static_cast<size_t>(i) % 8], i / 8, 4, MeetOptions());
  });
  EXPECT_THAT(texts, Each(Exchanged(4)));
}

TEST(RendezvousTest, ServesIpv6) {
  Rendezvous rendezvous;
  UniqueId id = MustOpen(&rendezvous);
  std::string loopback(16, '\0');
  loopback[15] = 1;
  const Address v6(AF_INET6, loopback.data(), id.addresses[0].port());
  if (!ConnectTcp(v6, Deadline::In(1000)).ok()) {
    GTEST_SKIP() << "no IPv6 loopback here";
  }
  id.addresses = {v6};
  EXPECT_THAT(MeetIn(id, 3), Each(Exchanged(3)));
}

TEST(RendezvousTest, TriesTheNextAddress) {
  Rendezvous rendezvous;
  UniqueId id = MustOpen(&rendezvous);
  // First a port where nobody listens.
  char local[4] = {127, 0, 0, 1};
  id.addresses = {Address(AF_INET, local, FreePort()), id.addresses[0]};
  EXPECT_THAT(MeetIn(id, 3), Each(Exchanged(3)));
}

TEST(RendezvousTest, PortRange) {
  const uint16_t port = FreePort();
  Rendezvous first, second;
  const RendezvousOptions options{"", absl::StrCat(port, "-", port + 1)};
  const auto a = first.Open(options), b = second.Open(options);
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->addresses[0].port(), port);
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(b->addresses[0].port(), port + 1);
  Rendezvous third;
  const auto c = third.Open(options);
  EXPECT_THAT(
      c.status().ToString(),
      AllOf(HasSubstr(absl::StrCat("AXON_PORT_RANGE=", port, "-", port + 1)),
            HasSubstr("Address already in use"), HasSubstr("wider range")));
}

TEST(RendezvousTest, BadOptions) {
  Rendezvous rendezvous;
  for (const char* range : {"x", "5-1", "0-3", "1-70000", "1-2-3", "-"}) {
    const auto id = rendezvous.Open({"", range});
    EXPECT_EQ(id.status().code(), absl::StatusCode::kInvalidArgument) << range;
    EXPECT_THAT(id.status().ToString(), HasSubstr(range));
  }
  EXPECT_THAT(rendezvous.Open({"no-such-if", ""}).status().ToString(),
              HasSubstr("interface no-such-if not found; present:"));
}

}  // namespace
}  // namespace axon
