// SPDX-License-Identifier: Apache-2.0
#include "api/group.h"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "api/result.h"

namespace axon {
namespace {

// A call that waits for GroupEnd.
struct Pending {
  axonComm* comm;
  axonStream* stream;  // null: done when GroupEnd returns
  std::unique_ptr<CallTask> task;
  MessagesTask* messages;  // the same task, if it is one
};

// A communicator that waits for GroupEnd to be created.
struct Init {
  axonComm* parent;  // of a split; else null
  std::function<absl::Status()> create;
};

struct OpenGroup {
  int64_t timeout_ms = -1;
  std::vector<Pending> calls;
  std::vector<Init> inits;

  OpenGroup() = default;
  OpenGroup(OpenGroup&&) = default;
  OpenGroup& operator=(OpenGroup&&) = default;
  // The thread has ended and left calls that have their places in the order of
  // their communicators. In a child of fork they are the parent's.
  ~OpenGroup() {
    if (InForkedChild()) return;
    for (const Pending& call : calls) {
      Communicator& comm = call.task->comm();
      comm.board().Fail(absl::FailedPreconditionError(absl::StrFormat(
          "a thread of %s ended with calls on communicator '%s' in an open "
          "group: call axonGroupEnd before it ends",
          comm.board().Describe(comm.rank()), comm.name())));
    }
  }
};

// Of its own thread: groups are per thread.
thread_local OpenGroup group;

// Those that must not run side by side, in order.
std::vector<std::vector<Init>> SortedByParent(std::vector<Init> inits) {
  std::vector<std::vector<Init>> sorted;
  for (Init& init : inits) {
    const auto same = std::find_if(
        sorted.begin(), sorted.end(), [&](const std::vector<Init>& others) {
          return init.parent != nullptr && others[0].parent == init.parent;
        });
    if (same != sorted.end()) {
      same->push_back(std::move(init));
    } else {
      sorted.emplace_back().push_back(std::move(init));
    }
  }
  return sorted;
}

absl::Status RunInits(std::vector<Init> inits) {
  const auto sorted = SortedByParent(std::move(inits));
  std::vector<absl::Status> results(sorted.size());
  const auto run = [&](size_t i) {
    for (const Init& init : sorted[i]) results[i].Update(init.create());
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < sorted.size(); ++i) threads.emplace_back(run, i);
  if (!sorted.empty()) run(0);
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) {
    if (!result.ok()) return result;
  }
  return absl::OkStatus();
}

// Queues what has a stream, runs the rest together.
axonResult_t Launch(std::vector<Pending> calls) {
  std::vector<CallTask*> here;
  std::vector<std::unique_ptr<Inside>> inside;
  for (Pending& call : calls) {
    if (call.stream != nullptr) {
      call.comm->comm->process().core().Enqueue(call.stream->stream,
                                                std::move(call.task));
    } else {
      inside.push_back(std::make_unique<Inside>(*call.comm));
      here.push_back(call.task.get());
    }
  }
  const absl::Status first_error = RunBlocking(here);
  for (const Pending& call : calls) {
    if (call.task == nullptr || call.task->status().ok()) continue;
    call.comm->SetLastError(std::string(call.task->status().message()));
  }
  return ToResult(first_error);
}

// Said when the second kind comes: a call that is in the group already has its
// place in the communicator's order and must run.
absl::Status MixedGroup() {
  return absl::FailedPreconditionError(
      "a group creates communicators or makes calls, not both");
}

// A group is one call for timeouts.
int64_t TimeoutOfThisCall() {
  if (call_state.depth == 0) return TakeCallTimeout();
  if (group.timeout_ms < 0) group.timeout_ms = TakeCallTimeout();
  return group.timeout_ms;
}

}  // namespace

constinit thread_local CallState call_state;

absl::Status CheckUnused(const axonComm* comm) {
  const bool used =
      std::any_of(group.calls.begin(), group.calls.end(),
                  [&](const Pending& call) { return call.comm == comm; }) ||
      std::any_of(group.inits.begin(), group.inits.end(),
                  [&](const Init& init) { return init.parent == comm; });
  if (!used) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "communicator '%s' has calls in this thread's open group: end the group "
      "first",
      comm->comm->name()));
}

absl::Status CheckUnused(const axonStream* stream) {
  for (const Pending& call : group.calls) {
    if (call.stream == stream) {
      return absl::FailedPreconditionError(
          "the stream has calls in this thread's open group: end the group "
          "first");
    }
  }
  return absl::OkStatus();
}

