// SPDX-License-Identifier: Apache-2.0
// Creation in every way, configurations of other versions, queries and the
// end of communicators.
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
