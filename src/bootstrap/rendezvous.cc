// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/rendezvous.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "bootstrap/interfaces.h"
#include "bootstrap/random.h"

namespace axon {
namespace {

constexpr int64_t kHelloMs = 5000;    // for a hello to arrive
constexpr int64_t kGoodbyeMs = 5000;  // for a refused guest to read why
constexpr int64_t kStopMs = 2000;     // for the object's end
constexpr int64_t kPauseMs = 100;     // between tries to accept
constexpr size_t kMaxUndecided = 1024;
constexpr size_t kMaxUsed = 4096;

// The addresses to tell others: one per interface and family while there is
// room, IPv4 first, since it is what most clusters route.
absl::StatusOr<std::vector<Address>> OwnAddresses(absl::string_view filter,
                                                  uint16_t port) {
  ASSIGN_OR_RETURN(const std::vector<Interface> all, ListInterfaces());
  ASSIGN_OR_RETURN(const std::vector<Interface> chosen,
                   ChooseInterfaces(all, filter));
  std::vector<Address> addresses;
  for (const int family : {AF_INET, AF_INET6}) {
    std::set<std::string> seen;
    for (const Interface& i : chosen) {
      if (i.address.family() != family || !seen.insert(i.name).second) continue;
      if (addresses.size() == kMaxIdAddresses) break;
      addresses.push_back(i.address.WithPort(port));
    }
  }
  return addresses;
}

absl::StatusOr<Fd> ListenAtPlace(const HostPort& place) {
  // A name may mean other addresses on other machines, so all are served.
  if (!IsNumeric(place.host)) {
    return ListenAnywhere({place.port, place.port});
  }
  ASSIGN_OR_RETURN(const std::vector<Address> addresses, Resolve(place));
  absl::StatusOr<Fd> fd = ListenTcp(addresses[0], {});
  if (fd.ok() || absl::IsAlreadyExists(fd.status())) return fd;
  return absl::Status(
      fd.status().code(),
      absl::StrCat(fd.status().message(),
                   "; rank 0 must run where AXON_COMM_ID points to"));
}

// Takes the same time wherever the first difference is.
bool SameSecret(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  int difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

}  // namespace

Rendezvous::~Rendezvous() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    stop_by_ = Deadline::In(kStopMs);
  }
  Wake();
  if (thread_.joinable()) thread_.join();
}

void Rendezvous::Wake() {
  const uint64_t one = 1;
  // Cannot fail but for a full counter, which wakes as well.
  if (wake_.valid()) (void)!write(wake_.get(), &one, sizeof(one));
}

absl::Status Rendezvous::Start() {
  if (wake_.valid()) return absl::OkStatus();
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoError("making an eventfd for the rendezvous");
  wake_ = std::move(wake);
  thread_ = std::thread([this] { Serve(); });
  return absl::OkStatus();
}

absl::StatusOr<UniqueId> Rendezvous::Open(const RendezvousOptions& options) {
  std::lock_guard<std::mutex> lock(mutex_);
  UniqueId id;
  ASSIGN_OR_RETURN(id.secret, RandomBytes(kSecretSize));
  if (shared_ == nullptr) {
    ASSIGN_OR_RETURN(const PortRange range, ParsePortRange(options.port_range));
    ASSIGN_OR_RETURN(Fd fd, ListenAnywhere(range));
    ASSIGN_OR_RETURN(shared_, AddListener(std::move(fd)));
  }
  ASSIGN_OR_RETURN(id.addresses,
                   OwnAddresses(options.socket_ifname, shared_->port));
  Host(id.secret, shared_, /*fixed=*/false);
  return id;
}

absl::Status Rendezvous::OpenFixed(const UniqueId& id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Hosted* present = Find(id.secret, id.place.port);
  if (present != nullptr && present->listener != nullptr) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(Fd fd, ListenAtPlace(id.place));
  ASSIGN_OR_RETURN(Listener* const listener, AddListener(std::move(fd)));
  Host(id.secret, listener, /*fixed=*/true);
  return absl::OkStatus();
}

absl::StatusOr<Rendezvous::Listener*> Rendezvous::AddListener(Fd fd) {
  RETURN_IF_ERROR(Start());
  const uint16_t port = LocalPort(fd.get());
  listeners_.push_back(
      std::make_unique<Listener>(Listener{std::move(fd), port, Deadline()}));
  return listeners_.back().get();
}

void Rendezvous::Host(const std::string& secret, Listener* listener,
                      bool fixed) {
  hosted_.push_back(std::make_unique<Hosted>(
      Hosted{Meeting(), secret, listener->port, fixed, listener}));
  Wake();
}

