// SPDX-License-Identifier: Apache-2.0
#include "tests/bootstrap/meet.h"

#include "absl/strings/str_cat.h"

namespace axon {

BootstrapOptions MeetOptions(int64_t timeout_ms, Rendezvous* rendezvous) {
  return {timeout_ms, /*version=*/100, "A=1 B=2", rendezvous};
}

std::string Exchange(const UniqueId& id, int rank, int nranks,
                     const BootstrapOptions& options) {
  auto bootstrap = Bootstrap::Join(id, rank, nranks, options);
  if (!bootstrap.ok()) return bootstrap.status().ToString();
  std::string result;
  for (int round = 0; round < 2; ++round) {
    const auto parts =
        (*bootstrap)->AllGather(std::string(static_cast<size_t>(rank), 'a'));
    if (!parts.ok()) return parts.status().ToString();
    for (const std::string& part : *parts) {
      absl::StrAppend(&result, part.size(), ",");
    }
  }
  const absl::Status status = (*bootstrap)->Barrier();
  return status.ok() ? result : status.ToString();
}

std::string Exchanged(int nranks) {
  std::string once;
  for (int i = 0; i < nranks; ++i) absl::StrAppend(&once, i, ",");
  return once + once;
}

}  // namespace axon
