// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/arena.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kPage = 4096;
constexpr size_t kSize = 256 * kPage;
constexpr char kUid[] = "0123456789abcdef";
constexpr char kOther[] = "0123456789abcdeX";

std::unique_ptr<Arena> NewArena(size_t size = kSize) {
  auto arena = Arena::Create(ShmKind::kMemfd, "", size, kUid);
  EXPECT_TRUE(arena.ok()) << arena.status();
  return *std::move(arena);
}

bool AllZero(const std::byte* p, size_t size) {
  return std::all_of(p, p + size,
                     [](std::byte b) { return b == std::byte{0}; });
}

int64_t BlocksOf(const Arena& arena) {
  struct stat status {};
  EXPECT_EQ(fstat(arena.fd().get(), &status), 0);
  return status.st_blocks * 512 / static_cast<int64_t>(kPage);
}

TEST(ArenaTest, AllocatesZeroedPages) {
  const auto arena = NewArena();
  EXPECT_EQ(arena->allocated_bytes(), 0u);
  for (size_t bytes : {size_t{0}, size_t{1}, kPage, kPage + 1}) {
    const auto p = arena->Allocate(bytes);
    ASSERT_TRUE(p.ok()) << p.status();
    EXPECT_EQ(arena->OffsetOf(*p) % kPage, 0u);
    EXPECT_GE(arena->OffsetOf(*p), kPage) << "the header's page";
    EXPECT_TRUE(AllZero(*p, bytes));
  }
  EXPECT_EQ(arena->allocated_bytes(), 5 * kPage);
  EXPECT_EQ(BlocksOf(*arena), 6) << "reserved, with the header's page";
}

// As on file systems that cannot: nobody gets what another has written.
TEST(ArenaTest, MemoryThatCannotBeGivenBackIsZeroed) {
  const auto arena = NewArena();
  std::byte* const p = *arena->Allocate(3 * kPage);
  std::memset(p, 0xee, 3 * kPage);
  // Its descriptor becomes one that allows no change.
  const int fd = arena->fd().get();
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int writable = dup(fd), readable = open(path.c_str(), O_RDONLY);
  ASSERT_GE(readable, 0);
  ASSERT_EQ(dup2(readable, fd), fd);
  EXPECT_FALSE(ReleaseRange(arena->fd(), kPage, kPage));
  EXPECT_TRUE(arena->Free(p));
  ASSERT_EQ(dup2(writable, fd), fd);
  close(writable);
  close(readable);
  ASSERT_EQ(*arena->Allocate(3 * kPage), p);
  EXPECT_TRUE(AllZero(p, 3 * kPage));
}

// The kernel would end the process.
TEST(ArenaTest, LargerThanAFileMayBeIsRefused) {
  const auto texts = RunProcesses(1, 10'000, [](int) -> std::string {
    const rlimit limit{8 * kPage, RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "setrlimit";
    TempDir dir;
    for (const ShmKind kind : {ShmKind::kMemfd, ShmKind::kFile}) {
      const auto small = Arena::Create(kind, dir.path(), 8 * kPage, kUid);
      if (!small.ok()) return std::string(small.status().message());
      const auto large = Arena::Create(kind, dir.path(), 9 * kPage, kUid);
      if (large.ok()) return "made";
      const std::string text(large.status().message());
      if (text.find("36864 bytes") == std::string::npos ||
          text.find("'ulimit -f'") == std::string::npos) {
        return text;
      }
    }
    return "ok";
  });
  EXPECT_EQ(texts[0], "ok");
}

