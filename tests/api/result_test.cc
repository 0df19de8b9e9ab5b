// SPDX-License-Identifier: Apache-2.0
// Codes, phrases and the texts of last errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "axon/axon.h"
#include "tests/api/ranks.h"

namespace axon {
namespace {

TEST(ResultTest, EveryCodeHasAPhraseOfItsOwn) {
  std::set<std::string> phrases;
  for (int code = 0; code < axonNumResults; ++code) {
    const char* phrase = axonGetErrorString(static_cast<axonResult_t>(code));
    ASSERT_NE(phrase, nullptr);
    EXPECT_TRUE(phrases.insert(phrase).second) << phrase;
  }
  EXPECT_STREQ(axonGetErrorString(axonNumResults), "unknown result code");
}

TEST(ResultTest, TextsAreOfTheThreadAndOfTheCommunicator) {
  const Comms comms(2);
  EXPECT_EQ(axonBcast(nullptr, 0, axonInt8, 5, comms[0], nullptr),
            axonInvalidArgument);
  EXPECT_EQ(axonBcast(nullptr, 0, axonInt8, 6, comms[1], nullptr),
            axonInvalidArgument);
  EXPECT_THAT(axonGetLastError(comms[0]), testing::HasSubstr("root 5"));
  EXPECT_THAT(axonGetLastError(comms[1]), testing::HasSubstr("root 6"));
  EXPECT_THAT(axonGetLastError(nullptr), testing::HasSubstr("root 6"));
  std::thread([&] {
    EXPECT_STREQ(axonGetLastError(nullptr), "");
    EXPECT_THAT(axonGetLastError(comms[0]), testing::HasSubstr("root 5"));
  }).join();
}

// The error of a group is that of the communicator that failed.
TEST(ResultTest, OfAGroupIsTheCommunicatorsThatFailed) {
  const Comms good(1), bad(1);
  axonComm_t split = nullptr;
  ASSERT_AXON_OK(axonCommSplit(bad[0], 0, 0, &split, nullptr));
  int32_t value = 1;
  ASSERT_AXON_OK(axonCommSetTimeout(split, 50));
  ASSERT_AXON_OK(axonGroupStart());
  EXPECT_AXON_OK(axonBcast(&value, 1, axonInt32, 0, good[0], nullptr));
  // Nobody sends it.
  EXPECT_AXON_OK(axonRecv(&value, 1, axonInt32, 0, split, nullptr));
  EXPECT_AXON_ERROR(axonGroupEnd(), axonTimeout, "timed out");
  EXPECT_STREQ(axonGetLastError(good[0]), "");
  EXPECT_THAT(axonGetLastError(split), testing::HasSubstr("timed out"));
  EXPECT_AXON_OK(axonCommDestroy(split));
}

// No call on the communicator has returned it.
TEST(ResultTest, OfACallOnAStreamIsTheCommunicatorsToo) {
  const Comms comms(1);
  int32_t value = 1;
  axonStream_t stream = nullptr;
  ASSERT_AXON_OK(axonStreamCreate(&stream));
  ASSERT_AXON_OK(axonCommSetTimeout(comms[0], 50));
  EXPECT_EQ(axonBcast(nullptr, 0, axonInt8, 5, comms[0], stream),
            axonInvalidArgument);
  ASSERT_AXON_OK(axonGroupStart());
  EXPECT_AXON_OK(axonRecv(&value, 1, axonInt32, 0, comms[0], stream));
  ASSERT_AXON_OK(axonGroupEnd());
  EXPECT_AXON_ERROR(axonStreamDestroy(stream), axonTimeout, "timed out");
  EXPECT_THAT(axonGetLastError(comms[0]), testing::HasSubstr("timed out"));
  // What comes later counts.
  EXPECT_EQ(axonBcast(nullptr, 0, axonInt8, 6, comms[0], nullptr),
            axonInvalidArgument);
  EXPECT_THAT(axonGetLastError(comms[0]), testing::HasSubstr("root 6"));
}

TEST(ResultTest, SuccessLeavesTheTextAlone) {
  const Comms comms(1);
  EXPECT_EQ(axonGroupEnd(), axonInvalidUsage);
  EXPECT_AXON_OK(axonBarrier(comms[0], nullptr));
  EXPECT_THAT(LastError(), testing::HasSubstr("axonGroupEnd"));
  EXPECT_STREQ(axonGetLastError(comms[0]), "");
}

}  // namespace
}  // namespace axon
