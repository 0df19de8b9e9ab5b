// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override { SetLogLevel(before_); }
  // What a line of `level` writes while `limit` is in force.
  static std::string Written(LogLevel limit, LogLevel level) {
    SetLogLevel(limit);
    ::testing::internal::CaptureStderr();
    Log(level, "%d is %s", 7, "odd");
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  const LogLevel before_ = CurrentLogLevel();
};

TEST_F(LogTest, WritesOneLineWithItsOrigin) {
  EXPECT_THAT(Written(LogLevel::kWarn, LogLevel::kWarn),
              AllOf(StartsWith("axon: "),
                    HasSubstr(absl::StrCat(":", getpid(), " WARN ")),
                    EndsWith(" 7 is odd\n")));
}

TEST_F(LogTest, WritesUpToTheLevelInForce) {
  constexpr LogLevel kLevels[] = {LogLevel::kError, LogLevel::kWarn,
                                  LogLevel::kInfo, LogLevel::kDebug};
  for (LogLevel limit : kLevels) {
    for (LogLevel level : kLevels) {
      EXPECT_EQ(Written(limit, level).empty(), level > limit)
          << static_cast<int>(limit) << " " << static_cast<int>(level);
    }
    EXPECT_EQ(Written(LogLevel::kNone, limit), "");
  }
}

}  // namespace
}  // namespace axon
