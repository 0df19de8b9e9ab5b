// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/host_identity.h"

#include <unistd.h>

#include <fstream>

#include "absl/strings/escaping.h"
#include "base/status.h"
#include "bootstrap/random.h"

namespace axon {

std::string HostName() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0 || *name == '\0') return "?";
  return name;
}

std::string HostId(absl::string_view override_text) {
  if (!override_text.empty()) return std::string(override_text);
  std::string id;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  if (std::getline(file, id) && !id.empty()) return id;
  return HostName();
}

absl::StatusOr<std::string> NewProcessUid() {
  ASSIGN_OR_RETURN(const std::string bytes, RandomBytes(16));
  return absl::BytesToHexString(bytes);
}

}  // namespace axon
