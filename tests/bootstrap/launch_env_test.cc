// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/launch_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

absl::StatusOr<Launch> Read(const Variables& variables,
                            const Environment& axon = {}) {
  const auto settings = ReadSettings(axon, nullptr);
  if (!settings.ok()) return settings.status();
  return ReadLaunch(*settings, [&](const char* name) -> const char* {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

std::string Error(const Variables& variables, const Environment& axon = {}) {
  const auto launch = Read(variables, axon);
  EXPECT_EQ(launch.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(launch.status().message());
}

Variables With(Variables variables) {
  variables.insert({{"MASTER_ADDR", "h"}, {"MASTER_PORT", "10"}});
  return variables;
}

struct Case {
  const char* source;
  Variables variables;
  int local_rank, local_size;
};

class Launchers : public ::testing::TestWithParam<Case> {};

TEST_P(Launchers, GivesRankAndSize) {
  const auto launch = Read(With(GetParam().variables));
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->rank, 2);
  EXPECT_EQ(launch->size, 5);
  EXPECT_EQ(launch->local_rank, GetParam().local_rank);
  EXPECT_EQ(launch->local_size, GetParam().local_size);
  EXPECT_EQ(launch->source, GetParam().source);
  EXPECT_EQ(launch->place, "h:11");
}

INSTANTIATE_TEST_SUITE_P(
    All, Launchers,
    ::testing::Values(
        Case{"Open MPI",
             {{"OMPI_COMM_WORLD_RANK", "2"},
              {"OMPI_COMM_WORLD_SIZE", "5"},
              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
              {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
              {"PMIX_RANK", "2"},
              {"SLURM_PROCID", "0"},
              {"SLURM_NTASKS", "1"}},
             1,
             3},
        Case{"PMI", {{"PMI_RANK", "2"}, {"PMI_SIZE", "5"}}, -1, -1},
        Case{"PMIx under Slurm",
             {{"PMIX_RANK", "2"}, {"SLURM_NTASKS", "5"}},
             -1,
             -1},
        Case{"Slurm",
             {{"SLURM_PROCID", "2"},
              {"SLURM_NTASKS", "5"},
              {"SLURM_LOCALID", "0"}},
             0,
             -1},
        // torchrun started by srun and mpirun, once on each of two machines.
        Case{"torchrun",
             {{"TORCHELASTIC_RUN_ID", "x"},
              {"RANK", "2"},
              {"WORLD_SIZE", "5"},
              {"LOCAL_RANK", "0"},
              {"LOCAL_WORLD_SIZE", "2"},
              {"OMPI_COMM_WORLD_RANK", "1"},
              {"OMPI_COMM_WORLD_SIZE", "2"},
              {"SLURM_PROCID", "1"},
              {"SLURM_NTASKS", "2"}},
             0,
             2},
        Case{"RANK and WORLD_SIZE",
             {{"RANK", "2"}, {"WORLD_SIZE", "5"}},
             -1,
             -1}));

TEST(LaunchTest, AxonVariablesWin) {
  const auto launch = Read(
      With({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "5"}}),
      {{"AXON_RANK", "0"}, {"AXON_SIZE", "3"}, {"AXON_COMM_ID", "other:77"}});
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->rank, 0);
  EXPECT_EQ(launch->size, 3);
  EXPECT_EQ(launch->place, "other:77");
}

TEST(LaunchTest, Ipv6MasterAddressGetsBrackets) {
  const auto launch = Read({{"RANK", "0"},
                            {"WORLD_SIZE", "2"},
                            {"MASTER_ADDR", "fd00::1"},
                            {"MASTER_PORT", "29500"}});
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->place, "[fd00::1]:29501");
}

TEST(LaunchTest, OneRankNeedsNoPlace) {
  const auto launch = Read({}, {{"AXON_RANK", "0"}, {"AXON_SIZE", "1"}});
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->place, "");
}

TEST(LaunchTest, ErrorsNameWhatIsMissing) {
  EXPECT_THAT(Error({}), HasSubstr("set AXON_RANK and AXON_SIZE"));
  EXPECT_THAT(Error({}, {{"AXON_RANK", "1"}}),
              HasSubstr("AXON_RANK is set but AXON_SIZE is not"));
  EXPECT_THAT(Error({}, {{"AXON_SIZE", "1"}}),
              HasSubstr("AXON_SIZE is set but AXON_RANK is not"));
  EXPECT_THAT(Error({{"PMI_RANK", "1"}}),
              HasSubstr("PMI_RANK is set but PMI_SIZE is not"));
  EXPECT_THAT(Error({{"RANK", "1"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("neither AXON_COMM_ID nor MASTER_ADDR"));
  EXPECT_THAT(Error({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}}),
              HasSubstr("MASTER_PORT is not"));
  EXPECT_THAT(Error({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "1"}}),
              HasSubstr("MASTER_ADDR is not"));
}

TEST(LaunchTest, ErrorsNameWhatIsWrong) {
  EXPECT_THAT(Error({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
              AllOf(HasSubstr("rank 2 of 2"), HasSubstr("contradictory")));
  EXPECT_THAT(Error({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("rank -1 of 2"));
  EXPECT_THAT(Error({}, {{"AXON_RANK", "0"}, {"AXON_SIZE", "0"}}),
              HasSubstr("rank 0 of 0"));
  EXPECT_THAT(Error({{"RANK", "x"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("RANK='x' is not a number"));
  for (const char* port : {"65535", "0", "http", "-5"}) {
    EXPECT_THAT(Error({{"RANK", "0"},
                       {"WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "h"},
                       {"MASTER_PORT", port}}),
                HasSubstr(port));
  }
}

}  // namespace
}  // namespace axon
