// SPDX-License-Identifier: Apache-2.0
#include "schedule/sound.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "schedule/collective.h"

namespace axon {

absl::Status Sound(const Call& call, size_t ranks) {
  if (call.schedules.empty() || call.schedules.size() != ranks) {
    return absl::InvalidArgumentError(absl::StrCat("a call has schedules for ",
                                                   call.schedules.size(),
                                                   " ranks, not for ", ranks));
  }
  if (call.root < 0 || call.root >= static_cast<int>(ranks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("root ", call.root, " is none of ", ranks, " ranks"));
  }
  const int cuts = call.schedules[0].cuts;
  const int n = static_cast<int>(ranks);
  for (int r = 0; r < n; ++r) {
    const Schedule& schedule = call.schedules[r];
    if (schedule.cuts == 0 || schedule.cuts != cuts) {
      return absl::InvalidArgumentError(absl::StrCat("ranks cut a block into ",
                                                     cuts, " and into ",
                                                     schedule.cuts, " pieces"));
    }
    const Place place{n, r, call.root};
    const int blocks = std::max(InBlocks(call.collective, place),
                                OutBlocks(call.collective, place));
    if (blocks * cuts > std::numeric_limits<uint16_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat(blocks, " blocks of ", cuts,
                       " pieces are more than a span can name"));
    }
  }
  return absl::OkStatus();
}

const char* Flaw(Collective collective, int me, int ranks,
                 const Schedule& schedule, const Op& op, const Memory& memory) {
  const bool listed =
      op.kind == OpKind::kPublish || op.kind == OpKind::kReduceAll;
  if (listed &&
      (op.peer < 0 || op.peer >= static_cast<int>(schedule.lists.size()))) {
    return "has no list of peers";
  }
  const absl::Span<const int16_t> peers = schedule.Peers(op);
  if (listed && peers.empty()) return "has an empty list of peers";
  for (size_t i = 0; i < peers.size(); ++i) {
    if (peers[i] < 0 || peers[i] >= ranks) return "has a peer that is no rank";
    if (peers[i] == me) return "has its own rank as a peer";
    if (i > 0 && peers[i] <= peers[i - 1]) {
      return "has a list of peers that does not ascend";
    }
  }
  if (!memory.Contains(op.source) || !memory.Contains(op.destination)) {
    return "names pieces out of range";
  }
  const bool both = op.kind != OpKind::kSend && op.kind != OpKind::kPublish &&
                    op.kind != OpKind::kRecv;
  if (both && op.source.count != op.destination.count) {
    return "has a source and a destination of different sizes";
  }
  if (op.destination.count > 0 && op.destination.buffer == Buffer::kIn) {
    return "writes `in`";
  }
  if (op.completes &&
      (!both || op.destination.count == 0 || !IsReduction(collective))) {
    return "completes nothing";
  }
  return nullptr;
}

}  // namespace axon
