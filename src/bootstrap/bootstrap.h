// SPDX-License-Identifier: Apache-2.0
// One rank's membership in a meeting: how the ranks of a communicator find each
// other and exchange what set-up needs, before there is any transport. Owned by
// the communicator being made, used by one thread at a time. All ranks make the
// same calls in the same order. The first error is kept: later calls return it.
//
// Codes: DeadlineExceeded (who is missing), Unavailable (a rank or the server
// of the meeting died), FailedPrecondition (ranks disagree, a number is taken
// twice, the id was used before), ResourceExhausted (the system), or what a
// rank handed to Fail().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "bootstrap/connection.h"
#include "bootstrap/unique_id.h"

namespace axon {

class Rendezvous;

struct BootstrapOptions {
  int64_t timeout_ms = 0;  // for Join and all later calls together; 0: none
  int64_t version = 0;     // AXON_VERSION_CODE; must agree
  std::string digest;      // settings that must agree: SettingsDigest()
  // Opens a fixed id's place on rank 0; not needed otherwise. Must live until
  // all ranks have called ~Bootstrap.
  Rendezvous* rendezvous = nullptr;
};

class Bootstrap {
 public:
  struct Peer {
    int64_t pid;
    std::string host;
  };

  // Returns when all ranks have joined.
  static absl::StatusOr<std::unique_ptr<Bootstrap>> Join(
      const UniqueId& id, int rank, int nranks,
      const BootstrapOptions& options);

  // Leaves: the others are not disturbed if they need nothing more of this
  // rank, and told at once if they do. Local.
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }
  const std::vector<Peer>& peers() const { return peers_; }

  // Every rank's text, in rank order; they may differ in length.
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine);
  // Returns when every rank has called.
  absl::Status Barrier();

  // Whether all still take part, without waiting: for the time between calls
  // that is spent with other ranks. Called from no other call.
  absl::Status Check();

  // Tells all others that this rank cannot go on: their calls return `why` with
  // this rank's name before it. Local.
  void Fail(const absl::Status& why);

  // Of all later calls together, from now on; 0: none.
  void SetTimeout(int64_t ms) { deadline_ = Deadline::In(ms); }

 private:
  struct Answer {
    FrameKind kind;
    std::string body;
  };

  Bootstrap(int rank, const BootstrapOptions& options)
      : rank_(rank), deadline_(Deadline::In(options.timeout_ms)) {}

  // One attempt at one address, `only`: there is no other. `*final` becomes
  // true with an answer from the meeting, after which no other attempt makes
  // sense.
  absl::Status TryJoin(const Address& address, bool only, int nranks,
                       const BootstrapOptions& options,
                       absl::string_view secret, bool* final);
  absl::Status TakePeers(const Answer& answer, int nranks);
  // The next frame. An error frame becomes its status and sets *from_meeting,
  // which says whether the server has shown that it is one.
  absl::StatusOr<Answer> Receive(Deadline deadline, bool* from_meeting);
  absl::Status Keep(absl::Status status);

  const int rank_;
  Deadline deadline_;
  std::unique_ptr<Connection> connection_;
  std::string server_;  // its address; later also host and pid
  std::vector<Peer> peers_;
  absl::Status status_;
};

}  // namespace axon
