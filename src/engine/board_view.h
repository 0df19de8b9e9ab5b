// SPDX-License-Identifier: Apache-2.0
// What one rank knows of its peers on a board: how far each has come and what
// its line of the current call said. Belongs to the thread that runs the rank's
// calls; only it enters calls and publishes progress.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/poll.h"
#include "transport/board.h"

namespace axon {

// A call in words and as a hash; what must agree on all ranks.
enum class CallVariant : uint8_t { kPlain, kUneven, kSplit };
struct Signature {
  uint8_t collective = 0, type = 0, op = 0;
  int32_t root = -1;
  uint64_t count = 0;
  uint64_t extra = 0;  // hash of further arguments that must agree
  CallVariant variant = CallVariant::kPlain;
};
// The hash of the call alone, and what it makes of that of all calls before.
uint64_t Digest(const Signature& signature);
uint32_t Mix(uint32_t rolling, uint64_t digest);
// "call 3, all_reduce of 7 float32, sum".
std::string Describe(const CallRecord& record);
// What a rank is doing, from its block: "in call 3, … for 2.1 s, 2 operations
// done", "between calls, last call 3, …", and what its queue waits behind.
std::string DescribeState(const Board& board, int rank);

class BoardView {
 public:
  // `calls` have been made before: not 0 in tests near the wrap-around.
  explicit BoardView(Board& board, uint64_t calls = 0);

  struct Peer {
    uint64_t count;                  // it has reached this
    uint64_t call = 0;               // whose line was read, as calls() counts
    const LineBody* body = nullptr;  // of that line
  };

  Board& board() { return board_; }
  uint32_t call() const { return call_; }
  // The same number, which does not wrap.
  uint64_t calls() const { return calls_; }
  // A call that all peers are known to have finished.
  uint32_t floor() const { return floor_; }
  const Peer& peer(int rank) const { return peers_[rank]; }
  // The peer whose line or count was missing last; -1: none.
  int waiting_for() const { return waiting_for_; }
  void AskToWake() {
    if (waiting_for_ >= 0) board_.AskToWake(waiting_for_);
  }
  // Whether that has become another peer since this was asked last: then
  // something has come, and the other must be asked before this rank may sleep.
  bool WaitsForAnother() {
    const int before = std::exchange(known_waiting_for_, waiting_for_);
    return before >= 0 && before != waiting_for_;
  }

  // Begins the next call: numbers it and notes its signature, whose Digest may
  // be known.
  void NextCall(const Signature& signature) {
    NextCall(signature, Digest(signature));
  }
  void NextCall(const Signature& signature, uint64_t digest);
  // kReady when all peers have finished `call`, and the call before the line of
  // this one is used again.
  Poll AwaitFinished(uint32_t call) {
    if (static_cast<int32_t>(floor_ - call) >= 0) return Poll::kReady;
    return LookForFinished(call);
  }
  // Where the body of this call's line goes; then it is shown to peers.
  LineBody& line() { return board_.mine().lines[call_ % kCallLines].body; }
  void PostLine() {
    // release: body, record, and what was put into the outbox before.
    board_.mine().lines[call_ % kCallLines].word.store(
        (static_cast<uint64_t>(call_) << 32) | hash_,
        std::memory_order_release);
    board_.Published();
  }
  // kReady when the peer has entered this call too, with the same signature;
  // kFailed if it has entered another one (the board has failed then).
  // `prologue`: operations that it had done before it posted its line.
  Poll AwaitLine(int rank, uint32_t prologue) {
    Peer& peer = peers_[rank];
    if (peer.call == calls_) return Poll::kReady;
    const CallLine& line = board_.block(rank).lines[call_ % kCallLines];
    // acquire: see PostLine.
    const uint64_t word = line.word.load(std::memory_order_acquire);
    if (static_cast<uint32_t>(word >> 32) != call_) {
      waiting_for_ = rank;
      return Poll::kPending;
    }
    if (static_cast<uint32_t>(word) != hash_) {
      FailMismatch(rank, static_cast<uint32_t>(word));
      return Poll::kFailed;
    }
    peer.call = calls_;
    peer.body = &line.body;
    const uint64_t count = Count(call_, prologue);
    if (Reached(count, peer.count)) peer.count = count;
    return Poll::kReady;
  }
  // kReady when the peer has done `done` operations of this call.
  Poll AwaitDone(int rank, uint32_t done) {
    const uint64_t target = Count(call_, done);
    Peer& peer = peers_[rank];
    if (Reached(peer.count, target)) return Poll::kReady;
    // acquire: what the peer wrote before it counted is visible.
    const uint64_t count =
        board_.block(rank).progress.load(std::memory_order_acquire);
    if (Reached(count, peer.count)) peer.count = count;
    if (Reached(count, target)) return Poll::kReady;
    waiting_for_ = rank;
    return Poll::kPending;
  }
  // I have done `done` operations of this call.
  void Publish(uint32_t done) { Store(Count(call_, done)); }
  // I am done with this call: nothing of it will be read or written by me.
  void Finish() { Store(Count(call_ + 1, 0)); }
  // All peers have been seen in this call, so they have finished the last one.
  void AllEntered() { floor_ = call_ - 1; }

  // Marks the time from which this call waits, for dumps.
  void NoteWaiting();
  // It has ended after all.
  void NoteDone();
  // Peers that have not entered this call, and those that have but are not done
  // with it, as text for a timeout.
  std::string DescribeLaggards() const;
  // The present call in words.
  std::string DescribeCall() const;

 private:
  // Counts are compared by the sign of their difference, so a published one
  // must not fall 2^31 calls behind; small calls publish none.
  static constexpr uint32_t kCallsToPublish = 1 << 24;

  void Store(uint64_t count) {
    // release: all that this rank wrote for peers comes before.
    board_.mine().progress.store(count, std::memory_order_release);
    board_.Published();
  }
  Poll LookForFinished(uint32_t call);
  bool SeenFinished(int rank, uint32_t call);
  void FailMismatch(int rank, uint32_t their_hash);

  Board& board_;
  uint64_t calls_;
  uint32_t call_;
  uint32_t floor_;
  uint32_t hash_ = 0;
  int waiting_for_ = -1;
  int known_waiting_for_ = -1;  // as WaitsForAnother() has told
  std::vector<Peer> peers_;
};

}  // namespace axon
