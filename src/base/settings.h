// SPDX-License-Identifier: Apache-2.0
// Every environment variable that Axon reads, as one table with type, default,
// range and help, from which docs/settings.md is generated. Read once, when the
// first communicator is made, and passed down by reference; a plain value.
//
// Values come from the environment, else from the file AXON_CONF_FILE (else
// ~/.axon.conf, else /etc/axon.conf; NAME=value lines, '#' comments), else from
// the default; an empty value counts as absent. An unknown AXON_* variable is
// reported (with the nearest known name); an ill-formed value is an error that
// names variable, value and range. Thread-safe: nothing here keeps state.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace axon {

struct Settings {
  std::string log;            // none, error, warn, info, debug
  int64_t timeout_ms;         // of calls; 0: none
  int64_t init_timeout_ms;    // of creating a communicator; 0: none
  int64_t rank;               // -1: not set
  int64_t size;               // -1: not set
  std::string comm_id;        // host:port, [v6]:port
  std::string comm_secret;    // any text
  std::string socket_ifname;  // names, prefixes, CIDRs; '^' excludes, '=' exact
  std::string port_range;     // "low-high"
  std::string host_id;        // overrides the proof of sharing a machine
  std::string shm;            // auto, memfd, file
  std::string shm_dir;        // for shm=file
  int64_t arena_size;         // bytes of address space for shared memory
  int64_t outbox_size;        // bytes of a rank's outbox
  int64_t channel_size;       // bytes of a send-receive channel
  int64_t mapped_min;         // bytes from which mapped buffers are used
  int64_t spin;               // polls before yielding; -1: by itself
  std::string algo;           // NCCL_ALGO's syntax
  bool check;                 // prove schedules before they run
  std::string conf_file;      // the file that was read; empty: none
};

struct SettingRow {
  enum class Kind { kText, kChoice, kInt, kBytes, kBool };
  const char* name;  // "AXON_TIMEOUT"
  Kind kind;
  const char* default_value;  // as text
  int64_t min, max;           // for kInt and kBytes
  int64_t unit;               // for kInt and kBytes: a multiple of this
  const char* choices;        // for kChoice: "a|b|c"
  bool agree;                 // must be the same on all ranks
  std::variant<std::string Settings::*, int64_t Settings::*, bool Settings::*>
      field;         // where the value goes
  const char* help;  // one or two sentences, with the unit
};

// The table, in the order of docs/settings.md.
absl::Span<const SettingRow> SettingRows();

// The values that `row` allows, as docs/settings.md and errors say them.
std::string RangeText(const SettingRow& row);

// All (name, value) pairs whose name starts with "AXON_", and HOME.
using Environment = std::vector<std::pair<std::string, std::string>>;
Environment ProcessEnvironment();

// Settings from `environment`; `warnings` (may be null) gets a line for each
// unknown variable.
absl::StatusOr<Settings> ReadSettings(const Environment& environment,
                                      std::vector<std::string>* warnings);

// "NAME=value" of all settings that must be the same on all ranks, as one text
// that ranks compare when they meet.
std::string SettingsDigest(const Settings& settings);

// docs/settings.md, generated.
std::string SettingsMarkdown();

}  // namespace axon
