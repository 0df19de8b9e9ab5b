// SPDX-License-Identifier: Apache-2.0
// Passes file descriptors around among processes of one machine, over a Unix
// socket at which the first of them, the leader, listens for as long as the
// exchange lasts. The caller spreads the listener's address and secret
// beforehand (Bootstrap::AllGather). Owned and used by one thread at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/fd.h"
#include "bootstrap/local_listener.h"

namespace axon {

constexpr int kMaxParticipants = 4096;
constexpr int kMaxFdsEach = 1024;

struct LocalExchangeOptions {
  int index = 0;  // of this participant; 0 is the leader
  int count = 1;
  std::string address;  // of the leader's listener
  std::string secret;
  Deadline deadline;
  // Of the participants, for texts; may be empty.
  std::vector<std::string> names;
  // Asked now and then while it waits; an error ends the exchange. For those
  // who die before they come here. May be null.
  std::function<absl::Status()> look;
};

// Gives `mine` to all and returns everybody's: result[i][j] is participant i's
// j-th descriptor (a new one, closed on exec). Participants may give unequal
// numbers. `listener` is the leader's; null for the others. Errors name the
// participant: Unavailable (it ended), DeadlineExceeded (it did not come).
absl::StatusOr<std::vector<std::vector<Fd>>> ExchangeFds(
    const LocalExchangeOptions& options, absl::Span<const int> mine,
    LocalListener* listener);

}  // namespace axon
