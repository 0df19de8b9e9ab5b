// SPDX-License-Identifier: Apache-2.0
// Sends and receives of unequal size: an error on both sides that names both
// sizes, whether the sender still waits or has gone on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/api/stage.h"
#include "tests/support/processes.h"

namespace axon {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

struct Sizes {
  size_t sent, expected;  // bytes
};

class MessageMismatchTest : public testing::TestWithParam<Sizes> {
 protected:
  // Both ranks' outcomes, each of its first call that fails.
  static std::vector<std::string> Play(bool on_stream, bool in_group) {
    const Sizes sizes = GetParam();
    Stage stage;
    return RunProcesses(2, 60'000, [&](int rank) {
      Member member(stage, rank, 2);
      axonStream_t stream = nullptr;
      if (on_stream) axonStreamCreate(&stream);
      std::vector<char> bytes(std::max(sizes.sent, sizes.expected), 'x');
      if (in_group) axonGroupStart();
      axonResult_t result = rank == 0
                                ? axonSend(bytes.data(), sizes.sent, axonInt8,
                                           1, member.comm(), stream)
                                : axonRecv(bytes.data(), sizes.expected,
                                           axonInt8, 0, member.comm(), stream);
      if (in_group) result = axonGroupEnd();
      if (on_stream) result = axonStreamSynchronize(stream);
      std::string text = Outcome(result, on_stream ? nullptr : member.comm());
      if (rank == 1 && text == "ok") return std::string("received");
      // A small message may have been buffered.
      if (text == "ok") text = member.Barrier();
      // What was said once stays said.
      const std::string again = member.Query();
      return again == text ? text : absl::StrCat(text, " then ", again);
    });
  }
  static auto NamesBothSizes() {
    return Each(AllOf(
        StartsWith("axonInvalidUsage: message sizes differ: rank 0 (host "),
        HasSubstr(
            absl::StrCat("sends ", GetParam().sent, " bytes to rank 1 (host ")),
        HasSubstr(absl::StrCat("which expects ", GetParam().expected))));
  }
};

INSTANTIATE_TEST_SUITE_P(, MessageMismatchTest,
                         testing::Values(Sizes{8, 4}, Sizes{4, 8}, Sizes{0, 1},
                                         Sizes{1, 0}, Sizes{3 << 20, 8},
                                         Sizes{8, 3 << 20},
                                         Sizes{3 << 20, (3 << 20) + 1}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.sent, "_",
                                               info.param.expected);
                         });

TEST_P(MessageMismatchTest, FailsBothSides) {
  EXPECT_THAT(Play(false, false), NamesBothSizes());
}

TEST_P(MessageMismatchTest, FailsBothSidesOfAGroup) {
  EXPECT_THAT(Play(false, true), NamesBothSizes());
}

TEST_P(MessageMismatchTest, FailsBothSidesOnAStream) {
  EXPECT_THAT(Play(true, false), NamesBothSizes());
}

TEST_P(MessageMismatchTest, FailsAllRanksOfAnAllToAllOfParts) {
  const Sizes sizes = GetParam();
  Stage stage;
  const auto texts = RunProcesses(3, 60'000, [&](int rank) {
    Member member(stage, rank, 3);
    const auto sent = static_cast<int64_t>(sizes.sent);
    const auto expected = static_cast<int64_t>(sizes.expected);
    // Only what rank 0 sends to rank 1 differs.
    std::vector<int64_t> send = {5, 5, 5}, recv = {5, 5, 5};
    if (rank == 0) send[1] = sent;
    if (rank == 1) recv[0] = expected;
    const size_t most = std::max(sizes.sent, sizes.expected) + 15;
    std::vector<char> in(most, 'x'), out(most);
    std::string text = Outcome(
        axonAlltoAllV(in.data(), send.data(), nullptr, out.data(), recv.data(),
                      nullptr, axonInt8, member.comm(), nullptr),
        member.comm());
    if (text == "ok" && rank != 1) text = member.Barrier();
    return text;
  });
  EXPECT_THAT(texts, NamesBothSizes());
}

// The other ranks learn of it too, and a message between others is not hurt
// before they do.
TEST(MessageMismatch, ReachesRanksThatHadNoPartInIt) {
  Stage stage;
  const auto texts = RunProcesses(3, 60'000, [&](int rank) {
    Member member(stage, rank, 3);
    if (rank == 2) return member.Barrier();
    char bytes[8] = {};
    const axonResult_t result =
        rank == 0 ? axonSend(bytes, 7, axonInt8, 1, member.comm(), nullptr)
                  : axonRecv(bytes, 8, axonInt8, 0, member.comm(), nullptr);
    return result == axonSuccess ? member.Barrier()
                                 : Outcome(result, member.comm());
  });
  EXPECT_THAT(texts, Each(AllOf(StartsWith("axonInvalidUsage: message sizes "),
                                HasSubstr("sends 7 bytes"),
                                HasSubstr("which expects 8"))));
}

}  // namespace
}  // namespace axon
