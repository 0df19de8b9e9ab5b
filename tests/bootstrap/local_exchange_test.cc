// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/local_exchange.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bootstrap/fd_message.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

LocalListener MustListen(absl::string_view directory = "") {
  auto listener = LocalListener::Open(directory);
  EXPECT_TRUE(listener.ok()) << listener.status();
  return *std::move(listener);
}

LocalExchangeOptions Options(const LocalListener& listener, int index,
                             int count, int64_t timeout_ms = 20000) {
  LocalExchangeOptions options;
  options.index = index;
  options.count = count;
  options.address = listener.address();
  options.secret = listener.secret();
  options.deadline = Deadline::In(timeout_ms);
  return options;
}

// `count` memory files, each with a text that says whose and which it is.
std::vector<Fd> MakeFiles(int index, int count) {
  std::vector<Fd> files;
  for (int i = 0; i < count; ++i) {
    const std::string text = absl::StrCat(index, ".", i, ";");
    files.emplace_back(memfd_create("axon_test", MFD_CLOEXEC));
    EXPECT_EQ(write(files.back().get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  return files;
}

std::string ReadAll(const Fd& fd) {
  char buffer[64];
  const ssize_t n = pread(fd.get(), buffer, sizeof(buffer), 0);
  return n < 0 ? "?" : std::string(buffer, static_cast<size_t>(n));
}

// Participates with `mine` files; returns the texts of all that came back.
std::string Take(const LocalExchangeOptions& options, int mine,
                 LocalListener* listener) {
  const std::vector<Fd> files = MakeFiles(options.index, mine);
  std::vector<int> numbers;
  for (const Fd& file : files) numbers.push_back(file.get());
  const auto all = ExchangeFds(options, numbers, listener);
  if (!all.ok()) return all.status().ToString();
  std::string texts;
  for (const auto& one : *all) {
    for (const Fd& fd : one) {
      if (!(fcntl(fd.get(), F_GETFD) & FD_CLOEXEC)) return "not cloexec";
      texts += ReadAll(fd);
    }
    texts += "|";
  }
  return texts;
}

TEST(LocalExchangeTest, FiveProcesses) {
  LocalListener listener = MustListen();
  const auto texts = RunProcesses(5, 20000, [&](int index) {
    return Take(Options(listener, index, 5), index,
                index == 0 ? &listener : nullptr);
  });
  EXPECT_THAT(texts, Each("|1.0;|2.0;2.1;|3.0;3.1;3.2;|4.0;4.1;4.2;4.3;|"));
}

TEST(LocalExchangeTest, OneParticipantNeedsNoOther) {
  LocalListener listener = MustListen();
  EXPECT_EQ(Take(Options(listener, 0, 1), 2, &listener), "0.0;0.1;|");
}

TEST(LocalExchangeTest, MoreDescriptorsThanOneMessageHolds) {
  LocalListener listener = MustListen();
  std::string expected;
  for (int i = 0; i < 600; ++i) absl::StrAppend(&expected, "1.", i, ";");
  const auto texts = RunProcesses(3, 30000, [&](int index) {
    rlimit limit{4096, 4096};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::min<rlim_t>(4096, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
    return Take(Options(listener, index, 3), index == 1 ? 600 : 1,
                index == 0 ? &listener : nullptr);
  });
  EXPECT_THAT(texts, Each("0.0;|" + expected + "|2.0;|"));
}

TEST(LocalExchangeTest, ManyThreadsLeaveNoDescriptors) {
  const int before = CountFds();
  {
    LocalListener listener = MustListen();
    const auto texts = RunThreads(24, [&](int index) {
      return Take(Options(listener, index, 24), 1,
                  index == 0 ? &listener : nullptr);
    });
    EXPECT_THAT(texts, Each(StartsWith("0.0;|1.0;|2.0;|")));
  }
  EXPECT_EQ(CountFds(), before);
}

TEST(LocalExchangeTest, FileInsteadOfAnAbstractName) {
  std::string directory = ::testing::TempDir() + "axon_local_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  {
    LocalListener listener = MustListen(directory);
    const auto texts = RunThreads(3, [&](int index) {
      return Take(Options(listener, index, 3), 1,
                  index == 0 ? &listener : nullptr);
    });
    EXPECT_THAT(texts, Each("0.0;|1.0;|2.0;|"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove(directory);
}

TEST(LocalExchangeTest, AbsenceIsNamed) {
  LocalListener listener = MustListen();
  const auto texts = RunThreads(3, [&](int index) {
    if (index == 1) return std::string();
    return Take(Options(listener, index, 3, 200), 1,
                index == 0 ? &listener : nullptr);
  });
  EXPECT_THAT(texts[0], AllOf(StartsWith("DEADLINE_EXCEEDED"),
                              HasSubstr("participant 1 of 3")));
  EXPECT_THAT(texts[2], StartsWith("DEADLINE_EXCEEDED"));
}

// Participant 2 dies with half of its message said: all others learn it at once
// although their deadline is far.
TEST(LocalExchangeTest, DeathIsNamed) {
  LocalListener listener = MustListen();
  const int64_t start = NowNs();
  const auto texts = RunProcesses(4, 20000, [&](int index) {
    if (index == 2) {
      auto fd = ConnectLocal(listener.address(), Deadline::In(5000));
      if (!fd.ok()) return fd.status().ToString();
      // The first of two: shows the secret, then there is silence.
      const std::vector<Fd> files = MakeFiles(2, 1);
      FdMessage message{};
      listener.secret().copy(message.secret, sizeof(message.secret));
      message.kind = FdMessageKind::kFds;
      message.owner = 2;
      message.total = 2;
      const auto sent = SendFds(fd->get(), message, {files[0].get()});
      if (!sent.ok()) return sent.status().ToString();
      usleep(100'000);
      kill(getpid(), SIGKILL);
    }
    return Take(Options(listener, index, 4), 1,
                index == 0 ? &listener : nullptr);
  });
  EXPECT_EQ(texts[2], "signal 9");
  for (const int i : {0, 1, 3}) {
    EXPECT_THAT(
        texts[static_cast<size_t>(i)],
        AllOf(StartsWith("UNAVAILABLE"), HasSubstr("participant 2 of 4")));
  }
  EXPECT_LT(NowNs() - start, 5'000'000'000);
}

TEST(LocalExchangeTest, DeathOfTheLeaderIsNoticed) {
  auto listener = std::make_unique<LocalListener>(MustListen());
  const auto options = Options(*listener, 1, 2);
  const auto texts = RunThreads(2, [&](int index) {
    if (index == 1) return Take(options, 1, nullptr);
    usleep(100'000);
    listener.reset();
    return std::string();
  });
  EXPECT_THAT(texts[1], AllOf(StartsWith("UNAVAILABLE"),
                              HasSubstr("participant 0 of 2")));
  EXPECT_THAT(Take(options, 1, nullptr), HasSubstr("nobody listens at @axon-"));
}

TEST(LocalExchangeTest, StrangersChangeNothing) {
  LocalListener listener = MustListen();
  std::vector<Fd> silent;
  for (int i = 0; i < 40; ++i) {
    auto fd = ConnectLocal(listener.address(), Deadline::In(5000));
    ASSERT_TRUE(fd.ok()) << fd.status();
    // A third is silent, one sends garbage, one the wrong secret.
    if (i % 3 == 1) {
      ASSERT_EQ(write(fd->get(), "hello", 5), 5);
    }
    FdMessage message{};
    if (i % 3 == 2) {
      ASSERT_TRUE(SendFds(fd->get(), message, {}).ok());
    }
    silent.push_back(*std::move(fd));
  }
  const auto texts = RunThreads(3, [&](int index) {
    return Take(Options(listener, index, 3), 1,
                index == 0 ? &listener : nullptr);
  });
  EXPECT_THAT(texts, Each("0.0;|1.0;|2.0;|"));
}

TEST(LocalExchangeTest, TwoWithOneIndexAreRefused) {
  LocalListener listener = MustListen();
  const auto texts = RunThreads(3, [&](int index) {
    return Take(Options(listener, index == 2 ? 1 : index, 3, 5000), 1,
                index == 0 ? &listener : nullptr);
  });
  EXPECT_THAT(texts[0], AllOf(StartsWith("FAILED_PRECONDITION"),
                              HasSubstr("participant 1 of 3")));
  EXPECT_THAT(texts[1], AnyOf(StartsWith("FAILED_PRECONDITION"),
                              StartsWith("UNAVAILABLE")));
}

TEST(LocalExchangeTest, TooFewDescriptorsIsAClearError) {
  LocalListener listener = MustListen();
  const auto texts = RunProcesses(2, 20000, [&](int index) {
    if (index == 1) {
      const rlimit limit{40, 40};
      setrlimit(RLIMIT_NOFILE, &limit);
    }
    return Take(Options(listener, index, 2, 5000), index == 0 ? 100 : 0,
                index == 0 ? &listener : nullptr);
  });
  EXPECT_THAT(texts[1],
              AllOf(StartsWith("RESOURCE_EXHAUSTED"), HasSubstr("ulimit -n")));
}

TEST(LocalExchangeTest, SenselessOptions) {
  LocalListener listener = MustListen();
  EXPECT_THAT(Take(Options(listener, 2, 2), 1, nullptr),
              StartsWith("INVALID_ARGUMENT"));
  EXPECT_THAT(Take(Options(listener, 0, 2), 1, nullptr),
              StartsWith("INVALID_ARGUMENT"));
  EXPECT_THAT(
      LocalListener::Open("/" + std::string(200, 'x')).status().ToString(),
      HasSubstr("cannot name a Unix socket"));
}

}  // namespace
}  // namespace axon
