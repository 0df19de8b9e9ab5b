// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/local_exchange.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "bootstrap/fd_message.h"

namespace axon {
namespace {

using Table = std::vector<std::vector<Fd>>;

constexpr size_t kMaxStrangers = 64;
// The leader notices a deadline first and knows who is missing: its answer is
// worth a little more time.
constexpr int64_t kGraceMs = 1000;

std::string Participant(const LocalExchangeOptions& options, int index) {
  const std::string number = absl::StrFormat(
      "participant %d of %d of the local exchange", index, options.count);
  const auto i = static_cast<size_t>(index);
  return i < options.names.size()
             ? absl::StrFormat("%s, %s,", options.names[i], number)
             : number;
}

// Sends one participant's descriptors in as many messages as it takes, always
// at least one, and remembers how far it has come.
class Sender {
 public:
  Sender(absl::string_view secret, int owner, std::vector<int> fds)
      : fds_(std::move(fds)) {
    secret.copy(message_.secret, sizeof(message_.secret));
    message_.kind = FdMessageKind::kFds;
    message_.owner = owner;
    message_.total = static_cast<int32_t>(fds_.size());
  }

  absl::StatusOr<Poll> Advance(int socket) {
    while (!done_) {
      const size_t first = static_cast<size_t>(message_.first);
      const auto batch =
          absl::MakeConstSpan(fds_).subspan(first, kMaxFdsPerMessage);
      ASSIGN_OR_RETURN(const Poll sent, SendFds(socket, message_, batch));
      if (sent != Poll::kReady) return sent;
      message_.first += static_cast<int32_t>(batch.size());
      done_ = message_.first == message_.total;
    }
    return Poll::kReady;
  }

 private:
  FdMessage message_{};
  std::vector<int> fds_;
  bool done_ = false;
};

// Collects the messages of the participants into a table.
class Receiver {
 public:
  explicit Receiver(int count)
      : table_(static_cast<size_t>(count)), whole_(table_.size(), false) {}

  // False: the message does not follow what came before.
  bool Add(const FdMessage& message, std::vector<Fd> fds) {
    if (message.owner < 0 ||
        static_cast<size_t>(message.owner) >= table_.size() ||
        message.total > kMaxFdsEach) {
      return false;
    }
    const size_t owner = static_cast<size_t>(message.owner);
    std::vector<Fd>& mine = table_[owner];
    if (whole_[owner] || static_cast<size_t>(message.first) != mine.size()) {
      return false;
    }
    std::move(fds.begin(), fds.end(), std::back_inserter(mine));
    whole_[owner] = mine.size() == static_cast<size_t>(message.total);
    return true;
  }
  bool whole(int owner) const { return whole_[static_cast<size_t>(owner)]; }
  int FirstMissing() const {
    return static_cast<int>(std::find(whole_.begin(), whole_.end(), false) -
                            whole_.begin());
  }
  bool all() const { return FirstMissing() == static_cast<int>(whole_.size()); }
  std::vector<int> Numbers(int owner) const {
    std::vector<int> numbers;
    for (const Fd& fd : table_[static_cast<size_t>(owner)]) {
      numbers.push_back(fd.get());
    }
    return numbers;
  }
  Table Take() { return std::move(table_); }

 private:
  Table table_;
  std::vector<bool> whole_;
};

// How long to poll before `look` is asked again.
constexpr int64_t kLookMs = 50;

absl::Status Look(const LocalExchangeOptions& options) {
  return options.look ? options.look() : absl::OkStatus();
}

absl::Status Duplicate(absl::Span<const int> mine, Receiver* receiver) {
  std::vector<Fd> copies;
  for (const int fd : mine) {
    copies.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!copies.back().valid()) {
      return ErrnoError(absl::StrFormat("duplicating file descriptor %d", fd));
    }
  }
  FdMessage message{};
  message.total = static_cast<int32_t>(mine.size());
  receiver->Add(message, std::move(copies));
  return absl::OkStatus();
}

// ---- The leader.

class Leader {
 public:
  Leader(const LocalExchangeOptions& options, const LocalListener& listener)
      : options_(options), listener_(listener), receiver_(options.count) {}

