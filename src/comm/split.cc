// SPDX-License-Identifier: Apache-2.0
// Splitting: two all-gathers over the parent, no rendezvous, no new mapping.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "comm/tasks.h"

namespace axon {
namespace {

struct Wish {
  int32_t color;
  int32_t key;
};

struct Member {
  int rank;  // in the parent
  int key;
};

std::vector<Member> MembersOf(const std::vector<Wish>& wishes, int color) {
  std::vector<Member> members;
  for (size_t r = 0; r < wishes.size(); ++r) {
    if (wishes[r].color == color) {
      members.push_back({static_cast<int>(r), wishes[r].key});
    }
  }
  std::stable_sort(
      members.begin(), members.end(),
      [](const Member& a, const Member& b) { return a.key < b.key; });
  return members;
}

int PlaceOf(int rank, const std::vector<Member>& members) {
  const auto me = std::find_if(members.begin(), members.end(),
                               [&](const Member& m) { return m.rank == rank; });
  return static_cast<int>(me - members.begin());
}

}  // namespace

absl::Status Communicator::Gather(const void* mine, void* all, size_t bytes,
                                  Deadline deadline, int64_t limit_ms) {
  CollectiveArgs args;
  args.collective = Collective::kAllGather;
  args.in = mine;
  args.out = all;
  args.count = bytes;
  args.variant = CallVariant::kSplit;
  CollectiveTask task(*this, std::move(args), limit_ms);
  task.SetDeadline(deadline);
  return RunBlocking(task);
}

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Split(
    int color, int key, CommConfig config) {
  std::vector<Wish> wishes(static_cast<size_t>(size()));
  const Wish mine{color, key};
  const int64_t limit_ms = config.init_timeout_ms;
  const Deadline deadline = Deadline::In(limit_ms);
  RETURN_IF_ERROR(
      Gather(&mine, wishes.data(), sizeof(Wish), deadline, limit_ms));
  const int number = ++splits_;
  const std::vector<Member> members =
      color < 0 ? std::vector<Member>() : MembersOf(wishes, color);
  const int new_rank = PlaceOf(rank(), members);
  if (config.name.empty()) {
    config.name = absl::StrFormat("%s/%d.%d", name(), number, color);
  }
  process_.Sweep();
  Membership membership;
  membership.usable_cpus = usable_cpus_;
  Seat seat;
  absl::StatusOr<std::byte*> block = nullptr;
  if (!members.empty()) {
    block = MakeBlock(process_, new_rank, static_cast<int>(members.size()),
                      config.name);
    if (block.ok()) seat.block = process_.arena().OffsetOf(*block);
  }
  std::vector<Seat> seats(static_cast<size_t>(size()));
  absl::Status status = block.status();
  if (!status.ok()) board_->Fail(status);
  if (status.ok()) {
    status = Gather(&seat, seats.data(), sizeof(Seat), deadline, limit_ms);
  }
  if (!status.ok()) {
    // Others may have got all places, this rank's too.
    if (block.ok() && *block != nullptr) GiveUpBlock(*block);
    return status;
  }
  if (members.empty()) return std::unique_ptr<Communicator>();
  membership.memory.push_back(*block);
  std::vector<Seat> chosen;
  for (const Member& member : members) {
    const auto r = static_cast<size_t>(member.rank);
    chosen.push_back(seats[r]);
    Link* link = links_[r];
    membership.links.push_back(
        link == nullptr ? nullptr : process_.links().Acquire(link->uid));
  }
  absl::StatusOr<std::unique_ptr<Board>> board =
      MakeBoard(process_, new_rank, chosen, membership.links);
  if (!board.ok()) {
    GiveUpBlock(*block);
    for (Link* link : membership.links) {
      if (link != nullptr) process_.links().Release(link);
    }
    return board.status();
  }
  membership.board = *std::move(board);
  return Create(process_, std::move(membership), std::move(config));
}

}  // namespace axon
