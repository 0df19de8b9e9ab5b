// SPDX-License-Identifier: Apache-2.0
// How a rank becomes a member of a communicator: it meets the others, proves
// that they share memory, and builds its board. A value handed to the
// communicator; whoever holds it must retire it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "bootstrap/unique_id.h"
#include "comm/process.h"

namespace axon {

struct Membership {
  std::unique_ptr<Board> board;
  std::vector<Link*> links;        // by rank; null: this process
  std::vector<std::byte*> memory;  // of this rank in the arena
  int usable_cpus = 1;             // of all the ranks together
};

// Whether a communicator may have so many.
absl::Status CheckRanks(int ranks);

// Meets the other ranks at `id`. Errors name who is missing or differs.
absl::StatusOr<Membership> Join(Process& process, const UniqueId& id, int rank,
                                int ranks, const std::string& name,
                                int64_t timeout_ms);

// What one rank tells another about its part in a new communicator.
struct Seat {
  uint64_t block = 0;  // its offset in the rank's arena
};
// Reserves and fills this rank's block.
absl::StatusOr<std::byte*> MakeBlock(Process& process, int rank, int ranks,
                                     const std::string& name);
// Ends this rank's part in a creation that failed after its peers had learned
// of the block: some may have a communicator by now. They are told, and since
// they may write into the block for as long as they live, it is never reused.
void GiveUpBlock(std::byte* memory);
// The board of the ranks in `seats`. `links` by rank, each counted for the
// board.
absl::StatusOr<std::unique_ptr<Board>> MakeBoard(
    Process& process, int rank, absl::Span<const Seat> seats,
    const std::vector<Link*>& links);

}  // namespace axon
