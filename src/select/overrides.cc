// SPDX-License-Identifier: Apache-2.0
#include "select/overrides.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace axon {
namespace {

// "AllReduce", "all_reduce" and "allreduce" are one name.
std::string Plain(absl::string_view name) {
  std::string plain = absl::AsciiStrToLower(name);
  plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
  return plain;
}

absl::StatusOr<Collective> FindCollective(absl::string_view name) {
  std::vector<std::string> known;
  for (int c = 0; c < kNumCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (Plain(Name(collective)) == Plain(name)) return collective;
    known.push_back(Name(collective));
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("AXON_ALGO: there is no collective '%s'; known: %s",
                      std::string(name), absl::StrJoin(known, ", ")));
}

absl::Status CheckName(const std::string& name, const Collective* collective) {
  std::vector<std::string> known;
  for (const Algorithm& row : Algorithms()) {
    if (collective != nullptr && row.collective != *collective) continue;
    if (name == row.name) return absl::OkStatus();
    if (std::find(known.begin(), known.end(), row.name) == known.end()) {
      known.push_back(row.name);
    }
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "AXON_ALGO: there is no algorithm '%s'%s; known: %s", name,
      collective == nullptr ? std::string()
                            : absl::StrFormat(" of %s", Name(*collective)),
      absl::StrJoin(known, ", ")));
}

}  // namespace

absl::StatusOr<Overrides> Overrides::Parse(absl::string_view text) {
  Overrides overrides;
  overrides.text_ = std::string(text);
  if (absl::StripAsciiWhitespace(text).empty()) return overrides;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    Entry entry;
    const size_t colon = part.find(':');
    absl::string_view list = part;
    if (colon == absl::string_view::npos) {
      if (!overrides.entries_.empty()) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "AXON_ALGO: '%s' names no collective; only the first entry may",
            std::string(part)));
      }
      entry.any_collective = true;
    } else {
      ASSIGN_OR_RETURN(
          entry.collective,
          FindCollective(absl::StripAsciiWhitespace(part.substr(0, colon))));
      list = part.substr(colon + 1);
    }
    list = absl::StripAsciiWhitespace(list);
    if (!list.empty() && list[0] == '^') {
      entry.except = true;
      list.remove_prefix(1);
    }
    for (absl::string_view name : absl::StrSplit(list, ',')) {
      entry.names.push_back(
          absl::AsciiStrToLower(absl::StripAsciiWhitespace(name)));
      RETURN_IF_ERROR(CheckName(entry.names.back(), entry.any_collective
                                                        ? nullptr
                                                        : &entry.collective));
    }
    overrides.entries_.push_back(std::move(entry));
  }
  return overrides;
}

const Overrides::Entry* Overrides::Find(Collective collective) const {
  const Entry* general = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.any_collective) {
      // A plain list speaks of the collectives that have one of its names.
      for (const std::string& name : entry.names) {
        if (FindAlgorithm(collective, name) != nullptr) general = &entry;
      }
    } else if (entry.collective == collective) {
      return &entry;
    }
  }
  return general;
}

bool Overrides::Speaks(Collective collective) const {
  return Find(collective) != nullptr;
}

bool Overrides::Allows(const Algorithm& algorithm) const {
  const Entry* entry = Find(algorithm.collective);
  if (entry == nullptr) return true;
  const bool named = std::find(entry->names.begin(), entry->names.end(),
                               algorithm.name) != entry->names.end();
  return named != entry->except;
}

}  // namespace axon
