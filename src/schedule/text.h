// SPDX-License-Identifier: Apache-2.0
// Schedules as text that people read, compare and write. A set of schedules is
// one section for each rank, ranks ascending from 0; '#' begins a comment:
//
//   rank 0 cuts 2 scratch 0
//   send 1 in[1:2]
//   reduce_all {1} in[0:1] -> out[0:1] completes
//   publish {1} out[0:1]
//   recv 1 -> out[1:2]
//
// out[1:2] are the pieces of `out` from 1 up to, not including, 2. The other
// operations are recv_reduce, copy and reduce. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "schedule/schedule.h"

namespace axon {

std::string OpText(const Schedule& schedule, const Op& op);
std::string SchedulesText(absl::Span<const Schedule> schedules);

// Reads what SchedulesText wrote, equal; errors name the line. Whether the
// schedules make sense is the checker's to say.
absl::StatusOr<std::vector<Schedule>> ParseSchedules(absl::string_view text);

}  // namespace axon
