// SPDX-License-Identifier: Apache-2.0
#include "comm/links.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include <utility>

namespace axon {
namespace {

std::pair<Fd, Fd> Pipe() {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

TEST(LinksTest, OneLinkAProcessHoweverManyUsers) {
  Links links;
  EXPECT_EQ(links.Acquire("a"), nullptr);
  auto [read, write] = Pipe();
  Link* const link = links.Add("a", Mapping(), std::move(read));
  auto [again, unused] = Pipe();
  EXPECT_EQ(links.Add("a", Mapping(), std::move(again)), link);
  EXPECT_EQ(links.Acquire("a"), link);
  EXPECT_EQ(links.Acquire("b"), nullptr);
  EXPECT_EQ(link->users, 3);
  links.Release(link);
  links.Release(link);
  EXPECT_EQ(links.Acquire("a"), link);
  links.Release(link);
  links.Release(link);
  EXPECT_EQ(links.Acquire("a"), nullptr);
}

TEST(LinksTest, TheLastUserClosesIt) {
  Links links;
  auto [read, write] = Pipe();
  Link* const link = links.Add("a", Mapping(), std::move(read));
  links.Release(link);
  // Nobody reads any more: a write breaks the pipe.
  signal(SIGPIPE, SIG_IGN);
  EXPECT_EQ(::write(write.get(), "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST(LinksTest, AProcessThatEndsHangsUp) {
  Links links;
  auto [read, write] = Pipe();
  Link* const link = links.Add("child", Mapping(), std::move(read));
  auto [go_read, go_write] = Pipe();
  const pid_t child = fork();
  if (child == 0) {
    go_write.Close();
    char c;
    _exit(::read(go_read.get(), &c, 1) == 0 ? 0 : 1);
  }
  write.Close();  // only the child holds it now
  EXPECT_FALSE(link->Dead());
  go_write.Close();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(link->Dead());
  links.Release(link);
}

}  // namespace
}  // namespace axon
