// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <string>

namespace axon {
namespace {

// Written by settings at first use and by tests, read by every thread; relaxed:
// nothing else is published with it.
std::atomic<LogLevel> current_level{LogLevel::kWarn};

const char* LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kNone:
      return "NONE";
    case LogLevel::kError:
      return "ERROR";
    case LogLevel::kWarn:
      return "WARN";
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kDebug:
      return "DEBUG";
  }
  return "?";
}

}  // namespace

LogLevel CurrentLogLevel() {
  return current_level.load(std::memory_order_relaxed);
}

void SetLogLevel(LogLevel level) {
  current_level.store(level, std::memory_order_relaxed);
}

void LogLine(LogLevel level, absl::string_view text) {
  char host[256] = "?";
  gethostname(host, sizeof(host) - 1);
  const std::string line = absl::StrFormat("axon: %s:%d %s %s\n", host,
                                           getpid(), LevelName(level), text);
  // One write, so that lines of several processes do not mix.
  [[maybe_unused]] ssize_t n = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace axon
