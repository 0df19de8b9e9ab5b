// SPDX-License-Identifier: Apache-2.0
// Two macros over absl::Status. Inside Axon every function that can fail
// returns absl::Status or absl::StatusOr; the function that first knows an
// error writes its text, with the object, the value and the remedy.
#pragma once

#include <cerrno>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#define RETURN_IF_ERROR(expr)                                   \
  do {                                                          \
    if (absl::Status axon_status_ = (expr); !axon_status_.ok()) \
      return axon_status_;                                      \
  } while (false)

#define AXON_CONCAT_INNER(a, b) a##b
#define AXON_CONCAT(a, b) AXON_CONCAT_INNER(a, b)
#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL(AXON_CONCAT(axon_or_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(var, lhs, expr)    \
  auto var = (expr);                             \
  if (!var.ok()) return std::move(var).status(); \
  lhs = *std::move(var)

namespace axon {

// An operating system call failed: `what` ("bind 10.0.0.1:80"), then errno's
// text. Becomes axonSystemError at the C edge.
absl::Status ErrnoError(absl::string_view what, int error = errno);

}  // namespace axon