TEST(ArenaTest, FreeRangesGrowTogetherInAnyOrder) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    const auto arena = NewArena(5 * kPage);
    std::vector<std::byte*> pages;
    for (int i = 0; i < 4; ++i) pages.push_back(*arena->Allocate(kPage));
    EXPECT_FALSE(arena->Allocate(1).ok());
    for (int i : order) EXPECT_TRUE(arena->Free(pages[static_cast<size_t>(i)]));
    EXPECT_EQ(arena->allocated_bytes(), 0u);
    EXPECT_TRUE(arena->Allocate(4 * kPage).ok())
        << testing::PrintToString(order);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(ArenaTest, ReusedMemoryIsZeroAgain) {
  const auto arena = NewArena(3 * kPage);
  std::byte* p = *arena->Allocate(2 * kPage);
  std::memset(p, 0xff, 2 * kPage);
  EXPECT_TRUE(arena->Free(p));
  EXPECT_EQ(BlocksOf(*arena), 1) << "not given back to the system";
  std::byte* again = *arena->Allocate(2 * kPage);
  EXPECT_EQ(again, p);
  EXPECT_TRUE(AllZero(again, 2 * kPage));
}

TEST(ArenaTest, RefusesToFreeWhatItDidNotGive) {
  const auto arena = NewArena();
  std::byte* p = *arena->Allocate(2 * kPage);
  std::byte stranger{};
  EXPECT_FALSE(arena->Free(&stranger));
  EXPECT_FALSE(arena->Free(nullptr));
  EXPECT_FALSE(arena->Free(p + kPage));
  EXPECT_FALSE(arena->Free(arena->base()));
  EXPECT_TRUE(arena->Free(p));
  EXPECT_FALSE(arena->Free(p)) << "twice";
}

TEST(ArenaTest, SaysWhenItIsFull) {
  const auto arena = NewArena(size_t{1} << 20);
  const auto p = arena->Allocate(size_t{2} << 20);
  EXPECT_EQ(p.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(p.status().message()),
              AllOf(HasSubstr("no 2048 KiB left"), HasSubstr("arena of 1 MiB"),
                    HasSubstr("AXON_ARENA_SIZE")));
  const auto most = arena->Allocate(~size_t{0} - 5);
  EXPECT_EQ(most.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(most.status().message()),
              HasSubstr("18446744073709551610 bytes"));
}

// Random calls against a list of what is in use: no two overlap, nothing is
// lost.
TEST(ArenaTest, HoldsUnderRandomCalls) {
  const auto arena = NewArena();
  std::mt19937_64 random(1);
  std::map<std::byte*, size_t> used;
  size_t total = 0;
  for (int i = 0; i < 4000; ++i) {
    if (!used.empty() && random() % 5 < 2) {
      auto it = used.begin();
      std::advance(it, static_cast<ptrdiff_t>(random() % used.size()));
      ASSERT_TRUE(arena->Free(it->first));
      total -= it->second;
      used.erase(it);
    } else {
      const size_t size = (1 + random() % 20) * kPage;
      const auto p = arena->Allocate(size);
      if (!p.ok()) continue;
      const auto next = used.upper_bound(*p);
      ASSERT_TRUE(next == used.end() || *p + size <= next->first);
      ASSERT_TRUE(next == used.begin() ||
                  std::prev(next)->first + std::prev(next)->second <= *p);
      ASSERT_LE(arena->OffsetOf(*p) + size, arena->size());
      (*p)[0] = std::byte{1};
      used[*p] = size;
      total += size;
    }
    ASSERT_EQ(arena->allocated_bytes(), total);
  }
  for (const auto& [p, size] : used) ASSERT_TRUE(arena->Free(p));
  EXPECT_TRUE(arena->Allocate(kSize - kPage).ok()) << "something is lost";
}

TEST(ArenaTest, ServesThreads) {
  const auto arena = NewArena();
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300 && wrong[t].empty(); ++i) {
        const auto p = arena->Allocate(3 * kPage);
        if (!p.ok()) {
          wrong[t] = p.status().ToString();
        } else if (!AllZero(*p, 3 * kPage)) {
          wrong[t] = "not zero";
        } else {
          std::memset(*p, static_cast<int>(t) + 1, 3 * kPage);
          if (!arena->Free(*p)) wrong[t] = "not freed";
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(""));
  EXPECT_EQ(arena->allocated_bytes(), 0u);
}

