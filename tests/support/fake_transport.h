// SPDX-License-Identifier: Apache-2.0
// Channels between the ranks of a test, in ordinary memory: bounded, and as
// unhelpful as a transport may be. Messages and credits come late, one by one,
// by a seeded number of polls; memory that is not the caller's any more, or not
// yet, is overwritten with rubbish; links fail when asked to. With one thread a
// seed gives the same run every time. Owned by the test; a link may be used by
// one thread at each end.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "transport/channel.h"

namespace axon {

class FakeLink;

class FakeTransport {
 public:
  struct Options {
    size_t max_message = 1024;
    int credits = 2;     // messages in flight each way
    int most_polls = 0;  // what comes late needs up to so many polls
    uint64_t seed = 1;
  };

  FakeTransport(int ranks, const Options& options);
  ~FakeTransport();

  int ranks() const { return ranks_; }
  // Of rank `me`, to and from `peer`, which is another rank.
  Channel& channel(int me, int peer) { return *channels_[At(me, peer)]; }
  // Those of rank `me`, by peer; null for itself.
  std::vector<Channel*> channels(int me);

  // Both directions between two ranks fail, now or at the `calls`-th call of
  // either end. What is in flight is lost.
  void Fail(int a, int b, const absl::Status& why) { FailAfter(a, b, 0, why); }
  void FailAfter(int a, int b, int64_t calls, const absl::Status& why);
  // All links that have not failed do, as when a communicator is given up.
  void FailAll(const absl::Status& why);
  // Messages that nobody has popped.
  int unread() const;

 private:
  size_t At(int from, int to) const {
    return static_cast<size_t>(from) * static_cast<size_t>(ranks_) +
           static_cast<size_t>(to);
  }

  int ranks_;
  std::vector<std::unique_ptr<FakeLink>> links_;    // from * ranks + to
  std::vector<std::unique_ptr<Channel>> channels_;  // me * ranks + peer
};

}  // namespace axon
