// SPDX-License-Identifier: Apache-2.0
// The table of settings and the two texts made from it.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/settings.h"

namespace axon {
namespace {

using Kind = SettingRow::Kind;

constexpr int64_t kKiB = int64_t{1} << 10;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kTiB = int64_t{1} << 40;
// A year: more is a mistake in the unit, and would overflow nanoseconds soon.
constexpr int64_t kMaxMs = int64_t{366} * 24 * 3600 * 1000;
constexpr int64_t kMaxRanks = 32767;

constexpr SettingRow Text(const char* name, std::string Settings::*field,
                          const char* default_value, bool agree,
                          const char* help) {
  return {name, Kind::kText, default_value, 0, 0, 1, "", agree, field, help};
}
constexpr SettingRow Choice(const char* name, std::string Settings::*field,
                            const char* default_value, const char* choices,
                            bool agree, const char* help) {
  return {name, Kind::kChoice, default_value, 0,     0,
          1,    choices,       agree,         field, help};
}
constexpr SettingRow Int(const char* name, int64_t Settings::*field,
                         const char* default_value, int64_t min, int64_t max,
                         bool agree, const char* help) {
  return {name, Kind::kInt, default_value, min, max, 1, "", agree, field, help};
}
constexpr SettingRow Size(const char* name, int64_t Settings::*field,
                          const char* default_value, int64_t min, int64_t max,
                          int64_t unit, bool agree, const char* help) {
  return {name, Kind::kBytes, default_value, min,   max,
          unit, "",           agree,         field, help};
}
constexpr SettingRow Bool(const char* name, bool Settings::*field,
                          const char* default_value, bool agree,
                          const char* help) {
  return {name, Kind::kBool, default_value, 0, 1, 1, "", agree, field, help};
}

constexpr bool kAgree = true, kOwn = false;

constexpr char kAlgoHelp[] =
    "Algorithms to use or to leave out, in NCCL_ALGO's syntax, for example "
    "allreduce:ring,tree;broadcast:^tree. Empty: the fastest. Floats of 8 and "
    "16 bits and premultiplied sums need one that combines in rank order "
    "(mesh, one_shot): where none is left, the call is refused.";

constexpr SettingRow kRows[] = {
    Choice("AXON_LOG", &Settings::log, "warn", "none|error|warn|info|debug",
           kOwn, "What is written to standard error."),
    Int("AXON_TIMEOUT", &Settings::timeout_ms, "600000", 0, kMaxMs, kOwn,
        "Milliseconds after which a call gives up with axonTimeout and names "
        "the missing ranks; 0: never."),
    Int("AXON_INIT_TIMEOUT", &Settings::init_timeout_ms, "120000", 0, kMaxMs,
        kOwn,
        "Milliseconds for all ranks to come together when a communicator is "
        "created; 0: for ever."),
    Int("AXON_RANK", &Settings::rank, "-1", -1, kMaxRanks - 1, kOwn,
        "This process's rank for axonCommInitEnv; -1: as the launcher says."),
    Int("AXON_SIZE", &Settings::size, "-1", -1, kMaxRanks, kOwn,
        "The number of ranks for axonCommInitEnv; -1: as the launcher says."),
    Text("AXON_COMM_ID", &Settings::comm_id, "", kOwn,
         "Where ranks meet: host:port or [IPv6]:port, an address of rank 0's "
         "machine. Empty: MASTER_ADDR with MASTER_PORT + 1."),
    Text("AXON_COMM_SECRET", &Settings::comm_secret, "", kOwn,
         "Any text, the same on all ranks, without which nobody may join at "
         "AXON_COMM_ID."),
    Text("AXON_SOCKET_IFNAME", &Settings::socket_ifname, "", kOwn,
         "Network interfaces for meeting, separated by commas: names, "
         "beginnings of names or subnets (10.1.0.0/16). A leading ^ excludes "
         "them, a leading = takes names as exact. Empty: chosen by Axon."),
    Text("AXON_PORT_RANGE", &Settings::port_range, "", kOwn,
         "TCP ports to listen at, as low-high. Empty: any free port."),
    Text("AXON_HOST_ID", &Settings::host_id, "", kOwn,
         "Names the machine: only ranks with the same text may share memory. "
         "Empty: the kernel's boot id."),
    Choice("AXON_SHM", &Settings::shm, "auto", "auto|memfd|file", kOwn,
           "How shared memory is made: memfd (nothing to clean up), else a "
           "file in AXON_SHM_DIR without a name; auto tries both."),
    Text("AXON_SHM_DIR", &Settings::shm_dir, "/dev/shm", kOwn,
         "The directory of shared memory that is made as files."),
    Size("AXON_ARENA_SIZE", &Settings::arena_size, "0", 0, 64 * kTiB, 64 * kKiB,
         kOwn,
         "Bytes of address space reserved for shared memory in a process; 0: "
         "as much as the machine has memory."),
    Size("AXON_OUTBOX_SIZE", &Settings::outbox_size, "2M", 256 * kKiB,
         64 * kMiB, 64 * kKiB, kAgree,
         "Bytes of a rank's outbox, from which its peers read data that does "
         "not lie in shared memory."),
    Size("AXON_CHANNEL_SIZE", &Settings::channel_size, "256K", 8 * kKiB,
         64 * kMiB, 64, kAgree,
         "Bytes of the buffer between two ranks that send and receive."),
    Size("AXON_MAPPED_MIN", &Settings::mapped_min, "16K", 0, kTiB, 1, kAgree,
         "Bytes from which buffers in shared memory are read where they lie; "
         "below, they are copied."),
    Int("AXON_SPIN", &Settings::spin, "-1", -1, 1'000'000'000, kOwn,
        "Polls before a waiting thread yields its processor; -1: learned from "
        "the gaps between calls, 0 where ranks outnumber processors."),
    Text("AXON_ALGO", &Settings::algo, "", kAgree, kAlgoHelp),
    Bool("AXON_CHECK", &Settings::check, "0", kOwn,
         "Proves every plan before its first run, which takes time."),
    Text("AXON_CONF_FILE", &Settings::conf_file, "", kOwn,
         "A file with NAME=value lines for settings that are not in the "
         "environment. Empty: ~/.axon.conf, else /etc/axon.conf, where they "
         "exist."),
};

std::string BytesText(int64_t bytes) {
  if (bytes == 0) return "0";
  constexpr struct {
    int shift;
    const char* suffix;
  } kUnits[] = {{30, "G"}, {20, "M"}, {10, "K"}};
  for (const auto& unit : kUnits) {
    if (bytes % (int64_t{1} << unit.shift) == 0) {
      return absl::StrCat(bytes >> unit.shift, unit.suffix);
    }
  }
  return absl::StrCat(bytes);
}

std::string ValueText(const Settings& settings, const SettingRow& row) {
  if (auto* text = std::get_if<std::string Settings::*>(&row.field)) {
    return settings.**text;
  }
  if (auto* number = std::get_if<int64_t Settings::*>(&row.field)) {
    return absl::StrCat(settings.**number);
  }
  return settings.*std::get<bool Settings::*>(row.field) ? "1" : "0";
}

}  // namespace

absl::Span<const SettingRow> SettingRows() { return kRows; }

std::string RangeText(const SettingRow& row) {
  switch (row.kind) {
    case Kind::kText:
      return "text";
    case Kind::kBool:
      return "0 or 1";
    case Kind::kChoice:
      return absl::StrReplaceAll(row.choices, {{"|", ", "}});
    case Kind::kInt:
      return absl::StrCat(row.min, " to ", row.max);
    case Kind::kBytes:
      break;
  }
  std::string text =
      absl::StrCat(BytesText(row.min), " to ", BytesText(row.max));
  if (row.unit > 1) {
    absl::StrAppend(&text, ", a multiple of ", BytesText(row.unit));
  }
  return text;
}

std::string SettingsDigest(const Settings& settings) {
  std::string digest;
  for (const SettingRow& row : kRows) {
    if (!row.agree) continue;
    absl::StrAppend(&digest, digest.empty() ? "" : " ", row.name, "=",
                    ValueText(settings, row));
  }
  return digest;
}

std::string SettingsMarkdown() {
  std::string text =
      "<!-- Generated from src/base/settings_table.cc: run base_tests with\n"
      "     AXON_WRITE_DOCS=1 to write this file again. -->\n"
      "# Settings\n\n"
      "Axon reads these environment variables when a process makes its first\n"
      "communicator. A variable that is absent or empty is looked up in a\n"
      "file: the one that `AXON_CONF_FILE` names, else `~/.axon.conf`, else\n"
      "`/etc/axon.conf`. The file has one `NAME=value` a line; lines that\n"
      "begin with `#` are comments. An unknown `AXON_` variable is reported\n"
      "in the log, a value out of range is an error. Bytes may end in `K`,\n"
      "`M` or `G` (powers of 1024). Settings marked \"yes\" in the third\n"
      "column must be the same on all ranks, which is checked when they "
      "meet.\n\n"
      "| name | default | same on all ranks | range | meaning |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const SettingRow& row : kRows) {
    absl::StrAppendFormat(
        &text, "| `%s` | %s | %s | %s | %s |\n", row.name,
        *row.default_value ? absl::StrCat("`", row.default_value, "`") : "",
        row.agree ? "yes" : "", RangeText(row), row.help);
  }
  return text;
}

}  // namespace axon
