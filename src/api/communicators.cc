// SPDX-License-Identifier: Apache-2.0
// Creation, queries and the end of communicators.
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "api/group.h"
#include "api/handles.h"
#include "api/result.h"
#include "axon/axon.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/version.h"
#include "comm/create.h"
#include "comm/membership.h"

namespace axon {
namespace {

static_assert(kVersionCode == AXON_VERSION_CODE);

// The caller's config, of whatever version, over `defaults`.
absl::StatusOr<CommConfig> ReadConfig(const axonConfig_t* config,
                                      CommConfig defaults) {
  if (config == nullptr) return defaults;
  axonConfig_t c = AXON_CONFIG_INITIALIZER;
  std::memcpy(&c, config, std::min(sizeof(c), config->size));
  if (config->size < offsetof(axonConfig_t, blocking) ||
      c.magic != AXON_CONFIG_MAGIC) {
    return absl::InvalidArgumentError(
        "the config was not initialised with AXON_CONFIG_INITIALIZER");
  }
  if (c.blocking != AXON_CONFIG_UNDEF_INT && c.blocking != 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "config.blocking is %d; only 1 is supported (creation blocks; calls on "
        "streams do not)",
        c.blocking));
  }
  if (c.timeoutMs != AXON_CONFIG_UNDEF_INT) {
    if (c.timeoutMs < 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "config.timeoutMs is %d; it is at least 0 (0 means none)",
          c.timeoutMs));
    }
    defaults.timeout_ms = defaults.init_timeout_ms = c.timeoutMs;
  }
  if (c.commName != nullptr) defaults.name = c.commName;
  return defaults;
}

CommConfig Defaults(const Process& process) {
  return {"", process.settings().timeout_ms,
          process.settings().init_timeout_ms};
}

void Give(axonComm_t* to, std::unique_ptr<Communicator> comm) {
  *to = NewHandle(std::move(comm));
}

absl::Status Init(axonComm_t* comm, int nranks, const UniqueId& id, int rank,
                  Process& process, CommConfig config) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<Communicator> made,
      CreateCommunicator(process, id, rank, nranks, std::move(config)));
  Give(comm, std::move(made));
  return absl::OkStatus();
}

// May run on another thread than the one that uses `comm`, in its stead.
absl::Status Split(axonComm& comm, int color, int key, axonComm_t* newcomm,
                   CommConfig config) {
  Inside inside(comm);
  auto made = comm.comm->Split(color, key, std::move(config));
  if (!made.ok()) {
    comm.SetLastError(std::string(made.status().message()));
    return made.status();
  }
  if (*made != nullptr) Give(newcomm, *std::move(made));
  return absl::OkStatus();
}

absl::Status CheckPlace(const void* out, int nranks, int rank) {
  if (out == nullptr) return absl::InvalidArgumentError("comm is NULL");
  if (nranks < 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("nranks is %d; it is at least 1", nranks));
  }
  RETURN_IF_ERROR(CheckRanks(nranks));
  if (rank < 0 || rank >= nranks) {
    return absl::InvalidArgumentError(
        absl::StrFormat("rank %d is not one of 0 to %d", rank, nranks - 1));
  }
  return absl::OkStatus();
}

axonResult_t InitRank(axonComm_t* comm, int nranks, const axonUniqueId& id,
                      int rank, const axonConfig_t* config) {
  if (absl::Status status = CheckPlace(comm, nranks, rank); !status.ok()) {
    return ToResult(status);
  }
  *comm = nullptr;
  const absl::StatusOr<Process*> process = TheProcess();
  if (!process.ok()) return ToResult(process.status());
  const absl::StatusOr<UniqueId> unpacked =
      UnpackUniqueId({id.internal, sizeof(id.internal)});
  if (!unpacked.ok()) return ToResult(unpacked.status());
  absl::StatusOr<CommConfig> read = ReadConfig(config, Defaults(**process));
  if (!read.ok()) return ToResult(read.status());
  return SubmitInit(nullptr, [comm, nranks, id = *unpacked, rank, p = *process,
                              c = *std::move(read)] {
    return Init(comm, nranks, id, rank, *p, c);
  });
}

// Nobody is inside and nothing is queued. In this order: who is inside may
// queue.
bool IsIdle(const axonComm& comm) {
  return comm.inside.load(std::memory_order_acquire) == 0 && comm.comm->Idle();
}

void WaitIdle(const axonComm& comm) {
  comm.comm->process().core().WaitUntil([&] { return IsIdle(comm); });
}

