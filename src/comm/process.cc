// SPDX-License-Identifier: Apache-2.0
#include "comm/process.h"

#include <fcntl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/status.h"
#include "bootstrap/host_identity.h"

namespace axon {
namespace {

// Address space for the arena where the settings leave it open: as much as the
// machine has memory. Only what is reserved later costs anything.
size_t DefaultArenaSize() {
  struct sysinfo info {};
  sysinfo(&info);
  const uint64_t memory = static_cast<uint64_t>(info.totalram) * info.mem_unit;
  return std::bit_ceil(std::max<uint64_t>(memory, uint64_t{1} << 30));
}

absl::StatusOr<std::unique_ptr<Arena>> CreateArena(const Settings& settings,
                                                   const char uid[16]) {
  const size_t size = settings.arena_size > 0
                          ? static_cast<size_t>(settings.arena_size)
                          : DefaultArenaSize();
  if (settings.shm != "file") {
    auto arena = Arena::Create(ShmKind::kMemfd, "", size, uid);
    if (arena.ok() || settings.shm == "memfd") return arena;
    Log(LogLevel::kInfo, "no memory file (%s): using files in %s",
        std::string(arena.status().message()), settings.shm_dir);
  }
  return Arena::Create(ShmKind::kFile, settings.shm_dir, size, uid);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Process>> Process::Create(Settings settings) {
  ASSIGN_OR_RETURN(std::string uid, NewProcessUid());
  std::unique_ptr<Process> process(new Process(std::move(settings), uid));
  // Half of the 128 bits stand in the arena's header: enough to tell a mix-up.
  ASSIGN_OR_RETURN(process->arena_,
                   CreateArena(process->settings_, uid.data()));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError("pipe");
  process->life_read_ = Fd(ends[0]);
  process->life_write_ = Fd(ends[1]);
  process->cpus_ = AllowedCpus();
  process->core_ = std::make_unique<Core>(process->doorbell());
  RegisterForHeavyFence();
  return process;
}

void Process::Retire(Remains remains) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    remains_.push_back(std::move(remains));
  }
  Sweep();
}

bool Process::Abandoned(const Remains& remains) const {
  for (int q = 0; q < remains.board->ranks(); ++q) {
    if (remains.board->HasLeft(q)) continue;
    const Link* link = remains.links[static_cast<size_t>(q)];
    if (link == nullptr || !link->Dead()) return false;
  }
  return true;
}

void Process::Free(Remains& remains) {
  for (std::byte* p : remains.memory) arena_->Free(p);
  for (Link* link : remains.links) {
    if (link != nullptr) links_.Release(link);
  }
}

void Process::Sweep() {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto kept =
      std::partition(remains_.begin(), remains_.end(),
                     [this](const Remains& r) { return !Abandoned(r); });
  std::for_each(kept, remains_.end(), [this](Remains& r) { Free(r); });
  remains_.erase(kept, remains_.end());
}

}  // namespace axon
