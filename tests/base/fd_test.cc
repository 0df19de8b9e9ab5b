// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

namespace axon {
namespace {

int OpenNull() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) != -1; }

TEST(FdTest, EmptyIsNotValid) {
  const Fd empty;
  EXPECT_FALSE(empty.valid());
  EXPECT_EQ(empty.get(), -1);
}

TEST(FdTest, ClosesOnce) {
  const int raw = OpenNull();
  ASSERT_GE(raw, 0);
  {
    Fd fd(raw);
    EXPECT_TRUE(fd.valid());
    EXPECT_EQ(fd.get(), raw);
    fd.Close();
    EXPECT_FALSE(fd.valid());
    EXPECT_FALSE(IsOpen(raw));
    // The number is free again; the destructor must not close its new owner.
    ASSERT_EQ(OpenNull(), raw);
  }
  EXPECT_TRUE(IsOpen(raw));
  close(raw);
}

TEST(FdTest, MovesTheDescriptor) {
  const int raw = OpenNull(), other = OpenNull();
  {
    Fd first(raw), second(other);
    Fd third(std::move(first));
    EXPECT_EQ(third.get(), raw);
    third = std::move(second);
    EXPECT_EQ(third.get(), other);
  }
  EXPECT_FALSE(IsOpen(raw));
  EXPECT_FALSE(IsOpen(other));
}

}  // namespace
}  // namespace axon