// After an abort: whether it has become idle in time.
bool WaitAborted(const axonComm& comm, int64_t limit_ms) {
  const Deadline deadline = Deadline::In(limit_ms);
  Core& core = comm.comm->process().core();
  bool idle = false;
  core.WaitUntil([&] {
    // What waits behind calls of others would wait as long as they do.
    core.LetGo(comm.comm.get());
    idle = IsIdle(comm);
    return idle || deadline.passed();
  });
  return idle;
}

}  // namespace
}  // namespace axon

using axon::CheckHandle;
using axon::TheProcess;
using axon::ToResult;

axonResult_t axonGetUniqueId(axonUniqueId* id) noexcept {
  if (id == nullptr) {
    return ToResult(absl::InvalidArgumentError("id is NULL"));
  }
  const auto process = TheProcess();
  if (!process.ok()) return ToResult(process.status());
  const auto made = axon::NewUniqueId(**process);
  if (!made.ok()) return ToResult(made.status());
  const std::string bytes = axon::PackUniqueId(*made);
  std::memcpy(id->internal, bytes.data(), sizeof(id->internal));
  return axonSuccess;
}

axonResult_t axonCommInitRank(axonComm_t* comm, int nranks, axonUniqueId id,
                              int rank) noexcept {
  return axon::InitRank(comm, nranks, id, rank, nullptr);
}

axonResult_t axonCommInitRankConfig(axonComm_t* comm, int nranks,
                                    axonUniqueId id, int rank,
                                    axonConfig_t* config) noexcept {
  return axon::InitRank(comm, nranks, id, rank, config);
}

axonResult_t axonCommInitAll(axonComm_t* comms, int ndev,
                             const int* devlist) noexcept {
  (void)devlist;
  if (auto status = axon::CheckPlace(comms, ndev, 0); !status.ok()) {
    return ToResult(status);
  }
  axonUniqueId id;
  axonResult_t result = axonGetUniqueId(&id);
  if (result != axonSuccess) return result;
  // A group of its own: the ranks meet on threads.
  axonGroupStart();
  for (int r = 0; r < ndev && result == axonSuccess; ++r) {
    result = axonCommInitRank(&comms[r], ndev, id, r);
  }
  const axonResult_t ended = axonGroupEnd();
  return result != axonSuccess ? result : ended;
}

axonResult_t axonCommInitEnv(axonComm_t* comm, axonConfig_t* config) noexcept {
  if (comm == nullptr) {
    return ToResult(absl::InvalidArgumentError("comm is NULL"));
  }
  const auto process = TheProcess();
  if (!process.ok()) return ToResult(process.status());
  const auto place = axon::PlaceFromEnvironment(**process, getenv);
  if (!place.ok()) return ToResult(place.status());
  auto read = axon::ReadConfig(config, axon::Defaults(**process));
  if (!read.ok()) return ToResult(read.status());
  *comm = nullptr;
  return axon::SubmitInit(
      nullptr, [comm, place = *place, p = *process, c = *std::move(read)] {
        return axon::Init(comm, place.size, place.id, place.rank, *p, c);
      });
}

axonResult_t axonCommSplit(axonComm_t comm, int color, int key,
                           axonComm_t* newcomm, axonConfig_t* config) noexcept {
  const int64_t limit_ms = axon::TakeCallTimeout();
  absl::Status status = CheckHandle(comm);
  if (!status.ok()) return ToResult(status);
  axon::Inside inside(*comm);
  if (newcomm == nullptr) {
    status = absl::InvalidArgumentError("newcomm is NULL");
  } else if (color < 0 && color != AXON_SPLIT_NOCOLOR) {
    status = absl::InvalidArgumentError(absl::StrFormat(
        "color %d is neither at least 0 nor AXON_SPLIT_NOCOLOR (-1)", color));
  }
  if (!status.ok()) return ToResult(status, comm);
  *newcomm = nullptr;
  const int64_t parents_ms = comm->comm->timeout_ms();
  auto read = axon::ReadConfig(config, {"", parents_ms, parents_ms});
  if (!read.ok()) return ToResult(read.status(), comm);
  if (limit_ms >= 0) read->init_timeout_ms = limit_ms;
  return axon::SubmitInit(comm, [=, c = *std::move(read)] {
    return axon::Split(*comm, color, key, newcomm, c);
  });
}

axonResult_t axonCommFinalize(axonComm_t comm) noexcept {
  axon::Held held(comm);
  if (!held.status().ok()) return ToResult(held.status());
  if (auto status = axon::CheckUnused(comm); !status.ok()) {
    return ToResult(status, comm);
  }
  axon::WaitIdle(*comm);
  return ToResult(comm->comm->status(), comm);
}

