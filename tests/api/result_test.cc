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

TEST(ResultTest, SuccessLeavesTheTextAlone) {
  const Comms comms(1);
  EXPECT_EQ(axonGroupEnd(), axonInvalidUsage);
  EXPECT_AXON_OK(axonBarrier(comms[0], nullptr));
  EXPECT_THAT(LastError(), testing::HasSubstr("axonGroupEnd"));
  EXPECT_STREQ(axonGetLastError(comms[0]), "");
}

}  // namespace
}  // namespace axon
