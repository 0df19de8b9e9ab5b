// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/mapping.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include "tests/support/temp_dir.h"

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kSize = size_t{1} << 20;

int64_t BlocksOf(const Fd& fd) {
  struct stat status {};
  EXPECT_EQ(fstat(fd.get(), &status), 0);
  return status.st_blocks;
}

TEST(MappingTest, TwoMappingsShowTheSameMemory) {
  const auto file = CreateSharedFile(ShmKind::kMemfd, "", kSize);
  ASSERT_TRUE(file.ok()) << file.status();
  auto a = Mapping::Map(file->fd, kSize);
  auto b = Mapping::Map(file->fd, kSize);
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->base(), b->base());
  std::memcpy(a->base() + 5000, "hello", 5);
  EXPECT_EQ(std::memcmp(b->base() + 5000, "hello", 5), 0);
}

TEST(MappingTest, WhatIsWrittenAfterMakePrivateIsNotShared) {
  const auto file = CreateSharedFile(ShmKind::kMemfd, "", kSize);
  auto a = Mapping::Map(file->fd, kSize);
  auto b = Mapping::Map(file->fd, kSize);
  ASSERT_TRUE(a.ok() && b.ok());
  std::memcpy(a->base(), "hello", 5);
  const std::byte* base = b->base();
  b->MakePrivate(file->fd);
  EXPECT_EQ(b->base(), base);
  EXPECT_EQ(std::memcmp(b->base(), "hello", 5), 0);
  std::memcpy(b->base(), "there", 5);
  EXPECT_EQ(std::memcmp(a->base(), "hello", 5), 0);
  EXPECT_EQ(std::memcmp(b->base(), "there", 5), 0);
}

TEST(MappingTest, MovesAndUnmaps) {
  const auto file = CreateSharedFile(ShmKind::kMemfd, "", kSize);
  std::byte* base = nullptr;
  {
    Mapping first = *Mapping::Map(file->fd, kSize);
    base = first.base();
    Mapping second(std::move(first));
    EXPECT_EQ(first.base(), nullptr);
    EXPECT_EQ(second.base(), base);
    Mapping third;
    third = std::move(second);
    EXPECT_EQ(third.base(), base);
    EXPECT_EQ(third.size(), kSize);
    unsigned char resident = 0;
    EXPECT_EQ(mincore(base, 4096, &resident), 0);
  }
  unsigned char resident = 0;
  EXPECT_EQ(mincore(base, 4096, &resident), -1) << "still mapped";
}

TEST(MappingTest, SaysWhenThereIsNoAddressSpace) {
  const auto file = CreateSharedFile(ShmKind::kMemfd, "", kSize);
  ASSERT_TRUE(file.ok()) << file.status();
  // More than any processor of today addresses.
  const auto mapping = Mapping::Map(file->fd, size_t{1} << 60);
  EXPECT_THAT(std::string(mapping.status().message()),
              AllOf(HasSubstr("1099511627776 MiB of address space"),
                    HasSubstr("AXON_ARENA_SIZE"), HasSubstr("ulimit -v")));
}

TEST(SharedFileTest, MemoryFilesCannotShrink) {
  const auto file = CreateSharedFile(ShmKind::kMemfd, "", kSize);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->directory, "");
  EXPECT_NE(ftruncate(file->fd.get(), 4096), 0);
  EXPECT_NE(ftruncate(file->fd.get(), 2 * kSize), 0);
  EXPECT_NE(fcntl(file->fd.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(BlocksOf(file->fd), 0) << "not sparse";
  EXPECT_NE(fcntl(file->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SharedFileTest, FilesBelongToTheirUserAndHaveNoName) {
  const TempDir dir;
  const auto file = CreateSharedFile(ShmKind::kFile, dir.path(), kSize);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->directory, dir.path());
  EXPECT_TRUE(dir.empty());
  struct stat status {};
  ASSERT_EQ(fstat(file->fd.get(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(status.st_size, static_cast<off_t>(kSize));
  EXPECT_EQ(status.st_nlink, 0u);
}

TEST(SharedFileTest, SaysWhichDirectoryCannotBeUsed) {
  const auto file =
      CreateSharedFile(ShmKind::kFile, "/nonexistent/directory", kSize);
  EXPECT_THAT(std::string(file.status().message()),
              AllOf(HasSubstr("in /nonexistent/directory as user"),
                    HasSubstr("AXON_SHM_DIR"), HasSubstr("AXON_SHM=memfd"),
                    HasSubstr("No such file")));
}

TEST(ReserveRangeTest, TakesAndGivesBackMemory) {
  const auto file = CreateSharedFile(ShmKind::kMemfd, "", kSize);
  Mapping mapping = *Mapping::Map(file->fd, kSize);
  ASSERT_TRUE(ReserveRange(file->fd, 4096, 8192, "").ok());
  EXPECT_EQ(BlocksOf(file->fd), 16);
  mapping.base()[5000] = std::byte{7};
  ReleaseRange(file->fd, 4096, 4096);
  EXPECT_EQ(BlocksOf(file->fd), 8);
  ASSERT_TRUE(ReserveRange(file->fd, 4096, 4096, "").ok());
  EXPECT_EQ(mapping.base()[5000], std::byte{0});
}

// Kernels before 6.9 undo a reservation that a signal interrupts; a loop around
// a large one would not end.
TEST(ReserveRangeTest, GetsLargeRangesThoughSignalsCome) {
  constexpr size_t kLarge = size_t{128} << 20;
  const auto file = CreateSharedFile(ShmKind::kMemfd, "", kLarge);
  ASSERT_TRUE(file.ok()) << file.status();
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = [](int) {};
  ignore.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGALRM, &ignore, &before), 0);
  const itimerval often{{0, 2000}, {0, 2000}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  EXPECT_TRUE(ReserveRange(file->fd, 4096, kLarge - 4096, "").ok());
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(BlocksOf(file->fd), static_cast<int64_t>(kLarge - 4096) / 512);
}

TEST(ReserveRangeTest, SaysWhatIsWrongWithAFile) {
  const absl::Status status = ReserveRange(Fd(), 0, 4096, "");
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("4 KiB"), HasSubstr("a memory file"),
                    HasSubstr("the free memory is not known")));
}

// A file system that is too small: an error with the sizes instead of SIGBUS.
TEST(ReserveRangeTest, SaysHowMuchIsShort) {
  const TempDir dir(64 << 10);
  if (!dir.mounted()) GTEST_SKIP() << "mounting takes a privileged user";
  const auto file = CreateSharedFile(ShmKind::kFile, dir.path(), kSize);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(ReserveRange(file->fd, 0, 16 << 10, file->directory).ok());
  const absl::Status status =
      ReserveRange(file->fd, 0, 512 << 10, file->directory);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("512 KiB"), HasSubstr(file->directory),
                    HasSubstr("of 64 KiB are free"), HasSubstr("--shm-size"),
                    HasSubstr("AXON_OUTBOX_SIZE"), HasSubstr("No space left")));
}

}  // namespace
}  // namespace axon
