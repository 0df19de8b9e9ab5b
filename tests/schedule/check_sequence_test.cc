// SPDX-License-Identifier: Apache-2.0
// Calls that follow one another: any two rows of the table in any order, with
// messages read where they lie, and through outboxes of few slots.
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "schedule/algorithms.h"
#include "schedule/check.h"
#include "schedule/collective.h"

namespace axon {
namespace {

// Contains every word of four letters a and b, so that whatever stood in a slot
// of an outbox of up to three is followed by whatever may come.
constexpr absl::string_view kWords = "aaaabaabbababbbbaaa";

// One root throughout, which may run ahead again and again, or roots in turn.
enum class RootIs { kFirst, kInTurn };

std::vector<Call> Sequence(const Algorithm& a, const Algorithm& b, int ranks,
                           RootIs root_is) {
  std::vector<Call> sequence;
  for (size_t k = 0; k < kWords.size(); ++k) {
    const int root = root_is == RootIs::kFirst ? 0 : int(k) % ranks;
    sequence.push_back(MakeCall(kWords[k] == 'a' ? a : b, ranks, root));
  }
  return sequence;
}

class SequenceTest : public testing::TestWithParam<int> {
 protected:
  void ProvePairs(const std::vector<CheckOptions>& all_options, int ranks) {
    const absl::Span<const Algorithm> rows = Algorithms();
    for (size_t a = 0; a < rows.size(); ++a) {
      for (size_t b = a; b < rows.size(); ++b) {
        if (!Applies(rows[a], ranks) || !Applies(rows[b], ranks)) continue;
        const std::vector<Call> sequences[] = {
            Sequence(rows[a], rows[b], ranks, RootIs::kFirst),
            Sequence(rows[a], rows[b], ranks, RootIs::kInTurn)};
        for (const CheckOptions& options : all_options) {
          if (options.in_place && options.sending == Sending::kByReference &&
              (rows[a].copy_in_place || rows[b].copy_in_place)) {
            continue;
          }
          for (const std::vector<Call>& sequence : sequences) {
            const absl::Status status = CheckSequence(sequence, options);
            EXPECT_TRUE(status.ok())
                << Name(rows[a].collective) << " " << rows[a].name << " and "
                << Name(rows[b].collective) << " " << rows[b].name << ": "
                << status.message();
          }
        }
      }
    }
  }
};

TEST_P(SequenceTest, AnyTwoRowsFollowEachOtherThroughOutboxes) {
  std::vector<CheckOptions> options;
  for (int slots : {1, 2, 3}) {
    options.push_back({.sending = Sending::kCopied, .slots = slots});
    options.push_back(
        {.in_place = true, .sending = Sending::kCopied, .slots = slots});
  }
  ProvePairs(options, GetParam());
}

TEST_P(SequenceTest, AnyTwoRowsFollowEachOtherByReference) {
  std::vector<CheckOptions> options;
  for (int credits : {1, 2, 0}) {
    options.push_back({.credits = credits});
    options.push_back({.credits = credits, .in_place = true});
  }
  ProvePairs(options, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Ranks, SequenceTest,
                         testing::Values(1, 2, 3, 4, 5, 8));

// A rank that returns without knowing that peers have read its buffers.
TEST(SequenceMutantsTest, AForgottenFlushIsCaughtForEveryRow) {
  for (const Algorithm& row : Algorithms()) {
    for (int ranks : {2, 4, 8}) {
      const Call call = MakeCall(row, ranks, 0);
      EXPECT_FALSE(Check(call, {.flush = false}).ok())
          << Name(row.collective) << " " << row.name << ", " << ranks;
    }
  }
}

bool EntersSlotsTooEarly(const Algorithm& row, int ranks, int slots) {
  return !CheckSequence(
              Sequence(row, row, ranks, RootIs::kFirst),
              {.sending = Sending::kCopied, .slots = slots, .early = 1})
              .ok();
}

// With one slot a run writes where the last one's messages lie. Only the tree
// of all-reduce answers each message before the next run.
TEST(SequenceMutantsTest, ASlotReusedTooEarlyIsCaught) {
  for (const Algorithm& row : Algorithms()) {
    const bool answers = row.collective == Collective::kAllReduce &&
                         absl::string_view(row.name) == "tree";
    for (int ranks : {2, 3, 4, 5, 8}) {
      if (!Applies(row, ranks)) continue;
      EXPECT_EQ(EntersSlotsTooEarly(row, ranks, 1), !answers)
          << Name(row.collective) << " " << row.name << ", " << ranks;
    }
  }
}

// With more slots, whoever has left a collective without a root knows that all
// have entered it, since its result depends on all: there the announcement
// tells nothing new. A root or a leaf may run ahead: there it is needed.
TEST(SequenceMutantsTest, OneOfSeveralSlotsReusedTooEarlyIsCaught) {
  for (const Algorithm& row : Algorithms()) {
    for (int slots : {2, 3}) {
      for (int ranks : {2, 3, 4, 5, 8}) {
        if (!Applies(row, ranks)) continue;
        EXPECT_EQ(EntersSlotsTooEarly(row, ranks, slots),
                  IsRooted(row.collective))
            << Name(row.collective) << " " << row.name << ", " << ranks
            << " ranks, " << slots << " slots";
      }
    }
  }
}

}  // namespace
}  // namespace axon
