// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status.h"
#include "transport/shm/ring_channel.h"

namespace axon {
absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Create(
    Process& process, Membership membership, CommConfig config) {
  // Until the communicator owns it, what was shared must be given back.
  absl::StatusOr<Overrides> overrides =
      Overrides::Parse(process.settings().algo);
  if (!overrides.ok()) {
    membership.board->Fail(overrides.status());
    membership.board->Leave();
    process.Retire({std::move(membership.board), std::move(membership.links),
                    std::move(membership.memory)});
    return overrides.status();
  }
  return std::unique_ptr<Communicator>(
      new Communicator(process, std::move(membership), std::move(config),
                       *std::move(overrides)));
}

Communicator::Communicator(Process& process, Membership membership,
                           CommConfig config, Overrides overrides)
    : process_(process),
      config_(std::move(config)),
      timeout_ms_(config_.timeout_ms),
      board_(std::move(membership.board)),
      links_(std::move(membership.links)),
      usable_cpus_(membership.usable_cpus),
      memory_(std::move(membership.memory)),
      view_(*board_),
      outbox_(static_cast<size_t>(process.settings().outbox_size)),
      line_run_(view_, outbox_),
      board_run_(view_, outbox_),
      plans_(board_->me(), board_->ranks(), process.settings().check,
             Selector(board_->ranks(), std::move(overrides),
                      Selector::SharedMemoryModel())) {
  for (int c = 0; c < size() * kChannelLanes; ++c) {
    sends_.push_back(std::make_unique<Turnstile>());
    receives_.push_back(std::make_unique<Turnstile>());
  }
  channels_.resize(sends_.size());
  if (process.settings().spin >= 0) {
    wait_policy_.spins = static_cast<int>(process.settings().spin);
  } else if (size() > usable_cpus_) {
    // Somebody who has work to do is not running: make room at once, and go on
    // doing so, which costs a fraction of a sleep.
    wait_policy_ = {0, 2000};
  }
}

Communicator::~Communicator() {
  board_->Leave();
  std::lock_guard<std::mutex> lock(memory_mutex_);
  process_.Retire({std::move(board_), std::move(links_), std::move(memory_)});
}

absl::Status Communicator::status() const {
  if (!board_->failed()) return absl::OkStatus();
  absl::Status failure = board_->failure();
  if (aborted()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "communicator '%s' was aborted by this rank", config_.name));
  }
  return failure;
}

bool Communicator::PeerDead(int rank) const {
  const Link* link = links_[static_cast<size_t>(rank)];
  return link != nullptr && link->Dead();
}

Poll Communicator::Query(absl::Status* error) {
  for (int q = 0; q < size() && !board_->failed(); ++q) {
    if (q == rank() || board_->HasLeft(q) || !PeerDead(q)) continue;
    // It may have left in the meantime, as its last act.
    if (board_->HasLeft(q)) continue;
    board_->Fail(absl::UnavailableError(
        absl::StrFormat("%s of communicator '%s' has died", board_->Describe(q),
                        config_.name)));
  }
  *error = status();
  if (!error->ok()) return Poll::kFailed;
  return Idle() ? Poll::kReady : Poll::kPending;
}

void Communicator::Abort() {
  // Calls end when the board has failed, not before: they hand their buffers
  // back, and no peer may believe in them any more. release: the board's
  // failure, which comes after, says whose it is.
  aborted_.store(true, std::memory_order_release);
  board_->Fail(absl::UnavailableError(absl::StrFormat(
      "%s aborted communicator '%s'", board_->Describe(rank()), config_.name)));
  Ring(process_.doorbell());
}

void Communicator::CallMade() {
  running_.fetch_add(1, std::memory_order_relaxed);
}

void Communicator::Done(Turnstile& turnstile) {
  turnstile.Done();
  if (!turnstile.idle()) Ring(process_.doorbell());
}

Channel& Communicator::channel(int peer, int lane) {
  std::lock_guard<std::mutex> lock(channel_mutex_);
  std::unique_ptr<Channel>& channel = channels_[ChannelAt(peer, lane)];
  if (channel == nullptr) {
    channel = std::make_unique<RingChannel>(
        *board_, peer, static_cast<size_t>(process_.settings().channel_size),
        [this](size_t bytes) { return AllocateKept(bytes); }, lane);
  }
  return *channel;
}

absl::StatusOr<std::byte*> Communicator::AllocateKept(size_t bytes) {
  ASSIGN_OR_RETURN(std::byte * memory, process_.arena().Allocate(bytes));
  std::lock_guard<std::mutex> lock(memory_mutex_);
  memory_.push_back(memory);
  return memory;
}

absl::Status Communicator::LeaseOutbox() {
  if (outbox_memory_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(outbox_memory_, AllocateKept(outbox_.size()));
  return absl::OkStatus();
}

}  // namespace axon
