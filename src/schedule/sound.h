// SPDX-License-Identifier: Apache-2.0
// What can be said of schedules without running them: the checker looks at this
// first and relies on it. Pure functions.
#pragma once

#include "absl/status/status.h"
#include "base/types.h"
#include "schedule/check.h"
#include "schedule/memory.h"
#include "schedule/schedule.h"

namespace axon {

// Sizes, root and cuts of a call on `ranks` ranks.
absl::Status Sound(const Call& call, size_t ranks);

// What is wrong with an operation of rank `me`, or null: peers that are no
// ranks, pieces out of range, sizes that differ, writing `in`, …
const char* Flaw(Collective collective, int me, int ranks,
                 const Schedule& schedule, const Op& op, const Memory& memory);

}  // namespace axon
