// SPDX-License-Identifier: Apache-2.0
// Levels and one sink, standard error. Nothing is printed at level none.
// Thread-safe. Lines look like "axon: <host>:<pid> WARN <text>".
#pragma once

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace axon {

enum class LogLevel { kNone = 0, kError = 1, kWarn = 2, kInfo = 3, kDebug = 4 };

// The level in force: AXON_LOG (none, error, warn, info, debug), else warn.
LogLevel CurrentLogLevel();
void SetLogLevel(LogLevel level);
void LogLine(LogLevel level, absl::string_view text);

template <typename... Args>
void Log(LogLevel level, const absl::FormatSpec<Args...>& format,
         const Args&... args) {
  if (level <= CurrentLogLevel())
    LogLine(level, absl::StrFormat(format, args...));
}

}  // namespace axon
