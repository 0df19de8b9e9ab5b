// SPDX-License-Identifier: Apache-2.0
// Binds schedules to a board: pairs sends with receives, gives messages places
// in outboxes, joins a reduction (or receive) with the send of its result, and
// turns dependencies into counts. Pure; any thread.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "engine/plan.h"
#include "schedule/schedule.h"

namespace axon {

// The plan of rank `me`; `all` has every rank's schedule. `pipelined` puts
// operations in stages; else every operation is in stage 0 and one slice is
// finished before the next begins.
absl::StatusOr<Plan> Bind(const std::vector<Schedule>& all, int me,
                          bool pipelined);

}  // namespace axon
