// SPDX-License-Identifier: Apache-2.0
// One meeting: collects the ranks of a communicator to be, then passes around
// what they contribute, and tells every one of them at once when something is
// wrong. Knows no sockets but the members' connections, which it only fills.
// Owned by Rendezvous and used under its lock.
//
// All members talk to this one place (a star). A tree may take its place behind
// Bootstrap without a change to callers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "bootstrap/connection.h"
#include "bootstrap/wire.h"

namespace axon {

class Meeting {
 public:
  // Takes in a rank that has shown the secret. If it is refused the meeting may
  // have failed for the others too; the newcomer is the caller's to answer.
  absl::Status Admit(const Hello& hello, Connection* connection);

  void OnFrame(int rank, const Frame& frame);
  // The connection of a member has ended, `left`: because the member has no
  // more need of the meeting. It is not touched any more.
  void OnClosed(int rank, bool left);
  // Fails if the deadline has passed; `trouble` is what the server knows about
  // connections that it could not accept.
  void OnTime(absl::string_view trouble);
  // The first failure counts. Every member is told.
  void Fail(const absl::Status& status);

  const Deadline& deadline() const { return deadline_; }
  bool complete() const { return complete_; }  // every rank has come
  bool failed() const { return !status_.ok(); }
  // What to tell those who come when the meeting is over.
  absl::Status Verdict() const;

 private:
  struct Member {
    Connection* connection = nullptr;  // null: not here yet, or gone
    bool came = false;
    int64_t pid = 0;
    std::string host;
    std::optional<std::string> part;  // of the all-gather under way
  };

  absl::Status Check(const Hello& hello) const;
  void Complete();
  void Contribute(int rank, absl::string_view body);
  void Distribute();
  void Broadcast(const std::string& bytes);
  void FlushOthers();
  std::string Who(size_t rank) const;
  void FailForLeft(size_t rank);
  // The first member that the predicate holds for.
  template <typename Predicate>
  size_t IndexOf(Predicate predicate) const;
  // Ranks for which `here` is false, then those for which it is true.
  template <typename Predicate>
  std::string MissingText(Predicate here) const;

  Hello first_;  // the first to come: all others must agree with it
  std::vector<Member> members_;
  size_t arrived_ = 0;
  size_t present_ = 0;  // members with a connection
  bool complete_ = false;
  absl::Status status_;
  Deadline deadline_;
  int64_t round_ = 0;     // all-gathers done
  size_t parts_ = 0;      // contributions to the one under way
  std::string gathered_;  // the last answer, while connections may borrow it
};

}  // namespace axon