// Among meetings of one secret and port (a fixed place that is used again), the
// one that is still open.
Rendezvous::Hosted* Rendezvous::Find(absl::string_view secret, uint16_t port) {
  Hosted* found = nullptr;
  for (const auto& hosted : hosted_) {
    if (hosted->port != port || !SameSecret(hosted->secret, secret)) continue;
    if (hosted->listener != nullptr) return hosted.get();
    found = hosted.get();
  }
  return found;
}

void Rendezvous::Serve() {
  // Signals belong to the program's own threads.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::vector<pollfd> fds;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    CloseFixed();
    SweepGuests();
    SweepMeetings();
    if (stopping_) {
      const bool drained = std::all_of(
          guests_.begin(), guests_.end(),
          [](const auto& guest) { return guest->connection.drained(); });
      if (drained || stop_by_.passed()) return;
    }
    const int wait_ms = Gather(&fds);
    lock.unlock();
    if (poll(fds.data(), fds.size(), wait_ms) < 0) {
      usleep(1000);  // interrupted or out of memory: try again, without haste
    }
    lock.lock();
    Handle(fds);
  }
}

// Fills what to poll: the wake-up, guests, listeners, in this order. Returns
// how long until some deadline, -1: none.
int Rendezvous::Gather(std::vector<pollfd>* fds) {
  constexpr int64_t kNone = 3'600'000;
  int64_t wait_ms = stop_by_.LeftMs(kNone);
  fds->assign(1, {wake_.get(), POLLIN, 0});
  for (const auto& guest : guests_) {
    fds->push_back({guest->connection.fd(), guest->connection.events(), 0});
    wait_ms = guest->deadline.LeftMs(wait_ms);
  }
  for (const auto& listener : listeners_) {
    const bool paused =
        !listener->paused.infinite() && !listener->paused.passed();
    fds->push_back({paused ? -1 : listener->fd.get(), POLLIN, 0});
    if (paused) wait_ms = listener->paused.LeftMs(wait_ms);
  }
  for (const auto& hosted : hosted_) {
    wait_ms = hosted->meeting.deadline().LeftMs(wait_ms);
  }
  return wait_ms == kNone ? -1 : static_cast<int>(wait_ms);
}

// Whatever was added while poll() slept stands at the end of the lists.
void Rendezvous::Handle(const std::vector<pollfd>& fds) {
  if (fds[0].revents != 0) {
    uint64_t count = 0;
    (void)!read(wake_.get(), &count, sizeof(count));
  }
  size_t next = 1;
  for (const auto& guest : guests_) {
    if (fds[next].revents & ~POLLOUT) Read(guest.get());
    ++next;
  }
  std::vector<Listener*> ready;
  for (const auto& listener : listeners_) {
    if (next == fds.size()) break;
    if (fds[next++].revents != 0) ready.push_back(listener.get());
  }
  for (Listener* listener : ready) Accept(listener);
}