  absl::StatusOr<Table> Run(absl::Span<const int> mine) {
    absl::Status status = Duplicate(mine, &receiver_);
    if (status.ok()) status = Collect();
    if (status.ok()) status = Distribute();
    if (!status.ok()) {
      Refuse(status);
      return status;
    }
    return receiver_.Take();
  }

 private:
  struct Peer {
    Fd fd;
    int index = -1;   // -1: has not shown the secret
    size_t sent = 0;  // tables that it has been given
    std::optional<Sender> sender;
  };

  absl::Status Collect();
  absl::Status Distribute();
  absl::Status Accept();
  absl::Status Read(Peer* peer);
  absl::StatusOr<bool> Give(Peer* peer);
  void Refuse(const absl::Status& why);
  absl::Status Died(const Peer& peer) const {
    return absl::UnavailableError(absl::StrFormat(
        "%s ended before it was complete", Participant(options_, peer.index)));
  }

  const LocalExchangeOptions& options_;
  const LocalListener& listener_;
  Receiver receiver_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

absl::Status Leader::Collect() {
  while (!receiver_.all()) {
    if (options_.deadline.passed()) {
      return absl::DeadlineExceededError(
          absl::StrFormat("%s did not come in time",
                          Participant(options_, receiver_.FirstMissing())));
    }
    RETURN_IF_ERROR(Look(options_));
    std::vector<pollfd> fds{{listener_.fd(), POLLIN, 0}};
    for (const auto& peer : peers_) fds.push_back({peer->fd.get(), POLLIN, 0});
    poll(fds.data(), fds.size(),
         static_cast<int>(options_.deadline.LeftMs(kLookMs)));
    for (size_t i = 1; i < fds.size(); ++i) {
      if (fds[i].revents != 0) RETURN_IF_ERROR(Read(peers_[i - 1].get()));
    }
    peers_.erase(std::remove_if(peers_.begin(), peers_.end(),
                                [](const auto& p) { return !p->fd.valid(); }),
                 peers_.end());
    if (fds[0].revents != 0) RETURN_IF_ERROR(Accept());
  }
  return absl::OkStatus();
}

absl::Status Leader::Accept() {
  Fd fd(
      accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) {
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) {
      return absl::OkStatus();
    }
    return ErrnoError("accept at a Unix socket");
  }
  const size_t most = static_cast<size_t>(options_.count) + kMaxStrangers;
  if (peers_.size() >= most) {
    const auto stranger =
        std::find_if(peers_.begin(), peers_.end(),
                     [](const auto& peer) { return peer->index < 0; });
    if (stranger != peers_.end()) peers_.erase(stranger);
  }
  peers_.push_back(std::make_unique<Peer>());
  peers_.back()->fd = std::move(fd);
  return absl::OkStatus();
}

// Takes what a peer has sent. A stranger loses its connection.
absl::Status Leader::Read(Peer* peer) {
  while (true) {
    FdMessage message{};
    std::vector<Fd> fds;
    ASSIGN_OR_RETURN(const Poll got, ReceiveFds(peer->fd.get(), options_.secret,
                                                &message, &fds));
    if (got == Poll::kPending) return absl::OkStatus();
    if (got == Poll::kFailed) {
      if (peer->index >= 0) return Died(*peer);
      peer->fd.Close();
      return absl::OkStatus();
    }
    if (!receiver_.Add(message, std::move(fds)) ||
        (peer->index >= 0 && peer->index != message.owner)) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "two claim to be %s, or one sent more than %d file descriptors",
          Participant(options_, message.owner), kMaxFdsEach));
    }
    peer->index = message.owner;
  }
}

