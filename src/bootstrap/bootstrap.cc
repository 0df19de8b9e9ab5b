// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/bootstrap.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "bootstrap/host_identity.h"
#include "bootstrap/rendezvous.h"
#include "bootstrap/socket.h"

namespace axon {
namespace {

// The server notices a deadline first and knows who is missing: its answer is
// worth a little more time.
constexpr int64_t kGraceMs = 2000;
// How long an id's process may refuse connections before it counts as dead.
constexpr int64_t kRefusedMs = 3000;
constexpr int64_t kConnectMs = 3000;   // for one address of several
constexpr int64_t kWelcomeMs = 10000;  // likewise, for the server to answer
constexpr int64_t kFirstPauseMs = 5, kLastPauseMs = 500;
constexpr size_t kMaxPart = size_t{16} << 20;
constexpr int64_t kForever = int64_t{1} << 50;

int64_t Left(const Deadline& deadline) {
  // 0 means none on the wire, so what has passed counts as a millisecond.
  return deadline.infinite() ? 0
                             : std::max<int64_t>(deadline.LeftMs(kForever), 1);
}

// The attempts of one Join to reach the meeting.
struct Attempts {
  const UniqueId& id;
  int rank;
  const BootstrapOptions& options;
  absl::Status listening;            // of rank 0 at a fixed place
  std::vector<std::string> reasons;  // of the last round, one per address
  Deadline refused_by;               // armed while every address refuses

