// SPDX-License-Identifier: Apache-2.0
// One rank's membership in a communicator: the board it shares with the others,
// the plans of its calls, its channels, and the order of its calls. Made by
// Join, Split or CommInitAll, owned by the C handle.
//
// Calls are made by one thread at a time; they run on that thread or on the
// collective core, in the order in which they were made (collectives among each
// other; messages per peer and direction). Abort, Query and Dump may come from
// any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "comm/call_args.h"
#include "comm/membership.h"
#include "comm/plan_cache.h"
#include "comm/process.h"
#include "comm/recipe.h"
#include "engine/board_run.h"
#include "engine/board_view.h"
#include "engine/line_run.h"
#include "engine/turnstile.h"
#include "transport/channel.h"

namespace axon {

struct CommConfig {
  std::string name;             // empty: one is made up
  int64_t timeout_ms = 0;       // of calls; 0: none
  int64_t init_timeout_ms = 0;  // of the whole creation; 0: none
};

CallShape ShapeOf(const CollectiveArgs& args);

class Communicator {
 public:
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(
      Process& process, Membership membership, CommConfig config);
  // Collective. Null for ranks without a color.
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key,
                                                      CommConfig config);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return board_->me(); }
  int size() const { return board_->ranks(); }
  const std::string& name() const { return config_.name; }
  Process& process() { return process_; }
  Board& board() { return *board_; }
  const CommConfig& config() const { return config_; }

  void SetTimeout(int64_t ms) {
    timeout_ms_.store(ms, std::memory_order_relaxed);
  }
  int64_t timeout_ms() const {
    return timeout_ms_.load(std::memory_order_relaxed);
  }

  // The cheap question before status().
  bool failed() const { return board_->failed(); }
  // The first error of the communicator; OK if none.
  absl::Status status() const;
  // Also looks for dead peers; kPending while calls are queued.
  Poll Query(absl::Status* error);
  // Stops every call on this communicator, here and at the peers. The calls
  // return soon; wait for Idle() before destroying.
  void Abort();
  bool aborted() const { return aborted_.load(std::memory_order_acquire); }
  // No call is queued or running.
  bool Idle() const { return running_.load(std::memory_order_acquire) == 0; }
  // One line a rank.
  std::string Dump() const;

  // --- For the tasks that run calls -----------------------------------------
  // Counts calls from when they are made to when they are done.
  void CallMade();
  void CallDone() { running_.fetch_sub(1, std::memory_order_release); }

  Turnstile& collectives() { return collectives_; }
  Turnstile& messages(int peer, int lane, bool send) {
    return send ? *sends_[ChannelAt(peer, lane)]
                : *receives_[ChannelAt(peer, lane)];
  }
  // A call's turn is over; wakes those of this process that wait for theirs.
  void Done(Turnstile& turnstile);
  // The channel to a peer, made at first use.
  Channel& channel(int peer, int lane);

  // Starts a collective whose turn has come; what it returns is stepped to its
  // end by the caller.
  absl::StatusOr<Work*> Start(const CollectiveArgs& args);

  // The short way of a collective on the thread that makes it. Its recipe, if
  // its shape has been seen, nothing is queued and the buffers are right; else
  // null: make the call the long way.
  Recipe* QuickRecipe(const CallShape& shape, const void* in, void* out) {
    // Idle: whatever ran on another thread has ended, and only this thread
    // makes calls; so what belongs to the thread whose turn it is is this
    // thread's, and a call that ends at once needs no ticket.
    if (!collectives_.idle()) return nullptr;
    Recipe& recipe = recipes_.At(shape);
    return recipe.shape == shape && recipe.Fit(in, out) && !failed() ? &recipe
                                                                     : nullptr;
  }
  // Starts and steps it; if that does not end it, it stands somewhere.
  Poll RunQuickly(Recipe& recipe, const void* in, void* out) {
    NoteMade();
    return recipe.on_lines
               ? line_run_.Run(recipe.line, static_cast<const std::byte*>(in),
                               static_cast<std::byte*>(out))
               : RunBoardQuickly(recipe, in, out);
  }
  // Steps it from where it stands for as long as it usually takes; what is left
  // to be stepped then, and its ticket. Null: nothing.
  struct Started {
    Work* work = nullptr;
    uint64_t ticket = 0;
  };
  Started StepQuickly(const Recipe& recipe, Poll poll);
  // Says on the control page that this rank has made a call.
  void NoteMade() {
    std::atomic<uint32_t>& made = board_->mine().calls_made;
    // Relaxed, one writer: for diagnosis.
    made.store(made.load(std::memory_order_relaxed) + 1,
               std::memory_order_relaxed);
  }
  // Looks at what may end a wait: its deadline, the death of a peer that it
  // needs. What it finds fails the communicator on all ranks.
  struct Wait {
    Deadline deadline;
    int64_t timeout_ms = 0;
    std::function<std::string()> what;    // the call, for texts
    std::function<std::string()> others;  // what the peers do instead
    // A peer found dead once: its last act may have been what is waited for.
    int suspect = -1;
  };
  void CheckWait(Wait& wait, absl::Span<const int> needed);
  // Peers that the running collective waits for, or will.
  std::vector<int> NeededPeers() const;
  std::string DescribePeer(int rank) const {
    return board_->Describe(rank) + ": " + DescribeState(*board_, rank);
  }
  int waiting_for() const { return view_.waiting_for(); }
  std::string DescribeLaggards() const { return view_.DescribeLaggards(); }
  std::string DescribeCall() const { return view_.DescribeCall(); }
  void NoteWaiting() { view_.NoteWaiting(); }
  void NoteDone() { view_.NoteDone(); }
  // Says on the control page that queued calls wait behind another
  // communicator's; empty: they do not.
  void SetBusyWith(const std::string& text);

  // Spins before yielding: fewer than none when ranks outnumber their CPUs.
  const WaitPolicy& wait_policy() const { return wait_policy_; }
  // What blocking calls have learned about spinning; of the thread that makes
  // calls.
  int* learned_spins() { return &learned_spins_; }

 private:
  Communicator(Process& process, Membership membership, CommConfig config,
               Overrides overrides);
  absl::Status MakeRecipe(const CollectiveArgs& args, Recipe* recipe);
  void DescribeBuffers(const CollectiveArgs& args, Recipe* recipe) const;
  absl::Status MakeSetup(const CollectiveArgs& args, const CollectiveCall& call,
                         Recipe* recipe);
  absl::Status SetBuffers(Recipe& recipe, const std::byte* in, std::byte* out,
                          double factor);
  void SetParts(const CollectiveArgs& args, CollectiveCall* call);
  absl::StatusOr<Work*> StartBy(Recipe& recipe, const void* in, void* out,
                                double factor);
  Poll RunBoardQuickly(Recipe& recipe, const void* in, void* out);
  absl::Status LeaseOutbox();
  absl::StatusOr<std::byte*> AllocateKept(size_t bytes);
  // The all-gather of a split.
  absl::Status Gather(const void* mine, void* all, size_t bytes,
                      Deadline deadline, int64_t limit_ms);
  bool PeerDead(int rank) const;
  // One of them that will not come any more, -1: none. A death comes first: it
  // may be why others have left.
  int GonePeer(absl::Span<const int> needed) const;
  // In words, of one that has left.
  const char* HowLeft(int rank) const;
  static size_t ChannelAt(int peer, int lane) {
    return static_cast<size_t>(peer) * kChannelLanes +
           static_cast<size_t>(lane);
  }

  Process& process_;
  CommConfig config_;
  std::atomic<int64_t> timeout_ms_;
  std::unique_ptr<Board> board_;
  std::vector<Link*> links_;
  int usable_cpus_;
  WaitPolicy wait_policy_;
  int learned_spins_ = WaitPolicy().spins;
  std::mutex memory_mutex_;  // guards what follows
  std::vector<std::byte*> memory_;

  // Of the thread whose collective's turn it is.
  BoardView view_;
  Outbox outbox_;
  std::byte* outbox_memory_ = nullptr;
  std::vector<std::byte> scratch_;
  LineRun line_run_;
  BoardRun board_run_;
  bool on_lines_ = false;  // the running call is line_run_
  PlanCache plans_;
  RecipeCache recipes_;
  Started started_;     // the call of RunQuickly
  Recipe rare_recipe_;  // of a call whose recipe is not kept
  std::vector<int64_t> lengths_, offsets_;

  Turnstile collectives_;
  std::vector<std::unique_ptr<Turnstile>> sends_, receives_;
  std::mutex channel_mutex_;  // guards what follows
  std::vector<std::unique_ptr<Channel>> channels_;

  std::atomic<bool> aborted_{false};
  std::atomic<int> running_{0};
  int splits_ = 0;
};

}  // namespace axon
