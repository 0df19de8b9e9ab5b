// SPDX-License-Identifier: Apache-2.0
// Every row of the table of algorithms, chosen through AXON_ALGO and run by the
// C API, with buffers that are read where they lie and with staged ones; and
// what AXON_ALGO refuses.
#include "schedule/algorithms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/api/cases.h"
#include "tests/api/ranks.h"

namespace axon {

void PrintTo(const Algorithm& row, std::ostream* out) { *out << row.name; }

namespace {

using testing::HasSubstr;

std::vector<std::string> Settings(const Algorithm& row, bool mapped) {
  return {absl::StrCat("AXON_ALGO=", Name(row.collective), ":", row.name),
          absl::StrCat("AXON_MAPPED_MIN=", mapped ? "0" : "1024G"),
          "AXON_OUTBOX_SIZE=256K"};
}

std::vector<Case> CasesOf(const Algorithm& row, int ranks) {
  std::vector<Case> cases;
  // Rank order is needed for narrow floats; others do without.
  std::vector<DataType> types = {DataType::kFloat32, DataType::kInt64};
  if (row.rank_order) types.push_back(DataType::kFloat8e4m3);
  size_t n = 0;
  for (const DataType type : types) {
    // 50 and more: nothing of it fits a call line.
    for (const size_t count : {size_t{50}, size_t{1003}, size_t{70001}}) {
      Case c;
      c.collective = row.collective;
      c.type = type;
      c.op = n % 2 == 0 ? ReduceOp::kSum : ReduceOp::kAvg;
      c.count = count;
      c.root = static_cast<int>(n % static_cast<size_t>(ranks));
      c.in_place = n++ % 2 == 1;
      cases.push_back(c);
    }
  }
  return cases;
}

class AlgorithmsTest : public testing::TestWithParam<Algorithm> {};

TEST_P(AlgorithmsTest, GivesTheReference) {
  const Algorithm& row = GetParam();
  for (const bool mapped : {false, true}) {
    InProcesses(
        1, [&](int) { return Settings(row, mapped); },
        [&](int) {
          for (const int ranks : {2, 3, 4, 6, 8}) {
            if (!Applies(row, ranks)) continue;
            OnThreads(ranks, [&](axonComm_t comm, int rank) {
              for (const Case& c : CasesOf(row, ranks)) {
                EXPECT_EQ(RunCase(c, comm, rank, ranks), "") << mapped;
              }
            });
          }
        });
  }
}

TEST_P(AlgorithmsTest, GivesTheReferenceBetweenProcesses) {
  const Algorithm& row = GetParam();
  std::vector<std::string> settings = Settings(row, false);
  settings.push_back("AXON_CHECK=1");
  OnProcesses(4, settings, [&](axonComm_t comm, int rank) {
    for (const Case& c : CasesOf(row, 4)) {
      EXPECT_EQ(RunCase(c, comm, rank, 4), "");
    }
  });
}

// A row that is named is used: the log says so.
TEST_P(AlgorithmsTest, IsTheOneThatRuns) {
  const Algorithm& row = GetParam();
  if (row.collective == Collective::kBarrier) {
    GTEST_SKIP() << "a call without data is one exchange of call lines";
  }
  std::vector<std::string> settings = Settings(row, false);
  settings.push_back("AXON_LOG=debug");
  InProcesses(
      1, [&](int) { return settings; },
      [&](int) {
        testing::internal::CaptureStderr();
        OnThreads(4, [&](axonComm_t comm, int rank) {
          EXPECT_EQ(RunCase(CasesOf(row, 4)[1], comm, rank, 4), "");
        });
        EXPECT_THAT(testing::internal::GetCapturedStderr(),
                    HasSubstr(absl::StrCat("on 4 ranks: ", row.name)));
      });
}

INSTANTIATE_TEST_SUITE_P(All, AlgorithmsTest,
                         testing::ValuesIn(Algorithms().begin(),
                                           Algorithms().end()),
                         [](const auto& info) {
                           return absl::StrCat(Name(info.param.collective), "_",
                                               info.param.name);
                         });

// What a communicator says if AXON_ALGO is `value`.
std::string InitError(axonResult_t* result) {
  axonComm_t comm = nullptr;
  *result = axonCommInitAll(&comm, 1, nullptr);
  return *result == axonSuccess ? "" : LastError();
}

TEST(OverridesTest, UnknownNamesAreRefusedWithTheKnownOnes) {
  const struct {
    const char* value;
    const char* text;
  } kWrong[] = {
      {"AXON_ALGO=rnig", "no algorithm 'rnig'; known: one_shot, mesh, ring"},
      {"AXON_ALGO=allreduce:bruck", "no algorithm 'bruck' of all_reduce"},
      {"AXON_ALGO=reduceall:ring", "no collective 'reduceall'; known: "},
      {"AXON_ALGO=ring;tree", "'tree' names no collective"},
  };
  for (const auto& wrong : kWrong) {
    InProcesses(
        1, [&](int) { return std::vector<std::string>{wrong.value}; },
        [&](int) {
          axonResult_t result = axonSuccess;
          EXPECT_THAT(InitError(&result), HasSubstr(wrong.text));
          EXPECT_EQ(result, axonInvalidArgument);
        });
  }
}

TEST(OverridesTest, ACallThatNoneIsLeftForIsRefusedOnEveryRank) {
  InProcesses(
      1, [](int) { return std::vector<std::string>{"AXON_ALGO=ring"}; },
      [](int) {
        OnThreads(3, [](axonComm_t comm, int) {
          std::vector<uint16_t> buffer(1000);
          EXPECT_AXON_ERROR(axonAllReduce(buffer.data(), buffer.data(), 1000,
                                          axonBfloat16, axonSum, comm, nullptr),
                            axonInvalidUsage, "AXON_ALGO=ring leaves none");
        });
      });
}

TEST(OverridesTest, ExclusionsLeaveTheOthers) {
  InProcesses(
      1,
      [](int) {
        return std::vector<std::string>{
            "AXON_ALGO=AllReduce:^one_shot,mesh,tree", "AXON_LOG=debug"};
      },
      [](int) {
        testing::internal::CaptureStderr();
        OnThreads(3, [](axonComm_t comm, int rank) {
          for (size_t count = 100; count < 1'000'000; count *= 10) {
            Case c;
            c.count = count;
            EXPECT_EQ(RunCase(c, comm, rank, 3), "");
          }
        });
        const std::string log = testing::internal::GetCapturedStderr();
        EXPECT_THAT(log, HasSubstr("on 3 ranks: "));
        for (const char* name : {"one_shot", "mesh", "tree"}) {
          EXPECT_THAT(log, testing::Not(
                               HasSubstr(absl::StrCat("ranks: ", name, "\n"))));
        }
      });
}

}  // namespace
}  // namespace axon