  absl::StatusOr<std::vector<Address>> Addresses();
  absl::Status GiveUp(int nranks) const;
};

// Where to connect in the next round; an error ends the attempts.
absl::StatusOr<std::vector<Address>> Attempts::Addresses() {
  reasons.clear();
  if (!id.fixed()) return id.addresses;
  if (rank == 0) {
    if (options.rendezvous == nullptr) {
      return absl::InternalError("rank 0 has no rendezvous to serve");
    }
    listening = options.rendezvous->OpenFixed(id);
    // A taken port may be freed soon, or belong to a second rank 0, which the
    // meeting there will tell.
    if (!listening.ok() && !absl::IsAlreadyExists(listening)) return listening;
  }
  absl::StatusOr<std::vector<Address>> addresses = Resolve(id.place);
  if (addresses.ok()) return addresses;
  reasons.emplace_back(addresses.status().message());
  return std::vector<Address>();
}

absl::Status Attempts::GiveUp(int nranks) const {
  std::string text = absl::StrFormat(
      "rank %d of %d could not reach the rendezvous at %s within %d ms: %s",
      rank, nranks, id.Text(), options.timeout_ms,
      absl::StrJoin(reasons, "; "));
  if (!listening.ok()) absl::StrAppend(&text, "; ", listening.message());
  if (id.fixed() && rank != 0) {
    absl::StrAppend(&text, "; has rank 0 started, and at that place?");
  }
  return absl::DeadlineExceededError(text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Bootstrap>> Bootstrap::Join(
    const UniqueId& id, int rank, int nranks, const BootstrapOptions& options) {
  std::unique_ptr<Bootstrap> self(new Bootstrap(rank, options));
  const Deadline deadline = self->deadline_;
  Attempts attempts{id, rank, options, {}, {}, {}};
  int64_t pause_ms = kFirstPauseMs;
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<Address> addresses,
                     attempts.Addresses());
    bool all_refused = !addresses.empty();
    for (const Address& address : addresses) {
      bool final = false;
      const absl::Status status = self->TryJoin(
          address, addresses.size() == 1, nranks, options, id.secret, &final);
      if (status.ok()) return self;
      if (final) return status;
      all_refused = all_refused && absl::IsUnavailable(status);
      attempts.reasons.emplace_back(status.message());
    }
    if (!all_refused || id.fixed()) {
      attempts.refused_by = Deadline();
    } else if (attempts.refused_by.infinite()) {
      attempts.refused_by = Deadline::In(kRefusedMs);
    } else if (attempts.refused_by.passed()) {
      return absl::UnavailableError(absl::StrFormat(
          "nobody listens at %s: the process that made this id has ended",
          id.Text()));
    }
    if (deadline.passed()) return attempts.GiveUp(nranks);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(deadline.LeftMs(pause_ms)));
    pause_ms = std::min(pause_ms * 2, kLastPauseMs);
  }
}

absl::Status Bootstrap::TryJoin(const Address& address, bool only, int nranks,
                                const BootstrapOptions& options,
                                absl::string_view secret, bool* final) {
  const Deadline deadline = deadline_;
  const auto patience = [&](int64_t ms) {
    return only ? deadline.WithGrace(kGraceMs)
                : Deadline::In(deadline.LeftMs(ms) + 1);
  };
  ASSIGN_OR_RETURN(Fd fd,
                   ConnectTcp(address, only ? deadline : patience(kConnectMs)));
  connection_ = std::make_unique<Connection>(std::move(fd));
  server_ = address.Text();
  Hello hello{rank_,          nranks,     options.version, getpid(),
              Left(deadline), HostName(), options.digest};
  connection_->Send(PackHello(secret, hello));
  absl::StatusOr<Answer> answer = Receive(patience(kWelcomeMs), final);
  if (!answer.ok()) return answer.status();
  Unpacker in(answer->body);
  const int64_t pid = in.Int();
  server_ =
      absl::StrFormat("%s (host %s, pid %d)", address.Text(), in.Text(), pid);
  if (answer->kind != FrameKind::kWelcome || !in.ok()) {
    return absl::InternalError(
        absl::StrCat(address.Text(), " answers, but is not a rendezvous"));
  }
  *final = true;
  ASSIGN_OR_RETURN(answer, Receive(deadline.WithGrace(kGraceMs), final));
  return TakePeers(*answer, nranks);
}

absl::Status Bootstrap::TakePeers(const Answer& answer, int nranks) {
  Unpacker in(answer.body);
  while (in.ok() && !in.rest().empty()) {
    const int64_t pid = in.Int();
    peers_.push_back({pid, std::string(in.Text())});
  }
  if (answer.kind != FrameKind::kAllHere || !in.ok() ||
      peers_.size() != static_cast<size_t>(nranks)) {
    return absl::InternalError(absl::StrCat("the rendezvous at ", server_,
                                            " sent no valid table of ranks"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Bootstrap::Answer> Bootstrap::Receive(Deadline deadline,
                                                     bool* from_meeting) {
  Frame frame;
  bool open = true;
  while (true) {
    switch (connection_->NextFrame(&frame)) {
      case Poll::kReady:
        if (frame.kind != FrameKind::kError) {
          return Answer{frame.kind, std::string(frame.body)};
        }
        *from_meeting = true;
        return UnpackError(frame.body);
      case Poll::kFailed:
        return absl::InternalError(
            absl::StrCat(server_, " answers, but is not a rendezvous"));
      case Poll::kPending:
        break;
    }
    if (!open) {
      return absl::UnavailableError(
          *from_meeting
              ? absl::StrCat("the process that serves the rendezvous at ",
                             server_, " has ended")
              : absl::StrCat(server_,
                             " closed the connection without an answer: it is "
                             "another program, or AXON_COMM_SECRET differs"));
    }
    if (deadline.passed()) {
      return absl::DeadlineExceededError(
          absl::StrCat(server_, " does not answer"));
    }
    pollfd waiting{connection_->fd(), connection_->events(), 0};
    poll(&waiting, 1, static_cast<int>(deadline.LeftMs(1000)));
    open = connection_->Flush();
    if (waiting.revents & ~POLLOUT) open = connection_->Receive() && open;
  }
}

Bootstrap::~Bootstrap() {
  if (connection_ == nullptr || peers_.empty() || !status_.ok()) return;
  connection_->Send(PackFrame(FrameKind::kLeave, ""));
  // A few bytes to a peer that has read all before: they fit, or it is dead.
  (void)connection_->Flush();
}

absl::StatusOr<std::vector<std::string>> Bootstrap::AllGather(
    absl::string_view mine) {
  RETURN_IF_ERROR(status_);
  if (mine.size() > kMaxPart) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "a rank's part of an all-gather in set-up has %d bytes; at most %d are "
        "allowed",
        mine.size(), kMaxPart));
  }
  std::string body = Packer().Int(Left(deadline_)).Take();
  body.append(mine.data(), mine.size());
  connection_->Send(PackFrame(FrameKind::kContribute, body));
  bool from_meeting = true;
  absl::StatusOr<Answer> answer =
      Receive(deadline_.WithGrace(kGraceMs), &from_meeting);
  if (!answer.ok()) return Keep(answer.status());
  Unpacker in(answer->body);
  std::vector<std::string> parts;
  while (in.ok() && !in.rest().empty()) parts.emplace_back(in.Text());
  if (answer->kind != FrameKind::kGathered || !in.ok() ||
      parts.size() != peers_.size()) {
    return Keep(absl::InternalError(absl::StrCat("the rendezvous at ", server_,
                                                 " sent no valid all-gather")));
  }
  return parts;
}

absl::Status Bootstrap::Check() {
  RETURN_IF_ERROR(status_);
  const bool open = connection_->Receive();
  // Nothing but an error is to be expected now.
  if (open && connection_->received().empty()) return absl::OkStatus();
  bool from_meeting = true;
  const absl::StatusOr<Answer> answer =
      Receive(Deadline::In(kGraceMs), &from_meeting);
  if (!answer.ok()) return Keep(answer.status());
  return Keep(absl::InternalError(
      absl::StrCat("the rendezvous at ", server_,
                   " sent an answer to which there was no question")));
}

absl::Status Bootstrap::Barrier() { return AllGather("").status(); }

void Bootstrap::Fail(const absl::Status& why) {
  if (!status_.ok() || why.ok()) return;
  status_ = why;
  connection_->Send(PackError(FrameKind::kFail, why));
  (void)connection_->Flush();
}

absl::Status Bootstrap::Keep(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return status_;
}

}  // namespace axon
