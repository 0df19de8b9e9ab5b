// SPDX-License-Identifier: Apache-2.0
// Serves meetings: the place where the ranks of communicators to be find each
// other and exchange what set-up needs. Owned by the process (comm's process
// object), one for all its communicators, with one thread that starts with the
// first meeting, sleeps when nothing happens and ends with the object. All
// calls may be made from any thread.
//
// Strangers harm nothing: who does not present a meeting's secret within five
// seconds is dropped, at most 1024 connections may be undecided, and when
// descriptors run out the undecided go first.
#pragma once

#include <poll.h>

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/fd.h"
#include "bootstrap/connection.h"
#include "bootstrap/meeting.h"
#include "bootstrap/socket.h"
#include "bootstrap/unique_id.h"

namespace axon {

struct RendezvousOptions {
  std::string socket_ifname;  // AXON_SOCKET_IFNAME
  std::string port_range;     // AXON_PORT_RANGE
};

class Rendezvous {
 public:
  Rendezvous() = default;
  // Waits up to two seconds for what members have yet to be told.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // Opens a meeting with a fresh secret at this machine's addresses.
  absl::StatusOr<UniqueId> Open(const RendezvousOptions& options);

  // Opens the meeting of a fixed id here, on behalf of its rank 0; does nothing
  // if it is open. Such a place can be used again when all ranks have met.
  absl::Status OpenFixed(const UniqueId& id);

 private:
  struct Listener {
    Fd fd;
    uint16_t port;
    Deadline paused;  // out of descriptors: not polled until then
  };
  struct Hosted {
    Meeting meeting;
    std::string secret;
    uint16_t port;
    bool fixed;
    Listener* listener;  // null: a fixed place that was given up
    bool over() const { return meeting.complete() || meeting.failed(); }
  };
  // A connection, undecided while it is neither hosted, closing nor gone.
  struct Guest {
    Connection connection;
    uint16_t port;      // where it came in
    Deadline deadline;  // for its hello, or for reading its last bytes
    Hosted* hosted = nullptr;
    int rank = -1;  // -1: not a member
    bool closing = false;
    bool gone = false;
  };
  struct Used {
    std::string secret;
    absl::Status verdict;  // what late comers are told
  };

  absl::Status Start();
  void Wake();
  absl::StatusOr<Listener*> AddListener(Fd fd);
  void Host(const std::string& secret, Listener* listener, bool fixed);
  Hosted* Find(absl::string_view secret, uint16_t port);

  // The rest runs on the thread.
  void Serve();
  int Gather(std::vector<pollfd>* fds);
  void Handle(const std::vector<pollfd>& fds);
  void Accept(Listener* listener);
  bool ShedOldest();
  void Read(Guest* guest);
  void ReadFrames(Guest* guest);
  void Greet(Guest* guest);
  absl::Status Admit(Guest* guest, Hosted* hosted, const HelloView& view);
  void Refuse(Guest* guest, const absl::Status& why);
  void End(Guest* guest, bool left);
  void CloseFixed();
  void SweepGuests();
  void SweepMeetings();

  std::mutex mutex_;  // guards all below; not held in poll()
  Fd wake_;
  bool stopping_ = false;
  Deadline stop_by_;
  std::list<std::unique_ptr<Listener>> listeners_;
  Listener* shared_ = nullptr;  // serves all meetings that are not fixed
  std::list<std::unique_ptr<Hosted>> hosted_;
  std::list<std::unique_ptr<Guest>> guests_;
  size_t undecided_ = 0;   // among guests_
  std::deque<Used> used_;  // past meetings, the newest last
  std::string trouble_;    // why the last accept failed; for texts of timeouts
  std::thread thread_;     // set once, under mutex_
};

}  // namespace axon
