// SPDX-License-Identifier: Apache-2.0
#include "transport/board.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"

namespace axon {
namespace {

// References: the low two bits tell an offset in the arena from an address that
// only ranks of the same process can use.
constexpr Ref kInArenaTag = 1;
constexpr Ref kAddressTag = 2;

}  // namespace

Board::Board(int me, std::vector<Member> members)
    : me_(me),
      members_(std::move(members)),
      mine_(members_[me].block),
      failed_by_(&members_[0].block->failed_by),
      sleeper_words_(static_cast<int>(CeilDiv(members_.size(), 64))),
      one_process_(
          std::all_of(members_.begin(), members_.end(),
                      [](const Member& m) { return m.same_process; })) {}

Ref Board::RefOf(const void* p, size_t size) const {
  const auto address = reinterpret_cast<uintptr_t>(p);
  if (one_process_) return (static_cast<Ref>(address) << 2) | kAddressTag;
  const Member& own = members_[me_];
  const auto base = reinterpret_cast<uintptr_t>(own.arena);
  if (address < base || size > own.arena_size ||
      address - base > own.arena_size - size) {
    return 0;
  }
  return (static_cast<Ref>(address - base) << 2) | kInArenaTag;
}

std::byte* Board::Address(int rank, Ref ref, size_t size) const {
  const Ref value = ref >> 2;
  switch (ref & 3) {
    case kInArenaTag:
      return InArena(rank, value, size);
    case kAddressTag:
      if (!members_[rank].same_process) return nullptr;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): see RefOf
      return reinterpret_cast<std::byte*>(value);
    default:
      return nullptr;
  }
}

std::byte* Board::InArena(int rank, uint64_t offset, size_t size) const {
  const Member& member = members_[rank];
  if (size > member.arena_size || offset > member.arena_size - size) {
    return nullptr;
  }
  return member.arena + offset;
}

void Board::Wake(int word) {
  uint64_t bits = mine_->sleepers[word].exchange(0, std::memory_order_seq_cst);
  for (; bits != 0; bits &= bits - 1) {
    const int rank = word * 64 + __builtin_ctzll(bits);
    if (rank < ranks()) Ring(*members_[rank].doorbell);
  }
}

void Board::AskToWake(int rank) {
  // seq_cst: ordered before the caller's second look at its condition.
  block(rank).sleepers[me_ / 64].fetch_or(uint64_t{1} << (me_ % 64),
                                          std::memory_order_seq_cst);
}

void Board::Fail(const absl::Status& error) {
  {
    std::lock_guard<std::mutex> lock(text_mutex_);
    // Another's error is kept; and so this text is written once.
    if (failed()) return;
    const std::string text(error.message());
    std::strncpy(mine_->failure_text, text.c_str(),
                 sizeof(mine_->failure_text) - 1);
    mine_->failure_code.store(static_cast<uint32_t>(error.code()),
                              std::memory_order_relaxed);
    uint32_t none = 0;
    const auto self = static_cast<uint32_t>(me_ + 1);
    if (!failed_by_->compare_exchange_strong(none, self)) return;
  }
  for (const Member& member : members_) Ring(*member.doorbell);
}

absl::Status Board::failure() const {
  const uint32_t by = failed_by_->load(std::memory_order_acquire);
  if (by == 0) return absl::OkStatus();
  // See FailedMeanwhile().
  (void)HeavyFence();
  if (by > members_.size()) {
    return absl::UnavailableError("the communicator has failed");
  }
  const int rank = static_cast<int>(by) - 1;
  const Block& source = block(rank);
  auto code = static_cast<absl::StatusCode>(
      source.failure_code.load(std::memory_order_relaxed));
  // Whatever a peer's memory says: a failure is not OK.
  if (code == absl::StatusCode::kOk) code = absl::StatusCode::kUnknown;
  const std::string text(
      source.failure_text,
      strnlen(source.failure_text, sizeof(source.failure_text)));
  if (rank == me_) return absl::Status(code, text);
  return absl::Status(
      code, absl::StrFormat("%s [found by %s]", text, Describe(rank)));
}

void Board::Leave() {
  for (int q = 0; q < ranks(); ++q) {
    // release: everything this rank did with the peer's memory comes before.
    block(q).left[me_ / 64].fetch_or(uint64_t{1} << (me_ % 64),
                                     std::memory_order_release);
  }
}

std::string Board::Describe(int rank) const {
  const Block& b = block(rank);
  return absl::StrFormat("rank %d (host %s, pid %d)", rank,
                         std::string(b.host, strnlen(b.host, sizeof(b.host))),
                         b.pid);
}

}  // namespace axon
