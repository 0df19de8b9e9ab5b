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

// One round of a 64-bit multiply-and-fold. (Its lower half depends on all of
// `a` and `b`.)
inline uint64_t Fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const auto product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// A call in words and as a hash; what must agree on all ranks.
enum class CallVariant : uint8_t { kPlain, kUneven, kSplit };
struct Signature {
  Signature() : Signature(0, 0, 0, -1, 0) {}
  // `extra`: hash of further arguments that must agree.
  Signature(uint8_t collective, uint8_t type, uint8_t op, int32_t root,
            uint64_t count, uint64_t extra = 0,
            CallVariant variant = CallVariant::kPlain);

  uint64_t kind;  // all but the next two, packed
  uint64_t count, extra;
  uint64_t digest;  // hash of the call alone
};
// What a call makes of the hash of all calls before it.
inline uint32_t Mix(uint32_t rolling, uint64_t digest) {
  // The hash rolls over the calls, so that a mismatch that nobody could see
  // (two roots that only send) is seen at the next call.
  return static_cast<uint32_t>(Fold(digest, rolling ^ 0x2d358dccaa6c78a5ULL));
}
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
  uint32_t call() const { return static_cast<uint32_t>(calls_); }
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

  // Begins the next call: numbers it and notes its signature.
  void NextCall(const Signature& signature) {
    const uint32_t call = static_cast<uint32_t>(++calls_);
    word_ = (static_cast<uint64_t>(call) << 32) | Mix(hash(), signature.digest);
    waiting_for_ = known_waiting_for_ = -1;
    if (call % kCallsToPublish == 0) Store(Count(call, 0));
    // Relaxed, all: the line's release makes them visible to whoever reads it;
    // a reader of a dump may see a mixture.
    constexpr auto kRelaxed = std::memory_order_relaxed;
    CallRecord& record = board_.mine().records[call % kCallLines];
    record.kind.store(signature.kind, kRelaxed);
    record.count.store(signature.count, kRelaxed);
    record.extra.store(signature.extra, kRelaxed);
    record.began_ns.store(0, kRelaxed);
    record.word.store(word_, kRelaxed);
    line_ = &board_.mine().lines[call % kCallLines];
  }
  // kReady when all peers have finished `call`, and the call before the line of
  // this one is used again.
  Poll AwaitFinished(uint32_t call) {
    if (static_cast<int32_t>(floor_ - call) >= 0) return Poll::kReady;
    return LookForFinished(call);
  }
  // Where the body of this call's line goes; then it is shown to peers.
  LineBody& line() { return line_->body; }
  void PostLine() {
    // release: body, record, and what was put into the outbox before.
    line_->word.store(word_, std::memory_order_release);
    board_.Published();
  }
  // The body of the peer's line when it has entered this call too, with the
  // same signature; null: AwaitLine will say why not. `prologue`: operations
  // that it had done before it posted its line.
  const LineBody* Entered(int rank, uint32_t prologue) {
    const CallLine& line = board_.block(rank).lines[slot()];
    // acquire: see PostLine.
    if (line.word.load(std::memory_order_acquire) != word_) return nullptr;
    // It may have come further, which will be seen when that is asked for.
    peers_[rank].count = Count(call(), prologue);
    return &line.body;
  }
  // kReady when the peer has Entered, and peer() knows its line; kFailed if it
  // has entered another call (the board has failed then).
  Poll AwaitLine(int rank, uint32_t prologue) {
    Peer& peer = peers_[rank];
    if (peer.call == calls_) return Poll::kReady;
    const LineBody* const body = Entered(rank, prologue);
    if (body == nullptr) return NoLine(rank);
    peer.call = calls_;
    peer.body = body;
    return Poll::kReady;
  }
  // kReady when the peer has done `done` operations of this call.
  Poll AwaitDone(int rank, uint32_t done) {
    const uint64_t target = Count(call(), done);
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
  void Publish(uint32_t done) { Store(Count(call(), done)); }
  // I am done with this call: nothing of it will be read or written by me.
  void Finish() { Store(Count(call() + 1, 0)); }
  // All peers have been seen in this call, so they have finished the last one.
  void AllEntered() { floor_ = call() - 1; }

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

  // Of this call and all before.
  uint32_t hash() const { return static_cast<uint32_t>(word_); }
  uint32_t slot() const { return call() % kCallLines; }
  // The peer's line was not that of this call: not yet, or it is another one.
  Poll NoLine(int rank);
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
  CallLine* line_ = nullptr;  // of this call,
  uint64_t word_;             // and what its word will be
  uint32_t floor_;
  int waiting_for_ = -1;
  int known_waiting_for_ = -1;  // as WaitsForAnother() has told
  std::vector<Peer> peers_;
};

}  // namespace axon
