// SPDX-License-Identifier: Apache-2.0
// Where a call goes after its arguments were checked: it is run at once, queued
// on a stream, or kept until the thread's outermost group ends.
#pragma once

#include <functional>
#include <memory>

#include "api/handles.h"
#include "comm/tasks.h"

namespace axon {

// What every call asks about its thread. Initial-exec, so that asking costs two
// instructions and no call; so small that a library opened late has room for
// it.
struct CallState {
  int depth = 0;                 // of open groups
  int64_t next_timeout_ms = -1;  // see TakeCallTimeout
};
[[gnu::tls_model(
    "initial-exec")]] extern constinit thread_local CallState call_state;

// True between GroupStart and GroupEnd on this thread.
inline bool InGroup() { return call_state.depth > 0; }
// Whether it may be destroyed: no call that this thread's group holds needs it.
absl::Status CheckUnused(const axonComm* comm);
absl::Status CheckUnused(const axonStream* stream);
// Forgets the calls on an aborted communicator in this thread's open group.
void DropFromGroup(const axonComm* comm);
// The limit that axonSetCallTimeout set for this thread's next call, -1: none.
// Taken once, or once a group.
int64_t TakeCallTimeout();

// The result of a call whose arguments were refused. It uses up the limit that
// was set for it.
axonResult_t Refuse(const absl::Status& status, axonComm* comm = nullptr);

// The caller is Inside(*comm).
axonResult_t Submit(axonComm* comm, CollectiveArgs args, axonStream* stream);
// Whether a call of this thread may go the short way: it is neither in a group
// nor has a limit of its own.
inline bool MayGoShortWay() {
  return !InGroup() && call_state.next_timeout_ms < 0;
}
// Waits for the end of a call that goes the short way and stands at `poll`.
axonResult_t EndQuickly(axonComm& comm, const Recipe& recipe, Poll poll);
axonResult_t Submit(axonComm* comm, absl::Span<const MessageArgs> messages,
                    axonStream* stream);
// Creation of a communicator: at once, or on a thread of its own at GroupEnd;
// those that are splits of one parent follow each other. `parent` may be null.
axonResult_t SubmitInit(axonComm* parent, std::function<absl::Status()> init);

}  // namespace axon
