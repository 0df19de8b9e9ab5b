// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace axon {
namespace {

absl::Status Through(const absl::Status& inner, bool* reached) {
  RETURN_IF_ERROR(inner);
  *reached = true;
  return absl::OkStatus();
}

absl::StatusOr<int> Sum(absl::StatusOr<int> a, absl::StatusOr<int> b) {
  ASSIGN_OR_RETURN(int first, a);
  ASSIGN_OR_RETURN(const int second, b);
  return first + second;
}

absl::StatusOr<int> Moved(absl::StatusOr<std::unique_ptr<int>> value) {
  ASSIGN_OR_RETURN(std::unique_ptr<int> owned, std::move(value));
  return *owned;
}

TEST(StatusTest, ReturnIfErrorReturnsErrorsOnly) {
  bool reached = false;
  const absl::Status error = absl::NotFoundError("no such rank: 7");
  EXPECT_EQ(Through(error, &reached), error);
  EXPECT_FALSE(reached);
  EXPECT_TRUE(Through(absl::OkStatus(), &reached).ok());
  EXPECT_TRUE(reached);
}

TEST(StatusTest, AssignOrReturnTakesValuesAndReturnsTheFirstError) {
  EXPECT_EQ(*Sum(2, 3), 5);
  const absl::Status first = absl::AbortedError("first");
  EXPECT_EQ(Sum(first, absl::AbortedError("second")).status(), first);
  EXPECT_EQ(Sum(1, first).status(), first);
  EXPECT_EQ(*Moved(std::make_unique<int>(4)), 4);
}

TEST(StatusTest, ErrnoErrorNamesCallReasonAndNumber) {
  const absl::Status status = ErrnoError("bind 10.0.0.1:80", EADDRINUSE);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "bind 10.0.0.1:80: Address already in use (errno 98)");
  errno = EACCES;
  EXPECT_EQ(ErrnoError("open x").message(),
            "open x: Permission denied (errno 13)");
}

}  // namespace
}  // namespace axon
