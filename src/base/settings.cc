// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"

namespace axon {
namespace {

using Kind = SettingRow::Kind;

// A value and where it was written, for error texts.
struct Written {
  std::string value;
  std::string where;  // empty: the environment; else " in <file>:<line>"
};
using Table = absl::flat_hash_map<std::string, Written>;

const SettingRow* FindRow(absl::string_view name) {
  for (const SettingRow& row : SettingRows()) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string UnknownText(absl::string_view name, absl::string_view where) {
  const auto rows = SettingRows();
  const auto nearest = std::min_element(
      rows.begin(), rows.end(), [&](const SettingRow& a, const SettingRow& b) {
        return EditDistance(name, a.name) < EditDistance(name, b.name);
      });
  return absl::StrFormat("unknown setting %s%s is ignored; did you mean %s?",
                         name, where, nearest->name);
}

absl::Status BadValue(const SettingRow& row, const Written& written) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s='%s'%s is not allowed; it takes %s", row.name,
                      written.value, written.where, RangeText(row)));
}

// Digits and at most one suffix of K, M, G.
bool ParseBytes(absl::string_view text, int64_t* bytes) {
  int shift = 0;
  if (!text.empty()) {
    switch (absl::ascii_toupper(text.back())) {
      case 'K':
        shift = 10;
        break;
      case 'M':
        shift = 20;
        break;
      case 'G':
        shift = 30;
        break;
    }
  }
  if (shift > 0) text.remove_suffix(1);
  if (text.empty() || !absl::ascii_isdigit(text.back())) return false;
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return false;
  if (number < 0 || number > INT64_MAX >> shift) return false;
  *bytes = number << shift;
  return true;
}

absl::Status Assign(const SettingRow& row, const Written& written,
                    Settings* settings) {
  const std::string& value = written.value;
  if (row.kind == Kind::kText || row.kind == Kind::kChoice) {
    if (row.kind == Kind::kChoice) {
      const std::vector<absl::string_view> choices =
          absl::StrSplit(row.choices, '|');
      if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
        return BadValue(row, written);
      }
    }
    settings->*std::get<std::string Settings::*>(row.field) = value;
    return absl::OkStatus();
  }
  if (row.kind == Kind::kBool) {
    if (!absl::SimpleAtob(
            value, &(settings->*std::get<bool Settings::*>(row.field)))) {
      return BadValue(row, written);
    }
    return absl::OkStatus();
  }
  int64_t number = 0;
  const bool parsed = row.kind == Kind::kBytes
                          ? ParseBytes(value, &number)
                          : absl::SimpleAtoi(value, &number);
  if (!parsed || number < row.min || number > row.max ||
      number % row.unit != 0) {
    return BadValue(row, written);
  }
  settings->*std::get<int64_t Settings::*>(row.field) = number;
  return absl::OkStatus();
}

void Warn(std::vector<std::string>* warnings, std::string text) {
  if (warnings) warnings->push_back(std::move(text));
}

std::string UnreadableText(const std::string& path) {
  return absl::StrFormat("the file '%s' cannot be read: %s (errno %d)", path,
                         strerror(errno), errno);
}

// Adds the lines of `file` to `table` where a name is not there yet.
absl::Status ReadFile(std::ifstream& file, const std::string& path,
                      Table* table, std::vector<std::string>* warnings) {
  Table found;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || text[0] == '#') continue;
    const std::string where = absl::StrFormat(" in %s:%d", path, number);
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(text, absl::MaxSplits('=', 1));
    const std::string name(absl::StripAsciiWhitespace(parts.first));
    const absl::string_view value = absl::StripAsciiWhitespace(parts.second);
    if (!absl::StrContains(text, '=') || name.empty()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "'%s'%s is not a setting; write NAME=value", text, where));
    }
    if (name == "AXON_CONF_FILE") {
      return absl::InvalidArgumentError(absl::StrFormat(
          "AXON_CONF_FILE%s: one file cannot name another; set it in the "
          "environment",
          where));
    }
    if (!FindRow(name)) Warn(warnings, UnknownText(name, where));
    // Of two lines with one name the later counts, as in a shell.
    if (!value.empty()) found[name] = {std::string(value), where};
  }
  // A directory opens, but does not read.
  if (file.bad()) {
    return absl::InvalidArgumentError(UnreadableText(path));
  }
  for (auto& [name, written] : found) {
    table->emplace(name, std::move(written));
  }
  return absl::OkStatus();
}

// The file that was named must exist; the two usual ones need not.
absl::Status ReadConfiguration(const std::string& home, Table* table,
                               std::vector<std::string>* warnings) {
  if (auto it = table->find("AXON_CONF_FILE"); it != table->end()) {
    const std::string path = it->second.value;
    std::ifstream file(path);
    if (!file) {
      return absl::InvalidArgumentError("AXON_CONF_FILE: " +
                                        UnreadableText(path));
    }
    return ReadFile(file, path, table, warnings);
  }
  std::vector<std::string> paths;
  if (!home.empty()) paths.push_back(home + "/.axon.conf");
  paths.push_back("/etc/axon.conf");
  for (const std::string& path : paths) {
    std::ifstream file(path);
    if (!file) {
      if (errno != ENOENT && errno != ENOTDIR) {
        Warn(warnings, UnreadableText(path) + "; it is ignored");
      }
      continue;
    }
    RETURN_IF_ERROR(ReadFile(file, path, table, warnings));
    (*table)["AXON_CONF_FILE"] = {path, ""};
    break;
  }
  return absl::OkStatus();
}

}  // namespace

Environment ProcessEnvironment() {
  Environment result;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    if (absl::StartsWith(pair.first, "AXON_") || pair.first == "HOME") {
      result.push_back(pair);
    }
  }
  return result;
}

absl::StatusOr<Settings> ReadSettings(const Environment& environment,
                                      std::vector<std::string>* warnings) {
  Table table;
  std::string home;
  for (const auto& [name, value] : environment) {
    if (name == "HOME") home = value;
    if (!absl::StartsWith(name, "AXON_")) continue;
    if (!FindRow(name)) Warn(warnings, UnknownText(name, ""));
    if (!value.empty()) table[name] = {value, ""};
  }
  RETURN_IF_ERROR(ReadConfiguration(home, &table, warnings));
  Settings settings{};
  for (const SettingRow& row : SettingRows()) {
    const auto it = table.find(row.name);
    const Written written =
        it != table.end() ? it->second : Written{row.default_value, ""};
    RETURN_IF_ERROR(Assign(row, written, &settings));
  }
  return settings;
}

}  // namespace axon
