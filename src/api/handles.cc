// SPDX-License-Identifier: Apache-2.0
#include "api/handles.h"

#include <pthread.h>

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/log.h"
#include "base/status.h"

namespace axon {

constinit std::atomic<bool> forked{false};

namespace {

// The process once it exists; release and acquire: its contents.
std::atomic<Process*> process_made{nullptr};

void AfterForkInChild() {
  // Once: what a child of the child inherits is the child's own already.
  if (forked.exchange(true, std::memory_order_relaxed)) return;
  process_made.load(std::memory_order_acquire)->CloseInChild();
}

// The communicators that can be Held, and by how many.
struct Handles {
  struct State {
    int holders = 0;
    bool ended = false;
  };
  std::mutex mutex;  // guards what follows
  absl::flat_hash_map<axonComm*, State> comms;
};

Handles& AllHandles() {
  static auto* const handles = new Handles();
  return *handles;
}

absl::Status NotLive() {
  return absl::InvalidArgumentError(
      "the communicator is not a live one (destroyed, aborted or not made by "
      "Axon)");
}

LogLevel LevelOf(const std::string& text) {
  if (text == "none") return LogLevel::kNone;
  if (text == "error") return LogLevel::kError;
  if (text == "info") return LogLevel::kInfo;
  if (text == "debug") return LogLevel::kDebug;
  return LogLevel::kWarn;
}

absl::StatusOr<Process*> MakeProcess() {
  std::vector<std::string> warnings;
  ASSIGN_OR_RETURN(Settings settings,
                   ReadSettings(ProcessEnvironment(), &warnings));
  SetLogLevel(LevelOf(settings.log));
  for (const std::string& warning : warnings) {
    LogLine(LogLevel::kWarn, warning);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Process> process,
                   Process::Create(std::move(settings)));
  process_made.store(process.get(), std::memory_order_release);
  pthread_atfork(nullptr, nullptr, AfterForkInChild);
  // Its threads run to the end of the process, and so does it.
  return process.release();
}

}  // namespace

absl::StatusOr<Process*> TheProcess() {
  if (InForkedChild()) {
    return absl::FailedPreconditionError(
        "this process is a child of fork() of one that uses Axon; only the "
        "parent may go on using it (exec, or start workers with spawn)");
  }
  static const absl::StatusOr<Process*>* const process =
      new absl::StatusOr<Process*>(MakeProcess());
  return *process;
}

absl::Status CheckHandle(const axonComm* comm) {
  if (InForkedChild()) return TheProcess().status();
  if (comm == nullptr) {
    return absl::InvalidArgumentError("the communicator is NULL");
  }
  return IsHandle(comm) ? absl::OkStatus() : NotLive();
}

Held::Held(axonComm* comm) : comm_(comm) {
  if (InForkedChild() || comm == nullptr) {
    status_ = CheckHandle(comm);
    return;
  }
  Handles& handles = AllHandles();
  std::lock_guard<std::mutex> lock(handles.mutex);
  const auto found = handles.comms.find(comm);
  if (found == handles.comms.end() || found->second.ended) {
    status_ = NotLive();
  } else {
    ++found->second.holders;
  }
}

Held::~Held() {
  if (!status_.ok()) return;
  Handles& handles = AllHandles();
  {
    std::lock_guard<std::mutex> lock(handles.mutex);
    const auto found = handles.comms.find(comm_);
    if (--found->second.holders > 0 || !found->second.ended) return;
    handles.comms.erase(found);
  }
  comm_->magic = 0;
  delete comm_;
}

void Held::End() {
  Handles& handles = AllHandles();
  std::lock_guard<std::mutex> lock(handles.mutex);
  handles.comms.find(comm_)->second.ended = true;
}

axonComm* NewHandle(std::unique_ptr<Communicator> comm) {
  auto* const handle = new axonComm();
  handle->comm = std::move(comm);
  Handles& handles = AllHandles();
  std::lock_guard<std::mutex> lock(handles.mutex);
  handles.comms[handle];
  return handle;
}

absl::Status CheckHandle(const axonStream* stream) {
  if (InForkedChild()) return TheProcess().status();
  if (IsHandle(stream)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      stream == nullptr ? "the stream is NULL"
                        : "the stream is not one of axonStreamCreate");
}

absl::Status CheckHandle(const axonEvent* event) {
  if (InForkedChild()) return TheProcess().status();
  if (IsHandle(event)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      event == nullptr ? "the event is NULL"
                       : "the event is not one of axonEventCreate");
}

}  // namespace axon
