// SPDX-License-Identifier: Apache-2.0
// Every collective with every type, operator, number of ranks and kind of
// buffer: a sample of the product, all of it with AXON_LONG_TESTS=1.
#include "axon/axon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/api/cases.h"
#include "tests/api/ranks.h"

namespace axon {
namespace {

constexpr size_t kCounts[] = {0, 1, 3, 7, 17, 255, 1000, 5003};
constexpr size_t kLargeCounts[] = {16385, 100003, 300007};

// A different kind of buffer for each number.
void Vary(size_t n, int ranks, Case* c) {
  constexpr size_t kShifts[] = {0, 0, 1, 0, 4, 0, 13};
  c->root = static_cast<int>(n * 7 % static_cast<size_t>(ranks));
  c->in_place = n % 2 == 1;
  c->memory = n % 5 == 3 ? Memory::kMapped : Memory::kPrivate;
  c->shift = kShifts[n % 7];
  c->null_if_empty = n % 3 == 0;
}

// All types and operators (where there is one) of a collective.
std::vector<Case> Kinds(Collective collective) {
  std::vector<Case> kinds;
  for (DataType type : AllTypes()) {
    const std::vector<ReduceOp> ops =
        Reduces(collective) ? OpsOf(type) : std::vector{ReduceOp::kSum};
    for (ReduceOp op : ops) {
      Case c;
      c.collective = collective;
      c.type = type;
      c.op = op;
      kinds.push_back(c);
    }
  }
  return kinds;
}

std::vector<Case> Cases(Collective collective, int ranks) {
  std::vector<Case> cases;
  size_t n = static_cast<size_t>(ranks);
  for (Case c : Kinds(collective)) {
    for (size_t i = 0; i < std::size(kCounts); ++i) {
      // Three of the counts in the sample, others for the next kind.
      ++n;
      if (!LongTests() && (i + n) % 3 != 0) continue;
      c.count = kCounts[i];
      Vary(n, ranks, &c);
      cases.push_back(c);
    }
    const size_t large = kLargeCounts[n % std::size(kLargeCounts)];
    if (!LongTests() && n % 4 != 0) continue;
    c.count = large / (ranks > 4 ? 4 : 1);
    Vary(++n, ranks, &c);
    cases.push_back(c);
  }
  return cases;
}

void RunAll(const std::vector<Case>& cases, axonComm_t comm, int rank,
            int ranks) {
  for (const Case& c : cases) {
    const std::string wrong = RunCase(c, comm, rank, ranks);
    if (wrong.empty()) continue;
    ADD_FAILURE() << wrong;
    return;
  }
}

class CollectivesTest
    : public testing::TestWithParam<std::tuple<Collective, int>> {};

TEST_P(CollectivesTest, GivesTheReferenceOnThreads) {
  const auto [collective, ranks] = GetParam();
  const std::vector<Case> cases = Cases(collective, ranks);
  OnThreads(ranks, [&, n = ranks](axonComm_t comm, int rank) {
    RunAll(cases, comm, rank, n);
  });
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesTest,
                         testing::Combine(testing::ValuesIn(AllCollectives()),
                                          testing::Values(1, 2, 3, 4, 5, 7, 8,
                                                          16)),
                         [](const auto& info) {
                           return std::string(Name(std::get<0>(info.param))) +
                                  "_" + std::to_string(std::get<1>(info.param));
                         });

class ProcessesTest : public testing::TestWithParam<int> {};

// Other processes cannot read private memory: it is staged in outboxes.
TEST_P(ProcessesTest, GiveTheReference) {
  const int ranks = GetParam();
  OnProcesses(ranks, {"AXON_OUTBOX_SIZE=256K"}, [&](axonComm_t comm, int rank) {
    size_t n = 0;
    for (Collective collective : AllCollectives()) {
      std::vector<Case> cases;
      for (const Case& c : Cases(collective, ranks)) {
        if (LongTests() || ++n % 3 == 0) cases.push_back(c);
      }
      RunAll(cases, comm, rank, ranks);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ProcessesTest, testing::Values(1, 2, 3, 4, 7),
                         testing::PrintToStringParamName());

// Several slices, walks round the outbox.
TEST(LargeTest, SeveralMegabytes) {
  for (const Memory memory : {Memory::kPrivate, Memory::kMapped}) {
    OnProcesses(3, {}, [&](axonComm_t comm, int rank) {
      for (Collective collective : AllCollectives()) {
        Case c;
        c.collective = collective;
        c.count = 2'500'001;
        c.root = 2;
        c.memory = memory;
        c.in_place = memory == Memory::kMapped;
        EXPECT_EQ(RunCase(c, comm, rank, 3), "");
        c.type = DataType::kBfloat16;
        c.in_place = !c.in_place;
        EXPECT_EQ(RunCase(c, comm, rank, 3), "");
      }
    });
  }
}

}  // namespace
}  // namespace axon