void Rendezvous::Accept(Listener* listener) {
  for (size_t i = 0; i < kMaxUndecided; ++i) {
    Fd fd(accept4(listener->fd.get(), nullptr, nullptr,
                  SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      trouble_ = std::string(ErrnoError("accept").message());
      // Out of descriptors: who has shown nothing makes room; else members may
      // yet leave, so look again a little later.
      if (!ShedOldest()) {
        listener->paused = Deadline::In(kPauseMs);
        return;
      }
      continue;
    }
    TuneConnection(fd.get());
    guests_.push_back(std::make_unique<Guest>(Guest{
        Connection(std::move(fd)), listener->port, Deadline::In(kHelloMs)}));
    if (++undecided_ > kMaxUndecided) ShedOldest();
    Read(guests_.back().get());
  }
}

// Drops the undecided guest that came first; false if there is none.
bool Rendezvous::ShedOldest() {
  for (auto it = guests_.begin(); it != guests_.end(); ++it) {
    if ((*it)->hosted == nullptr && !(*it)->closing && !(*it)->gone) {
      --undecided_;
      guests_.erase(it);
      return true;
    }
  }
  return false;
}

void Rendezvous::Read(Guest* guest) {
  if (guest->gone) return;
  const bool open = guest->connection.Receive();
  if (guest->hosted == nullptr && !guest->closing) Greet(guest);
  if (guest->closing) {
    guest->connection.Consume(guest->connection.received().size());
  } else if (guest->rank >= 0) {
    ReadFrames(guest);
  }
  if (!open) End(guest, /*left=*/false);
}

void Rendezvous::ReadFrames(Guest* guest) {
  Frame frame;
  while (guest->rank >= 0) {
    const Poll next = guest->connection.NextFrame(&frame);
    if (next == Poll::kPending) return;
    if (next == Poll::kFailed) {
      End(guest, /*left=*/false);
    } else if (frame.kind == FrameKind::kLeave) {
      End(guest, /*left=*/true);
    } else {
      guest->hosted->meeting.OnFrame(guest->rank, frame);
    }
  }
}

// Decides about a guest as soon as its hello is whole, and about a stranger
// as soon as its secret is.
void Rendezvous::Greet(Guest* guest) {
  HelloView hello;
  const Poll found = FindHello(guest->connection.received(), &hello);
  Hosted* const hosted = Find(hello.secret, guest->port);
  const auto past = std::find_if(
      used_.begin(), used_.end(),
      [&](const Used& used) { return SameSecret(used.secret, hello.secret); });
  // Who finds a fixed place whose ranks have met wants the next meeting there:
  // it is sent away without a word and comes back.
  const bool known = hosted != nullptr ? hosted->listener || !hosted->over()
                                       : past != used_.end();
  if (found == Poll::kFailed || (!hello.secret.empty() && !known)) {
    End(guest, /*left=*/false);
  } else if (found == Poll::kReady) {
    if (hosted == nullptr) return Refuse(guest, past->verdict);
    const absl::Status status = Admit(guest, hosted, hello);
    if (!status.ok()) Refuse(guest, status);
  }
}

absl::Status Rendezvous::Admit(Guest* guest, Hosted* hosted,
                               const HelloView& view) {
  Hello hello;
  if (view.protocol != kProtocol || !UnpackHello(view.body, &hello)) {
    absl::Status status = absl::FailedPreconditionError(absl::StrFormat(
        "a rank speaks version %d of the rendezvous protocol, this process "
        "version %d; use one version of Axon on all ranks",
        view.protocol, kProtocol));
    hosted->meeting.Fail(status);
    return status;
  }
  RETURN_IF_ERROR(hosted->meeting.Admit(hello, &guest->connection));
  guest->connection.Consume(view.size);
  --undecided_;
  guest->hosted = hosted;
  guest->rank = static_cast<int>(hello.rank);
  guest->deadline = Deadline();
  return absl::OkStatus();
}

// Tells the guest why and lets it read that before the connection ends.
void Rendezvous::Refuse(Guest* guest, const absl::Status& why) {
  guest->connection.Send(PackError(FrameKind::kError, why));
  --undecided_;
  guest->closing = true;
  guest->deadline = Deadline::In(kGoodbyeMs);
}

// The guest's connection is of no more use. A member is signed off.
void Rendezvous::End(Guest* guest, bool left) {
  if (guest->gone) return;
  if (guest->hosted == nullptr && !guest->closing) --undecided_;
  if (guest->rank >= 0) guest->hosted->meeting.OnClosed(guest->rank, left);
  guest->rank = -1;
  guest->gone = true;
}

// Looks at deadlines, then frees the places of fixed meetings that are over.
// This comes before their members are told, so that a member that comes back at
// once for the next meeting there does not find the old one.
void Rendezvous::CloseFixed() {
  for (const auto& hosted : hosted_) {
    hosted->meeting.OnTime(trouble_);
    if (!hosted->fixed || !hosted->over()) continue;
    listeners_.remove_if([&](const auto& listener) {
      return listener.get() == hosted->listener;
    });
    hosted->listener = nullptr;
  }
}

void Rendezvous::SweepGuests() {
  for (auto it = guests_.begin(); it != guests_.end();) {
    Guest* guest = it->get();
    if (guest->hosted && guest->hosted->meeting.failed() && !guest->closing) {
      guest->closing = true;
      guest->deadline = Deadline::In(kGoodbyeMs);
    }
    if (!guest->connection.Flush() || guest->deadline.passed()) {
      End(guest, /*left=*/false);
    }
    it = guest->gone ? guests_.erase(it) : std::next(it);
  }
}

void Rendezvous::SweepMeetings() {
  for (auto it = hosted_.begin(); it != hosted_.end();) {
    const Hosted* hosted = it->get();
    const bool needed =
        !hosted->over() ||
        std::any_of(guests_.begin(), guests_.end(),
                    [&](const auto& g) { return g->hosted == hosted; });
    if (needed) {
      ++it;
      continue;
    }
    if (!hosted->fixed) {
      used_.push_back({hosted->secret, hosted->meeting.Verdict()});
      if (used_.size() > kMaxUsed) used_.pop_front();
    }
    it = hosted_.erase(it);
  }
}

}  // namespace axon
