// SPDX-License-Identifier: Apache-2.0
// Sleeping and ringing. A lost wake-up shows as a sleep that lasted until its
// timeout, which is far longer than any wait for a processor.
#include "transport/doorbell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tests/support/processes.h"
#include "tests/support/threads.h"

namespace axon {
namespace {

constexpr int64_t kLongUs = 20'000'000;
constexpr int64_t kNsPerUs = 1000;

// Whether the sleep ended early.
bool SleepsLess(Doorbell& doorbell, uint32_t seen, int64_t timeout_us) {
  const int64_t begin = NowNs();
  SleepOn(doorbell, seen, timeout_us);
  return NowNs() - begin < timeout_us * kNsPerUs;
}

TEST(DoorbellTest, SleepsUntilItsTimeout) {
  Doorbell doorbell{};
  EXPECT_FALSE(SleepsLess(doorbell, 0, 20'000));
  EXPECT_EQ(doorbell.sleepers.load(), 0u);
}

TEST(DoorbellTest, DoesNotSleepWhenRungSince) {
  Doorbell doorbell{};
  const uint32_t seen = doorbell.rings.load();
  Ring(doorbell);
  EXPECT_TRUE(SleepsLess(doorbell, seen, kLongUs));
}

TEST(DoorbellTest, CountsRoundTheEndOfItsNumbers) {
  Doorbell doorbell{};
  doorbell.rings.store(~uint32_t{0});
  Ring(doorbell);
  EXPECT_EQ(doorbell.rings.load(), 0u);
  EXPECT_TRUE(SleepsLess(doorbell, ~uint32_t{0}, kLongUs));
}

TEST(DoorbellTest, ARingWakesAll) {
  Doorbell doorbell{};
  std::atomic<int> woken{0};
  RunRanks(4, [&](int thread) {
    if (thread > 0) {
      if (SleepsLess(doorbell, 0, kLongUs)) woken.fetch_add(1);
      return;
    }
    while (doorbell.sleepers.load() < 3) std::this_thread::yield();
    Ring(doorbell);
  });
  EXPECT_EQ(woken.load(), 3);
  EXPECT_EQ(doorbell.sleepers.load(), 0u);
}

// Two sides wake each other in turn, each ringing while the other is just about
// to sleep. Anonymous shared memory: for threads and for forked processes.
struct Court {
  Doorbell doorbells[2];
  std::atomic<uint32_t> ball{0};  // odd: the turn of side 1
};

std::string Play(Court& court, int side, uint32_t rounds) {
  for (uint32_t i = 0; i < rounds; ++i) {
    const uint32_t turn = 2 * i + static_cast<uint32_t>(side);
    for (;;) {
      const uint32_t seen = court.doorbells[side].rings.load();
      if (court.ball.load() == turn) break;
      if (!SleepsLess(court.doorbells[side], seen, kLongUs)) {
        return absl::StrCat("side ", side, " missed the ring of turn ", turn);
      }
    }
    court.ball.store(turn + 1);
    Ring(court.doorbells[1 - side]);
  }
  return "";
}

class SharedCourt {
 public:
  SharedCourt()
      : memory_(mmap(nullptr, sizeof(Court), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        court_(new (memory_) Court()) {}
  ~SharedCourt() { munmap(memory_, sizeof(Court)); }
  Court& operator*() { return *court_; }

 private:
  void* memory_;
  Court* court_;
};

TEST(DoorbellTest, NoRingIsLostAmongThreads) {
  SharedCourt court;
  std::vector<std::string> wrong(2);
  RunRanks(2, [&](int side) {
    wrong[static_cast<size_t>(side)] = Play(*court, side, 20'000);
  });
  EXPECT_THAT(wrong, testing::Each(""));
}

TEST(DoorbellTest, NoRingIsLostAmongProcesses) {
  SharedCourt court;
  const auto texts = RunProcesses(2, 60'000, [&](int side) -> std::string {
    const std::string wrong = Play(*court, side, 20'000);
    return wrong.empty() ? "fine" : wrong;
  });
  EXPECT_THAT(texts, testing::Each("fine"));
}

// Many ring one sleeper, who counts what they have put down before.
TEST(DoorbellTest, ManyRingers) {
  constexpr int kRingers = 3;
  constexpr uint32_t kEach = 10'000;
  Doorbell doorbell{};
  std::atomic<uint32_t> put{0};
  bool slept_through = false;
  RunRanks(kRingers + 1, [&](int thread) {
    if (thread > 0) {
      for (uint32_t i = 0; i < kEach; ++i) {
        put.fetch_add(1);
        Ring(doorbell);
      }
      return;
    }
    for (;;) {
      const uint32_t seen = doorbell.rings.load();
      if (put.load() == kRingers * kEach) break;
      if (!SleepsLess(doorbell, seen, kLongUs)) {
        slept_through = true;
        break;
      }
    }
  });
  EXPECT_FALSE(slept_through);
}

// Publisher and sleeper as in the engine: the one stores and looks whether the
// other sleeps, with no fence between; the other says that it will sleep and
// fences for both. Then not both can have missed what the other wrote.
TEST(DoorbellTest, TheHeavyFenceOrdersThePublisherToo) {
  RegisterForHeavyFence();
  if (!HeavyFence()) GTEST_SKIP() << "this kernel has no global membarrier";
  constexpr int kRounds = 50'000;
  struct alignas(64) Word {
    std::atomic<int> value{0};
  };
  Word published, asleep, gate;
  std::vector<uint8_t> publisher_saw(kRounds + 1), sleeper_saw(kRounds + 1);
  RunRanks(2, [&](int thread) {
    for (int i = 1; i <= kRounds; ++i) {
      // Both at once, but for a few instructions, which differ.
      gate.value.fetch_add(1);
      for (int n = 0; gate.value.load() < 2 * i; ++n) {
        if (n > 200) std::this_thread::yield();
      }
      std::atomic<int> instructions{0};
      for (int n = 0; n < (thread == 0 ? i : i / 64) % 64; ++n) {
        instructions.store(n, std::memory_order_relaxed);
      }
      const auto at = static_cast<size_t>(i);
      if (thread == 0) {
        published.value.store(i, std::memory_order_relaxed);
        publisher_saw[at] = asleep.value.load(std::memory_order_relaxed) == i;
      } else {
        asleep.value.store(i, std::memory_order_relaxed);
        HeavyFence();
        sleeper_saw[at] = published.value.load(std::memory_order_relaxed) == i;
      }
    }
  });
  int both_missed = 0;
  for (size_t i = 1; i <= kRounds; ++i) {
    if (publisher_saw[i] == 0 && sleeper_saw[i] == 0) ++both_missed;
  }
  EXPECT_EQ(both_missed, 0);
}

}  // namespace
}  // namespace axon