axonResult_t axonCommDestroy(axonComm_t comm) noexcept {
  if (comm == nullptr) return axonSuccess;
  axon::Held held(comm);
  if (!held.status().ok()) return ToResult(held.status());
  if (auto status = axon::CheckUnused(comm); !status.ok()) {
    return ToResult(status, comm);
  }
  axon::WaitIdle(*comm);
  held.End();
  return axonSuccess;
}

axonResult_t axonCommAbort(axonComm_t comm) noexcept {
  if (comm == nullptr) return axonSuccess;
  axon::Held held(comm);
  if (!held.status().ok()) return ToResult(held.status());
  comm->comm->Abort();
  axon::HeavyFence();  // see Inside
  axon::DropFromGroup(comm);
  constexpr int64_t kLimitMs = 900;
  if (!axon::WaitAborted(*comm, kLimitMs)) {
    // Somebody is still inside, starved of a processor or with a group open: it
    // must not find freed memory.
    return ToResult(
        absl::FailedPreconditionError(absl::StrFormat(
            "communicator '%s' is stopped, but another thread has calls on it "
            "in an open group or did not leave it within %d ms; abort it again "
            "when that thread has ended its group or call",
            comm->comm->name(), kLimitMs)),
        comm);
  }
  held.End();
  return axonSuccess;
}

axonResult_t axonCommGetAsyncError(axonComm_t comm,
                                   axonResult_t* asyncError) noexcept {
  axon::Held held(comm);
  if (!held.status().ok()) return ToResult(held.status());
  if (asyncError == nullptr) {
    return ToResult(absl::InvalidArgumentError("asyncError is NULL"), comm);
  }
  absl::Status error;
  const axon::Poll poll = comm->comm->Query(&error);
  *asyncError =
      poll == axon::Poll::kPending ? axonInProgress : ToResult(error, comm);
  return axonSuccess;
}

axonResult_t axonCommCount(axonComm_t comm, int* count) noexcept {
  axon::Held held(comm);
  if (!held.status().ok()) return ToResult(held.status());
  if (count == nullptr) {
    return ToResult(absl::InvalidArgumentError("count is NULL"), comm);
  }
  *count = comm->comm->size();
  return axonSuccess;
}

axonResult_t axonCommUserRank(axonComm_t comm, int* rank) noexcept {
  axon::Held held(comm);
  if (!held.status().ok()) return ToResult(held.status());
  if (rank == nullptr) {
    return ToResult(absl::InvalidArgumentError("rank is NULL"), comm);
  }
  *rank = comm->comm->rank();
  return axonSuccess;
}

axonResult_t axonCommDump(axonComm_t comm, char* text, size_t size,
                          size_t* needed) noexcept {
  axon::Held held(comm);
  if (!held.status().ok()) return ToResult(held.status());
  if (text == nullptr && size > 0) {
    return ToResult(absl::InvalidArgumentError("text is NULL"), comm);
  }
  const std::string dump = comm->comm->Dump();
  if (needed != nullptr) *needed = dump.size() + 1;
  if (size > 0) {
    const size_t n = std::min(size - 1, dump.size());
    std::memcpy(text, dump.data(), n);
    text[n] = 0;
  }
  return axonSuccess;
}

axonResult_t axonCommSetTimeout(axonComm_t comm, int milliseconds) noexcept {
  axon::Held held(comm);
  if (!held.status().ok()) return ToResult(held.status());
  if (milliseconds < 0) {
    return ToResult(absl::InvalidArgumentError(absl::StrFormat(
                        "a timeout of %d ms: it is at least 0 (0 means none)",
                        milliseconds)),
                    comm);
  }
  comm->comm->SetTimeout(milliseconds);
  return axonSuccess;
}

axonResult_t axonCommRegister(axonComm_t comm, void* buff, size_t size,
                              void** handle) noexcept {
  axon::Held held(comm);
  if (!held.status().ok()) return ToResult(held.status());
  if (handle == nullptr || (buff == nullptr && size > 0)) {
    return ToResult(
        absl::InvalidArgumentError("buff and handle must not be NULL"), comm);
  }
  if (comm->comm->board().RefOf(buff, size) == 0) {
    axon::Log(axon::LogLevel::kInfo,
              "axonCommRegister of %u bytes at %p: ordinary memory cannot be "
              "mapped by peers; use axonMemAlloc",
              size, buff);
  }
  *handle = buff;
  return axonSuccess;
}

axonResult_t axonCommDeregister(axonComm_t comm, void* handle) noexcept {
  (void)handle;
  axon::Held held(comm);
  if (!held.status().ok()) return ToResult(held.status());
  return axonSuccess;
}
