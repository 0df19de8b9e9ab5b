// SPDX-License-Identifier: Apache-2.0
// Creation in every way, configurations of other versions, splits, queries and
// the end of communicators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "axon/axon.h"
#include "tests/api/ranks.h"
#include "tests/support/ports.h"
#include "tests/support/threads.h"

namespace axon {
namespace {

using Environment = std::vector<std::string>;

int SizeOf(axonComm_t comm) {
  int size = -1;
  EXPECT_AXON_OK(axonCommCount(comm, &size));
  return size;
}

int RankOf(axonComm_t comm) {
  int rank = -1;
  EXPECT_AXON_OK(axonCommUserRank(comm, &rank));
  return rank;
}

std::string Dump(axonComm_t comm) {
  size_t needed = 0;
  EXPECT_AXON_OK(axonCommDump(comm, nullptr, 0, &needed));
  std::string text(needed + 100, '?');
  EXPECT_AXON_OK(axonCommDump(comm, text.data(), text.size(), nullptr));
  return text.c_str();
}

// The members agree on who is in: the sum of `value` over them.
int32_t SumOf(int32_t value, axonComm_t comm) {
  EXPECT_AXON_OK(
      axonAllReduce(&value, &value, 1, axonInt32, axonSum, comm, nullptr));
  return value;
}

TEST(InitTest, RanksAndSizesAreThoseAskedFor) {
  for (const int ranks : {1, 2, 9}) {
    OnThreads(ranks, [&](axonComm_t comm, int rank) {
      EXPECT_EQ(SizeOf(comm), ranks);
      EXPECT_EQ(RankOf(comm), rank);
      EXPECT_EQ(SumOf(1, comm), ranks);
    });
  }
}

TEST(InitTest, WrongPlacesAreRefused) {
  axonUniqueId id;
  ASSERT_AXON_OK(axonGetUniqueId(&id));
  axonComm_t comm = nullptr;
  EXPECT_AXON_ERROR(axonCommInitRank(nullptr, 1, id, 0), axonInvalidArgument,
                    "comm is NULL");
  EXPECT_AXON_ERROR(axonCommInitRank(&comm, 0, id, 0), axonInvalidArgument,
                    "nranks is 0");
  EXPECT_AXON_ERROR(axonCommInitRank(&comm, 2, id, 2), axonInvalidArgument,
                    "rank 2 is not one of 0 to 1");
  EXPECT_AXON_ERROR(axonCommInitRank(&comm, 2, id, -1), axonInvalidArgument,
                    "rank -1");
  EXPECT_AXON_ERROR(axonCommInitAll(nullptr, 1, nullptr), axonInvalidArgument,
                    "NULL");
  EXPECT_AXON_ERROR(axonCommInitAll(&comm, -3, nullptr), axonInvalidArgument,
                    "-3");
  // Refused before there is a thread for each.
  std::vector<axonComm_t> many(1'000'000);
  EXPECT_AXON_ERROR(axonCommInitAll(many.data(), 1'000'000, nullptr),
                    axonInvalidArgument, "1000000 ranks: at most 256");
  EXPECT_AXON_ERROR(axonGetUniqueId(nullptr), axonInvalidArgument,
                    "id is NULL");
  id.internal[40] ^= 1;
  EXPECT_AXON_ERROR(axonCommInitRank(&comm, 1, id, 0), axonInvalidArgument,
                    "not the bytes of a unique id");
  EXPECT_EQ(comm, nullptr);
}

TEST(ConfigTest, NamesAndTimeoutsAreUsed) {
  axonUniqueId id;
  ASSERT_AXON_OK(axonGetUniqueId(&id));
  axonConfig_t config = AXON_CONFIG_INITIALIZER;
  char name[] = "weather";
  config.commName = name;
  config.timeoutMs = 5000;
  config.blocking = 1;
  config.splitShare = 1;
  axonComm_t comm = nullptr;
  ASSERT_AXON_OK(axonCommInitRankConfig(&comm, 1, id, 0, &config));
  std::memset(name, 'x', sizeof(name) - 1);  // it was copied
  EXPECT_THAT(Dump(comm),
              testing::HasSubstr("communicator 'weather', 1 ranks"));
  EXPECT_AXON_OK(axonCommDestroy(comm));
}

// A program built with a header that had no commName, or none of our fields.
TEST(ConfigTest, OlderVersionsKeepDefaultsForWhatTheyLack) {
  for (const size_t size :
       {offsetof(axonConfig_t, commName), offsetof(axonConfig_t, blocking)}) {
    axonUniqueId id;
    ASSERT_AXON_OK(axonGetUniqueId(&id));
    axonConfig_t config = AXON_CONFIG_INITIALIZER;
    config.size = size;
    config.version = 1;
    // Beyond `size` there is no config: nobody may look at this.
    config.commName = reinterpret_cast<const char*>(8);
    if (size == offsetof(axonConfig_t, blocking)) config.blocking = 77;
    axonComm_t comm = nullptr;
    ASSERT_AXON_OK(axonCommInitRankConfig(&comm, 1, id, 0, &config));
    EXPECT_AXON_OK(axonCommDestroy(comm));
  }
}

TEST(ConfigTest, NewerVersionsMayBeLonger) {
  struct {
    axonConfig_t known = AXON_CONFIG_INITIALIZER;
    int64_t unknown = 1;
  } config;
  config.known.size = sizeof(config);
  config.known.version = AXON_VERSION_CODE + 100;
  axonUniqueId id;
  ASSERT_AXON_OK(axonGetUniqueId(&id));
  axonComm_t comm = nullptr;
  ASSERT_AXON_OK(axonCommInitRankConfig(&comm, 1, id, 0, &config.known));
  EXPECT_AXON_OK(axonCommDestroy(comm));
}

TEST(ConfigTest, WrongOnesAreRefused) {
  axonUniqueId id;
  ASSERT_AXON_OK(axonGetUniqueId(&id));
  const auto refused = [&](const axonConfig_t& wrong, const char* text) {
    axonConfig_t config = wrong;
    axonComm_t comm = nullptr;
    EXPECT_AXON_ERROR(axonCommInitRankConfig(&comm, 1, id, 0, &config),
                      axonInvalidArgument, text);
  };
  const axonConfig_t good = AXON_CONFIG_INITIALIZER;
  axonConfig_t c = good;
  c.magic = 1;
  refused(c, "AXON_CONFIG_INITIALIZER");
  c = good;
  c.size = 3;
  refused(c, "AXON_CONFIG_INITIALIZER");
  c = good;
  c.blocking = 0;
  refused(c, "config.blocking is 0");
  c = good;
  c.timeoutMs = -5;
  refused(c, "config.timeoutMs is -5");
}

TEST(SplitTest, ColorsAndKeysDecide) {
  OnThreads(6, [](axonComm_t comm, int rank) {
    axonComm_t part = nullptr;
    // Odd and even, in reverse order.
    ASSERT_AXON_OK(axonCommSplit(comm, rank % 2, -rank, &part, nullptr));
    EXPECT_EQ(SizeOf(part), 3);
    EXPECT_EQ(RankOf(part), 2 - rank / 2);
    EXPECT_EQ(SumOf(rank, part), rank % 2 == 0 ? 6 : 9);
    // Equal keys: in the order of the parent.
    axonComm_t again = nullptr;
    ASSERT_AXON_OK(axonCommSplit(comm, 0, 7, &again, nullptr));
    EXPECT_EQ(RankOf(again), rank);
    // Both and the parent work side by side.
    EXPECT_EQ(SumOf(1, again), 6);
    EXPECT_EQ(SumOf(1, comm), 6);
    EXPECT_EQ(SumOf(1, part), 3);
    EXPECT_AXON_OK(axonCommDestroy(again));
    EXPECT_AXON_OK(axonCommDestroy(part));
  });
}

// All ranks by one thread, each twice: splits of one parent follow each other.
TEST(SplitTest, InAGroupOneThreadSplitsAllItsRanks) {
  const Comms comms(4);
  std::vector<axonComm_t> halves(4), pairs(4);
  ASSERT_AXON_OK(axonGroupStart());
  for (int rank = 0; rank < 4; ++rank) {
    const auto r = static_cast<size_t>(rank);
    ASSERT_AXON_OK(
        axonCommSplit(comms[rank], rank / 2, 0, &halves[r], nullptr));
    ASSERT_AXON_OK(axonCommSplit(comms[rank], rank % 2, 0, &pairs[r], nullptr));
    EXPECT_EQ(halves[r], nullptr);
  }
  ASSERT_AXON_OK(axonGroupEnd());
  for (const auto& [parts, sums] :
       {std::pair(halves, std::vector<int>{1, 1, 5, 5}),
        std::pair(pairs, std::vector<int>{2, 4, 2, 4})}) {
    std::vector<int32_t> values = {0, 1, 2, 3};
    ASSERT_AXON_OK(axonGroupStart());
    for (size_t r = 0; r < 4; ++r) {
      ASSERT_AXON_OK(axonAllReduce(&values[r], &values[r], 1, axonInt32,
                                   axonSum, parts[r], nullptr));
    }
    ASSERT_AXON_OK(axonGroupEnd());
    EXPECT_EQ(values, sums);
    for (axonComm_t part : parts) EXPECT_AXON_OK(axonCommDestroy(part));
  }
}

TEST(SplitTest, InAGroupItsErrorsAreTold) {
  const Comms comms(2);
  axonComm_t parts[2] = {};
  ASSERT_AXON_OK(axonGroupStart());
  ASSERT_AXON_OK(axonSetCallTimeout(200));
  ASSERT_AXON_OK(axonCommSplit(comms[0], 0, 0, &parts[0], nullptr));
  EXPECT_AXON_ERROR(axonGroupEnd(), axonTimeout, "rank 1");
  EXPECT_THAT(axonGetLastError(comms[0]), testing::HasSubstr("rank 1"));
  EXPECT_EQ(parts[0], nullptr);
}

TEST(SplitTest, NoColorGivesNone) {
  OnThreads(3, [](axonComm_t comm, int rank) {
    auto* part = reinterpret_cast<axonComm_t>(8);
    const int color = rank == 1 ? AXON_SPLIT_NOCOLOR : 4;
    ASSERT_AXON_OK(axonCommSplit(comm, color, 0, &part, nullptr));
    if (rank == 1) {
      EXPECT_TRUE(part == AXON_COMM_NULL);
      return;
    }
    EXPECT_EQ(SumOf(rank, part), 2);
    EXPECT_AXON_OK(axonCommDestroy(part));
  });
}

TEST(SplitTest, SplitsCanBeSplitAndOutliveTheirParent) {
  OnThreads(4, [](axonComm_t comm, int rank) {
    axonComm_t half = nullptr, single = nullptr;
    ASSERT_AXON_OK(axonCommSplit(comm, rank / 2, rank, &half, nullptr));
    ASSERT_AXON_OK(axonCommSplit(half, rank, 0, &single, nullptr));
    EXPECT_AXON_OK(axonCommDestroy(half));
    EXPECT_EQ(SizeOf(single), 1);
    EXPECT_EQ(SumOf(rank, single), rank);
    EXPECT_AXON_OK(axonCommDestroy(single));
  });
}

TEST(SplitTest, InheritsOrTakesAConfig) {
  OnThreads(2, [](axonComm_t comm, int) {
    axonConfig_t config = AXON_CONFIG_INITIALIZER;
    config.commName = "half";
    axonComm_t named = nullptr;
    ASSERT_AXON_OK(axonCommSplit(comm, 0, 0, &named, &config));
    EXPECT_THAT(Dump(named), testing::HasSubstr("communicator 'half'"));
    EXPECT_AXON_OK(axonCommDestroy(named));
  });
}

// The parent fails while some ranks have come out of the split and some have
// not: those that have are told.
TEST(SplitTest, WhoCouldNotCompleteItIsToldToWhoHas) {
  constexpr int kRanks = 6;
  int partial = 0;
  for (int round = 0; round < 100 && partial < 5; ++round) {
    std::vector<axonComm_t> comms(kRanks), parts(kRanks);
    ASSERT_AXON_OK(axonCommInitAll(comms.data(), kRanks, nullptr));
    std::vector<axonResult_t> split(kRanks), summed(kRanks, axonSuccess);
    std::vector<std::string> texts(kRanks);
    RunRanks(kRanks, [&](int rank) {
      const auto r = static_cast<size_t>(rank);
      axonCommSetTimeout(comms[r], 20'000);
      // Rank 0 has no part in the others' communicator.
      split[r] =
          axonCommSplit(comms[r], rank == 0 ? 0 : 1, 0, &parts[r], nullptr);
      if (rank == 0) axonCommAbort(std::exchange(comms[0], nullptr));
    });
    const auto failed =
        std::count_if(split.begin() + 1, split.end(),
                      [](axonResult_t r) { return r != axonSuccess; });
    if (failed > 0 && failed < kRanks - 1) ++partial;
    RunRanks(kRanks, [&](int rank) {
      const auto r = static_cast<size_t>(rank);
      if (rank == 0 || split[r] != axonSuccess) return;
      int32_t value = 1;
      summed[r] = axonAllReduce(&value, &value, 1, axonInt32, axonSum, parts[r],
                                nullptr);
      texts[r] = axonGetLastError(parts[r]);
    });
    for (size_t r = 1; r < kRanks && failed > 0; ++r) {
      if (split[r] != axonSuccess) continue;
      EXPECT_EQ(summed[r], axonRemoteError) << texts[r];
      EXPECT_THAT(texts[r], testing::HasSubstr("could not complete its"));
    }
    for (size_t r = 0; r < kRanks; ++r) {
      EXPECT_AXON_OK(axonCommDestroy(parts[r]));
      EXPECT_AXON_OK(axonCommDestroy(comms[r]));
    }
  }
}

// 0 is none: not the parent's, which would pass.
TEST(SplitTest, TakesACallTimeoutOfNone) {
  OnThreads(2, [](axonComm_t comm, int rank) {
    ASSERT_AXON_OK(axonCommSetTimeout(comm, 50));
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ASSERT_AXON_OK(axonSetCallTimeout(0));
    axonComm_t split = nullptr;
    ASSERT_AXON_OK(axonCommSplit(comm, 0, 0, &split, nullptr));
    ASSERT_AXON_OK(axonCommDestroy(split));
  });
}

TEST(SplitTest, WrongArgumentsAreRefusedAlone) {
  const Comms comms(1);
  axonComm_t part = nullptr;
  EXPECT_AXON_ERROR(axonCommSplit(comms[0], -2, 0, &part, nullptr),
                    axonInvalidArgument, "color -2");
  EXPECT_AXON_ERROR(axonCommSplit(comms[0], 0, 0, nullptr, nullptr),
                    axonInvalidArgument, "newcomm is NULL");
  EXPECT_EQ(SumOf(3, comms[0]), 3);
}

TEST(QueryTest, NullPointersAreRefused) {
  const Comms comms(1);
  EXPECT_AXON_ERROR(axonCommCount(comms[0], nullptr), axonInvalidArgument,
                    "count is NULL");
  EXPECT_AXON_ERROR(axonCommUserRank(comms[0], nullptr), axonInvalidArgument,
                    "rank is NULL");
  EXPECT_AXON_ERROR(axonCommGetAsyncError(comms[0], nullptr),
                    axonInvalidArgument, "asyncError is NULL");
  EXPECT_AXON_ERROR(axonCommDump(comms[0], nullptr, 10, nullptr),
                    axonInvalidArgument, "text is NULL");
  EXPECT_AXON_ERROR(axonCommSetTimeout(comms[0], -1), axonInvalidArgument,
                    "-1 ms");
  EXPECT_AXON_ERROR(axonSetCallTimeout(-1), axonInvalidArgument, "0 means");
  EXPECT_AXON_OK(axonCommSetTimeout(comms[0], 0));
}

TEST(QueryTest, ADumpIsCutToItsSpace) {
  const Comms comms(3);
  const std::string all = Dump(comms[1]);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 4);
  char text[12] = "???????????";
  size_t needed = 0;
  EXPECT_AXON_OK(axonCommDump(comms[1], text, 10, &needed));
  EXPECT_EQ(needed, all.size() + 1);
  EXPECT_EQ(std::string(text), all.substr(0, 9));
  EXPECT_EQ(text[10], '?');
}

TEST(EndTest, CommunicatorsGoInAnyOrder) {
  std::vector<axonComm_t> a(3), b(3);
  ASSERT_AXON_OK(axonCommInitAll(a.data(), 3, nullptr));
  ASSERT_AXON_OK(axonCommInitAll(b.data(), 3, nullptr));
  // No rank waits for another.
  EXPECT_AXON_OK(axonCommFinalize(a[2]));
  for (axonComm_t comm : {a[2], b[0], a[0], b[2], b[1], a[1]}) {
    EXPECT_AXON_OK(axonCommDestroy(comm));
  }
}

// The variables of each launcher, of rank `number` of 2.
TEST(InitEnvTest, EachLauncherIsUnderstood) {
  const std::vector<std::function<Environment(std::string)>> kLaunchers = {
      [](const std::string& n) {
        return Environment{"AXON_RANK=" + n, "AXON_SIZE=2"};
      },
      [](const std::string& n) {
        return Environment{"OMPI_COMM_WORLD_RANK=" + n,
                           "OMPI_COMM_WORLD_SIZE=2"};
      },
      [](const std::string& n) {
        return Environment{"PMI_RANK=" + n, "PMI_SIZE=2"};
      },
      [](const std::string& n) {
        return Environment{"SLURM_PROCID=" + n, "SLURM_NTASKS=2"};
      },
      [](const std::string& n) {
        return Environment{"TORCHELASTIC_RUN_ID=1", "RANK=" + n,
                           "WORLD_SIZE=2"};
      },
      [](const std::string& n) {
        return Environment{"RANK=" + n, "WORLD_SIZE=2"};
      },
  };
  for (size_t i = 0; i < kLaunchers.size(); ++i) {
    const int port = FreePort();
    InProcesses(
        2,
        [&](int number) {
          Environment all = kLaunchers[i](std::to_string(number));
          if (i % 2 == 0) {
            all.push_back("AXON_COMM_ID=127.0.0.1:" + std::to_string(port));
          } else {
            all.push_back("MASTER_ADDR=127.0.0.1");
            all.push_back("MASTER_PORT=" + std::to_string(port - 1));
          }
          return all;
        },
        [&](int number) {
          axonComm_t comm = nullptr;
          ASSERT_AXON_OK(axonCommInitEnv(&comm, nullptr));
          EXPECT_EQ(RankOf(comm), number) << "launcher " << i;
          EXPECT_EQ(SumOf(number + 1, comm), 3);
          EXPECT_AXON_OK(axonCommDestroy(comm));
        });
  }
}

TEST(InitEnvTest, SaysWhatIsMissing) {
  InProcesses(
      1, [](int) { return Environment{}; },
      [](int) {
        axonComm_t comm = nullptr;
        EXPECT_AXON_ERROR(axonCommInitEnv(&comm, nullptr), axonInvalidArgument,
                          "set AXON_RANK and AXON_SIZE");
        EXPECT_AXON_ERROR(axonCommInitEnv(nullptr, nullptr),
                          axonInvalidArgument, "comm is NULL");
      });
  InProcesses(
      1,
      [](int) {
        return Environment{"AXON_RANK=0", "AXON_SIZE=1"};
      },
      [](int) {
        axonComm_t comm = nullptr;
        ASSERT_AXON_OK(axonCommInitEnv(&comm, nullptr));
        EXPECT_EQ(SizeOf(comm), 1);
        EXPECT_AXON_OK(axonCommDestroy(comm));
      });
}

}  // namespace
}  // namespace axon
