// SPDX-License-Identifier: Apache-2.0
// Hands the unique id from the first to the other processes of a job on one
// machine, if a launcher (mpirun, srun) started them and nobody says where to
// meet: over a Unix socket in the abstract namespace, so that nothing remains
// on disk however the processes end. Called once per process, before any thread
// is started.
#pragma once

#include <string>

#include "axon/axon.h"

namespace axon::perf {

// What the processes of this job have in common and other jobs have not: the
// launcher's name for it, else the process that started them.
std::string JobKey();

// Process 0 of `processes` gives *id to the others, which receive it there.
// Throws Failure when `seconds` have passed.
void ShareUniqueId(const std::string& job_key, int process, int processes,
                   int seconds, axonUniqueId* id);

}  // namespace axon::perf