void DropFromGroup(const axonComm* comm) {
  std::vector<Pending>& calls = group.calls;
  calls.erase(
      std::remove_if(calls.begin(), calls.end(),
                     [&](const Pending& call) { return call.comm == comm; }),
      calls.end());
  std::vector<Init>& inits = group.inits;
  inits.erase(
      std::remove_if(inits.begin(), inits.end(),
                     [&](const Init& init) { return init.parent == comm; }),
      inits.end());
}

int64_t TakeCallTimeout() {
  return std::exchange(call_state.next_timeout_ms, -1);
}

axonResult_t Refuse(const absl::Status& status, axonComm* comm) {
  TimeoutOfThisCall();
  return ToResult(status, comm);
}

axonResult_t Submit(axonComm* comm, CollectiveArgs args, axonStream* stream) {
  if (!group.inits.empty()) return ToResult(MixedGroup(), comm);
  const int64_t timeout_ms = TimeoutOfThisCall();
  if (!InGroup() && stream == nullptr) {
    CollectiveTask task(*comm->comm, std::move(args), timeout_ms);
    return ToResult(RunBlocking(task), comm);
  }
  auto task = std::make_unique<CollectiveTask>(*comm->comm, std::move(args),
                                               timeout_ms);
  if (InGroup()) {
    group.calls.push_back({comm, stream, std::move(task), nullptr});
  } else {
    comm->comm->process().core().Enqueue(stream->stream, std::move(task));
  }
  return axonSuccess;
}

axonResult_t EndQuickly(axonComm& comm, const Recipe& recipe, Poll poll) {
  const Communicator::Started started = comm.comm->StepQuickly(recipe, poll);
  if (started.work == nullptr) return axonSuccess;
  CollectiveTask task(*comm.comm, started);
  return ToResult(RunBlocking(task), &comm);
}

axonResult_t Submit(axonComm* comm, absl::Span<const MessageArgs> messages,
                    axonStream* stream) {
  if (!group.inits.empty()) return ToResult(MixedGroup(), comm);
  const int64_t timeout_ms = TimeoutOfThisCall();
  if (InGroup()) {
    for (Pending& call : group.calls) {
      if (call.comm != comm || call.stream != stream ||
          call.messages == nullptr) {
        continue;
      }
      for (const MessageArgs& message : messages) call.messages->Add(message);
      return axonSuccess;
    }
  }
  auto task = std::make_unique<MessagesTask>(*comm->comm, messages, timeout_ms);
  if (InGroup()) {
    MessagesTask* const raw = task.get();
    group.calls.push_back({comm, stream, std::move(task), raw});
    return axonSuccess;
  }
  if (stream != nullptr) {
    comm->comm->process().core().Enqueue(stream->stream, std::move(task));
    return axonSuccess;
  }
  return ToResult(RunBlocking(*task), comm);
}

axonResult_t SubmitInit(axonComm* parent,
                        std::function<absl::Status()> create) {
  if (!InGroup()) return ToResult(create(), parent);
  if (!group.calls.empty()) return ToResult(MixedGroup(), parent);
  group.inits.push_back({parent, std::move(create)});
  return axonSuccess;
}

}  // namespace axon

axonResult_t axonGroupStart() noexcept {
  ++axon::call_state.depth;
  return axonSuccess;
}

axonResult_t axonGroupEnd() noexcept {
  int& depth = axon::call_state.depth;
  if (depth == 0) {
    return axon::ToResult(absl::FailedPreconditionError(
        "axonGroupEnd without axonGroupStart on this thread"));
  }
  if (--depth > 0) return axonSuccess;
  auto ended = std::exchange(axon::group, {});
  if (axon::InForkedChild()) {
    return axon::ToResult(axon::TheProcess().status());
  }
  if (absl::Status status = axon::RunInits(std::move(ended.inits));
      !status.ok()) {
    return axon::ToResult(status);
  }
  return axon::Launch(std::move(ended.calls));
}

axonResult_t axonSetCallTimeout(int milliseconds) noexcept {
  if (milliseconds < 0) {
    return axon::ToResult(absl::InvalidArgumentError(
        "a timeout is at least 0 milliseconds (0 means none)"));
  }
  axon::call_state.next_timeout_ms = milliseconds;
  return axonSuccess;
}
