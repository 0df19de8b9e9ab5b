// SPDX-License-Identifier: Apache-2.0
// What ends a wait, what is said about it, and what every rank is doing.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "comm/communicator.h"

namespace axon {

std::vector<int> Communicator::NeededPeers() const {
  const uint32_t call = view_.call();
  std::vector<int> needed;
  for (int q = 0; q < size(); ++q) {
    if (q == rank()) continue;
    const Block& block = board_->block(q);
    // Relaxed: nothing is read on the strength of it.
    const auto entered = [&](uint32_t number) {
      const uint64_t word =
          block.lines[number % kCallLines].word.load(std::memory_order_relaxed);
      return static_cast<int32_t>(static_cast<uint32_t>(word >> 32) - number) >=
             0;
    };
    const bool finished =
        entered(call + 1) ||
        Reached(block.progress.load(std::memory_order_relaxed),
                Count(call + 1, 0));
    // All that a rank gives to a call on lines stands in its line.
    const bool gave_all = finished || (on_lines_ && entered(call));
    if (!gave_all || q == view_.waiting_for()) needed.push_back(q);
  }
  return needed;
}

const char* Communicator::HowLeft(int rank) const {
  return board_->HasGivenUp(rank) ? "could not complete its creation"
                                  : "has destroyed it";
}

int Communicator::GonePeer(absl::Span<const int> needed) const {
  int left = -1;
  for (int q : needed) {
    if (q == rank()) continue;
    if (!board_->HasLeft(q)) {
      if (PeerDead(q)) return q;
    } else if (left < 0) {
      left = q;
    }
  }
  return left;
}

void Communicator::CheckWait(Wait& wait, absl::Span<const int> needed) {
  if (!status().ok()) return;
  if (const int q = GonePeer(needed); q >= 0) {
    if (std::exchange(wait.suspect, q) != q) return;
    board_->Fail(absl::UnavailableError(absl::StrFormat(
        "%s of communicator '%s' %s while %s waits for it in %s",
        board_->Describe(q), config_.name,
        board_->HasLeft(q) ? HowLeft(q) : "has died", board_->Describe(rank()),
        wait.what())));
    return;
  }
  if (wait.deadline.passed()) {
    board_->Fail(absl::DeadlineExceededError(absl::StrFormat(
        "%s timed out after %d ms in %s of communicator '%s'; %s",
        board_->Describe(rank()), wait.timeout_ms, wait.what(), config_.name,
        wait.others())));
  }
}

void Communicator::SetBusyWith(const std::string& text) {
  board_->mine().busy_with.Write(text);
}

std::string Communicator::Dump() const {
  std::string text =
      absl::StrFormat("communicator '%s', %d ranks, seen by rank %d\n",
                      config_.name, size(), rank());
  for (int q = 0; q < size(); ++q) {
    absl::StrAppend(&text, board_->Describe(q), ": ", DescribeState(*board_, q),
                    PeerDead(q) ? ", its process has ended" : "",
                    board_->HasLeft(q) ? ", " : "",
                    board_->HasLeft(q) ? HowLeft(q) : "", "\n");
  }
  if (absl::Status error = status(); !error.ok()) {
    absl::StrAppend(&text, "error: ", std::string(error.message()), "\n");
  }
  return text;
}

}  // namespace axon
