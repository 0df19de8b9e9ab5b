// SPDX-License-Identifier: Apache-2.0
// AXON_ALGO: which algorithms the user allows, in the syntax of NCCL_ALGO:
// "list" or "collective:list;collective:list"; a list is names separated by
// commas, '^' before it means all but these; only the first entry may lack a
// collective. Names are case-insensitive. A value.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/types.h"
#include "schedule/algorithms.h"

namespace axon {

class Overrides {
 public:
  // Unknown collectives and names are errors that list the known ones.
  static absl::StatusOr<Overrides> Parse(absl::string_view text);

  // Whether the user lets this row be used.
  bool Allows(const Algorithm& algorithm) const;
  // Whether anything was said about the collective.
  bool Speaks(Collective collective) const;
  const std::string& text() const { return text_; }

 private:
  struct Entry {
    bool any_collective = false;  // applies where a row of that name exists
    Collective collective = Collective::kAllReduce;
    bool except = false;
    std::vector<std::string> names;
  };
  const Entry* Find(Collective collective) const;

  std::string text_;
  std::vector<Entry> entries_;
};

}  // namespace axon
