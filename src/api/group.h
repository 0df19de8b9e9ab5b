// SPDX-License-Identifier: Apache-2.0
// Where a call goes after its arguments were checked: it is run at once, queued
// on a stream, or kept until the thread's outermost group ends.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "api/handles.h"
#include "comm/tasks.h"

namespace axon {

// True between GroupStart and GroupEnd on this thread.
bool InGroup();
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
// A blocking collective that goes the short way: not in a group, without a
// limit of its own, of a shape that the communicator has seen. Nullopt: it
// cannot, and nothing was done. `comm` is a live handle.
std::optional<axonResult_t> SubmitQuickly(axonComm& comm,
                                          const CallShape& shape,
                                          const void* in, void* out);
axonResult_t Submit(axonComm* comm, absl::Span<const MessageArgs> messages,
                    axonStream* stream);
// Creation of a communicator: at once, or on a thread of its own at GroupEnd.
axonResult_t SubmitInit(std::function<absl::Status()> init);

}  // namespace axon
