// SPDX-License-Identifier: Apache-2.0
// What the launcher of a job says about this process: its rank, how many there
// are, and where to meet. A plain value; reads the environment only through the
// function it is given.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/settings.h"

namespace axon {

struct Launch {
  int rank = 0;
  int size = 1;
  int local_rank = -1;  // among the processes of this machine; -1: unknown
  int local_size = -1;
  std::string place;   // host:port; empty only where size is 1
  std::string source;  // "AXON_RANK", "Open MPI", …: for texts
};

// As getenv.
using Lookup = std::function<const char*(const char* name)>;

// Rank and size from AXON_RANK and AXON_SIZE, else from torchrun (where it is
// known to be the launcher), Open MPI, PMI, PMIx, Slurm, or RANK and
// WORLD_SIZE; the place from AXON_COMM_ID, else MASTER_ADDR and MASTER_PORT
// + 1.
absl::StatusOr<Launch> ReadLaunch(const Settings& settings,
                                  const Lookup& lookup);

}  // namespace axon
