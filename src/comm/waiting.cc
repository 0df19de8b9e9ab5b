// SPDX-License-Identifier: Apache-2.0
// What ends a wait, what is said about it, and what every rank is doing.
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "comm/communicator.h"

namespace axon {

void Communicator::CheckWait(const Deadline& deadline, int64_t timeout_ms,
                             absl::Span<const int> waiting_for,
                             const std::function<std::string()>& what,
                             int* suspect) {
  if (!status().ok()) return;
  for (int q : waiting_for) {
    if (q < 0 || q == rank()) continue;
    const bool left = board_->HasLeft(q);
    if (!left && !PeerDead(q)) continue;
    if (std::exchange(*suspect, q) != q) return;
    board_->Fail(absl::UnavailableError(absl::StrFormat(
        "%s of communicator '%s' %s while %s waits for it in %s",
        board_->Describe(q), config_.name,
        left ? "has destroyed it" : "has died", board_->Describe(rank()),
        what())));
    return;
  }
  if (deadline.passed()) {
    board_->Fail(absl::DeadlineExceededError(absl::StrFormat(
        "%s timed out after %d ms in %s of communicator '%s'; %s",
        board_->Describe(rank()), timeout_ms, what(), config_.name,
        DescribeLaggards())));
  }
}

void Communicator::SetBusyWith(const std::string& text) {
  Block& block = board_->mine();
  // Odd while the text is written; a reader that sees a change reads again.
  block.busy_version.fetch_add(1, std::memory_order_acq_rel);
  std::strncpy(block.busy_with, text.c_str(), sizeof(block.busy_with) - 1);
  block.busy_version.fetch_add(1, std::memory_order_acq_rel);
}

std::string Communicator::Dump() const {
  std::string text = absl::StrFormat("communicator '%s', %d ranks, seen by rank %d\n",
                                     config_.name, size(), rank());
  for (int q = 0; q < size(); ++q) {
    absl::StrAppend(&text, board_->Describe(q), ": ", DescribeState(*board_, q),
                    PeerDead(q) ? ", its process has ended" : "",
                    board_->HasLeft(q) ? ", has destroyed it" : "", "\n");
  }
  if (absl::Status error = status(); !error.ok()) {
    absl::StrAppend(&text, "error: ", std::string(error.message()), "\n");
  }
  return text;
}

}  // namespace axon
