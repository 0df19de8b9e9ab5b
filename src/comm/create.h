// SPDX-License-Identifier: Apache-2.0
// Where communicators come from: an id, the environment. Any thread.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "bootstrap/launch_env.h"
#include "bootstrap/unique_id.h"
#include "comm/communicator.h"

namespace axon {

// An id whose meeting is served by this process, or that of AXON_COMM_ID.
absl::StatusOr<UniqueId> NewUniqueId(Process& process);

// Meets the other ranks; collective. A name is made up if config has none.
absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(
    Process& process, const UniqueId& id, int rank, int ranks,
    CommConfig config);

// Where the launcher puts this process.
struct LaunchPlace {
  UniqueId id;
  int rank = 0;
  int size = 1;
};
absl::StatusOr<LaunchPlace> PlaceFromEnvironment(Process& process,
                                                 const Lookup& lookup);

}  // namespace axon