TEST(ArenaTest, PeersSeeItWhereverTheyMapIt) {
  const auto arena = NewArena();
  std::byte* p = *arena->Allocate(kPage);
  std::memcpy(p, "hello", 5);
  const auto texts = RunProcesses(1, 20'000, [&](int) -> std::string {
    const auto mapping = Arena::MapPeer(arena->fd(), kSize, kUid);
    if (!mapping.ok()) return mapping.status().ToString();
    std::byte* at = mapping->base() + arena->OffsetOf(p);
    const std::string found(reinterpret_cast<char*>(at), 5);
    std::memcpy(at, "there", 5);
    return found;
  });
  EXPECT_EQ(texts[0], "hello");
  EXPECT_EQ(std::memcmp(p, "there", 5), 0);
}

TEST(ArenaTest, PeersCheckWhoseItIs) {
  const auto arena = NewArena();
  EXPECT_TRUE(Arena::MapPeer(arena->fd(), kSize, kUid).ok());
  const auto refused = [&](const char* uid) {
    const auto mapping = Arena::MapPeer(arena->fd(), kSize, uid);
    EXPECT_EQ(mapping.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(mapping.status().message()),
                HasSubstr("not its arena"));
  };
  refused(kOther);
  arena->header().version += 1;
  refused(kUid);
  arena->header().version -= 1;
  arena->header().arena_size += kPage;
  refused(kUid);
  arena->header().arena_size -= kPage;
  arena->header().magic ^= 1;
  refused(kUid);
}

// A peer that names a larger size than its file has is refused, instead of
// being believed until a read beyond the end kills the reader.
TEST(ArenaTest, PeersCheckThatTheFileIsThatLong) {
  const auto arena = NewArena();
  arena->header().arena_size = 2 * kSize;
  EXPECT_THAT(
      std::string(
          Arena::MapPeer(arena->fd(), 2 * kSize, kUid).status().message()),
      AllOf(HasSubstr("has 1048576 bytes"), HasSubstr("2097152")));
  const auto empty = CreateSharedFile(ShmKind::kMemfd, "", 0);
  EXPECT_FALSE(Arena::MapPeer(empty->fd, kSize, kUid).ok());
  EXPECT_FALSE(Arena::MapPeer(Fd(), kSize, kUid).ok());
}

TEST(ArenaTest, FilesHaveNoName) {
  const TempDir dir;
  const auto arena = *Arena::Create(ShmKind::kFile, dir.path(), kSize, kUid);
  EXPECT_TRUE(dir.empty());
  std::byte* p = *arena->Allocate(kPage);
  p[0] = std::byte{1};
  EXPECT_TRUE(Arena::MapPeer(arena->fd(), kSize, kUid).ok());
}

// Too little shared memory is an error of the allocation that wants it.
TEST(ArenaTest, TooSmallAFileSystemIsAnErrorWithSizes) {
  const TempDir dir(64 << 10);
  if (!dir.mounted()) GTEST_SKIP() << "mounting takes a privileged user";
  const auto arena = *Arena::Create(ShmKind::kFile, dir.path(), kSize, kUid);
  EXPECT_TRUE(arena->Allocate(8 * kPage).ok());
  const auto p = arena->Allocate(32 * kPage);
  EXPECT_THAT(std::string(p.status().message()),
              AllOf(HasSubstr("128 KiB"), HasSubstr("of 64 KiB are free"),
                    HasSubstr("--shm-size")));
  EXPECT_EQ(arena->allocated_bytes(), 8 * kPage);
  EXPECT_TRUE(arena->Allocate(4 * kPage).ok()) << "the rest can be used";
}

// An arena whose first page cannot be had leaves no file behind.
TEST(ArenaTest, AFullFileSystemLeavesNothingBehind) {
  const TempDir dir(kPage);
  if (!dir.mounted()) GTEST_SKIP() << "mounting takes a privileged user";
  const auto first = Arena::Create(ShmKind::kFile, dir.path(), kSize, kUid);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Arena::Create(ShmKind::kFile, dir.path(), kSize, kUid);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr("of 4 KiB are free"));
  EXPECT_TRUE(dir.empty());
}

}  // namespace
}  // namespace axon