absl::Status Leader::Distribute() {
  while (true) {
    std::vector<pollfd> fds;
    for (const auto& peer : peers_) {
      if (peer->index < 0) continue;
      ASSIGN_OR_RETURN(const bool done, Give(peer.get()));
      if (!done) fds.push_back({peer->fd.get(), POLLOUT, 0});
    }
    if (fds.empty()) return absl::OkStatus();
    if (options_.deadline.passed()) {
      return absl::DeadlineExceededError(
          "a participant of the local exchange does not take its file "
          "descriptors");
    }
    RETURN_IF_ERROR(Look(options_));
    poll(fds.data(), fds.size(),
         static_cast<int>(options_.deadline.LeftMs(kLookMs)));
    // Also true where the kernel counts too many descriptors under way.
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// True when the peer has been given everything.
absl::StatusOr<bool> Leader::Give(Peer* peer) {
  for (; peer->sent < static_cast<size_t>(options_.count); ++peer->sent) {
    const int owner = static_cast<int>(peer->sent);
    if (!peer->sender) {
      peer->sender.emplace(options_.secret, owner, receiver_.Numbers(owner));
    }
    ASSIGN_OR_RETURN(const Poll sent, peer->sender->Advance(peer->fd.get()));
    if (sent == Poll::kFailed) return Died(*peer);
    if (sent == Poll::kPending) return false;
    peer->sender.reset();
  }
  return true;
}

// Best effort: who does not hear it sees the connection end.
void Leader::Refuse(const absl::Status& why) {
  FdMessage message{};
  options_.secret.copy(message.secret, sizeof(message.secret));
  message.kind = FdMessageKind::kRefusal;
  message.code = static_cast<int32_t>(why.code());
  why.message().copy(message.text, sizeof(message.text) - 1);
  for (const auto& peer : peers_) {
    if (peer->index < 0 || !peer->fd.valid()) continue;
    (void)SendFds(peer->fd.get(), message, {});
  }
}

// ---- The others.

absl::StatusOr<Table> Follow(const LocalExchangeOptions& options,
                             absl::Span<const int> mine) {
  ASSIGN_OR_RETURN(const Fd fd,
                   ConnectLocal(options.address, options.deadline));
  Sender sender(options.secret, options.index, {mine.begin(), mine.end()});
  Receiver receiver(options.count);
  const Deadline deadline = options.deadline.WithGrace(kGraceMs);
  bool sent = false;
  while (!receiver.all()) {
    if (!sent) {
      ASSIGN_OR_RETURN(const Poll state, sender.Advance(fd.get()));
      sent = state != Poll::kPending;  // a failure shows when reading
    }
    FdMessage message{};
    std::vector<Fd> fds;
    ASSIGN_OR_RETURN(const Poll got,
                     ReceiveFds(fd.get(), options.secret, &message, &fds));
    if (got == Poll::kReady && message.kind == FdMessageKind::kRefusal) {
      return absl::Status(static_cast<absl::StatusCode>(message.code),
                          message.text);
    }
    if (got == Poll::kFailed ||
        (got == Poll::kReady && !receiver.Add(message, std::move(fds)))) {
      return absl::UnavailableError(absl::StrFormat(
          "%s ended before it was complete", Participant(options, 0)));
    }
    if (got == Poll::kReady) continue;
    if (deadline.passed()) {
      return absl::DeadlineExceededError(
          absl::StrFormat("the descriptors of %s did not come in time",
                          Participant(options, receiver.FirstMissing())));
    }
    RETURN_IF_ERROR(Look(options));
    pollfd waiting{fd.get(), POLLIN, 0};
    if (!sent) waiting.events |= POLLOUT;
    poll(&waiting, 1, static_cast<int>(deadline.LeftMs(kLookMs)));
  }
  return receiver.Take();
}

}  // namespace

absl::StatusOr<Table> ExchangeFds(const LocalExchangeOptions& options,
                                  absl::Span<const int> mine,
                                  LocalListener* listener) {
  if (options.count < 1 || options.count > kMaxParticipants ||
      options.index < 0 || options.index >= options.count ||
      mine.size() > kMaxFdsEach ||
      (options.index == 0) != (listener != nullptr)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s with %d file descriptors: at most %d participants with %d each, "
        "and the first one listens",
        Participant(options, options.index), mine.size(), kMaxParticipants,
        kMaxFdsEach));
  }
  if (listener == nullptr) return Follow(options, mine);
  return Leader(options, *listener).Run(mine);
}

}  // namespace axon
