// SPDX-License-Identifier: Apache-2.0
// What all communicators of a process share: settings, the shared-memory arena,
// the links to peer processes, the collective core, the rendezvous server, and
// the memory of communicators that are gone but may still be looked at by a
// peer. One per process, made at the first use and never destroyed, since its
// threads run to the end of the process. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/settings.h"
#include "bootstrap/rendezvous.h"
#include "comm/links.h"
#include "engine/core.h"
#include "transport/board.h"
#include "transport/shm/arena.h"

namespace axon {

class Process {
 public:
  static absl::StatusOr<std::unique_ptr<Process>> Create(Settings settings);

  const Settings& settings() const { return settings_; }
  const std::string& uid() const { return uid_; }
  Arena& arena() { return *arena_; }
  Links& links() { return links_; }
  Core& core() { return *core_; }
  Rendezvous& rendezvous() { return rendezvous_; }
  Doorbell& doorbell() { return arena_->header().doorbell; }
  int life() const { return life_read_.get(); }
  const std::vector<int>& cpus() const { return cpus_; }

  // In a child of fork: closes what would keep the parent looking alive, and
  // lets go of the shared memory, which the child may read and write as fork
  // lets it with any memory.
  void CloseInChild() {
    life_write_.Close();
    arena_->MakePrivate();
  }

  // The memory of a communicator that this process has left. It is freed when
  // every peer has left too, or has died: until then a stopped peer may wake up
  // and write into it.
  struct Remains {
    std::unique_ptr<Board> board;
    std::vector<Link*> links;        // by rank; null: this process
    std::vector<std::byte*> memory;  // of the arena
  };
  void Retire(Remains remains);
  // Frees what can be freed.
  void Sweep();

 private:
  Process(Settings settings, std::string uid)
      : settings_(std::move(settings)), uid_(std::move(uid)) {}
  bool Abandoned(const Remains& remains) const;
  void Free(Remains& remains);

  const Settings settings_;
  const std::string uid_;
  std::vector<int> cpus_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Core> core_;
  Links links_;
  Rendezvous rendezvous_;
  Fd life_read_, life_write_;
  std::mutex mutex_;  // guards what follows
  std::vector<Remains> remains_;
};

}  // namespace axon
