// SPDX-License-Identifier: Apache-2.0
#include "engine/board_view.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/types.h"

namespace axon {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

CallRecord& RecordOf(Block& block, uint32_t call) {
  return block.records[call % kCallLines];
}

// The last call that the rank has entered, by its records.
const CallRecord* LastCall(Block& block) {
  const CallRecord* last = nullptr;
  for (const CallRecord& record : block.records) {
    if (record.call.load(kRelaxed) == 0) continue;
    if (last == nullptr ||
        static_cast<int32_t>(record.call.load(kRelaxed) -
                             last->call.load(kRelaxed)) > 0) {
      last = &record;
    }
  }
  return last;
}

// ", behind …" if the rank's queue waits for another call.
std::string BusyWith(const Block& block) {
  const std::string text = block.busy_with.Read();
  return text.empty() ? text : absl::StrCat(", behind ", text);
}

// One round of a 64-bit multiply-and-fold.
uint64_t Fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const auto product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

uint64_t Digest(const Signature& s) {
  const uint64_t kind = (static_cast<uint64_t>(s.collective) << 56) |
                        (static_cast<uint64_t>(s.type) << 48) |
                        (static_cast<uint64_t>(s.op) << 40) |
                        (static_cast<uint64_t>(s.variant) << 32) |
                        (static_cast<uint32_t>(s.root) & 0xffffffffULL);
  return s.extra ^
         Fold(kind ^ 0x9e3779b97f4a7c15ULL, s.count ^ 0xd1b54a32d192ed03ULL);
}

uint32_t Mix(uint32_t rolling, uint64_t digest) {
  // The hash rolls over the calls, so that a mismatch that nobody could see
  // (two roots that only send) is seen at the next call.
  const uint64_t y =
      Fold(digest ^ 0x8bb84b93962eacc9ULL, rolling ^ 0x2d358dccaa6c78a5ULL);
  return static_cast<uint32_t>(y ^ (y >> 32));
}

std::string Describe(const CallRecord& record) {
  const auto collective =
      static_cast<Collective>(record.collective.load(kRelaxed));
  std::string text = absl::StrFormat("call %u, %s", record.call.load(kRelaxed),
                                     Name(collective));
  if (collective == Collective::kBarrier) return text;
  const auto variant = static_cast<CallVariant>(record.variant.load(kRelaxed));
  if (variant == CallVariant::kSplit) return absl::StrCat(text, " of a split");
  if (variant == CallVariant::kUneven) {
    const char* type = Name(static_cast<DataType>(record.type.load(kRelaxed)));
    const uint64_t extra = record.extra.load(kRelaxed);
    if (extra == 0) return absl::StrCat(text, " of unequal parts of ", type);
    return absl::StrFormat("%s of unequal parts of %u %s (counts' hash %016x)",
                           text, record.count.load(kRelaxed), type, extra);
  }
  absl::StrAppendFormat(
      &text, " of %u %s", record.count.load(kRelaxed),
      Name(static_cast<DataType>(record.type.load(kRelaxed))));
  if (collective == Collective::kAllReduce ||
      collective == Collective::kReduce ||
      collective == Collective::kReduceScatter) {
    absl::StrAppend(&text, ", ",
                    Name(static_cast<ReduceOp>(record.op.load(kRelaxed))));
  }
  const int root = record.root.load(kRelaxed);
  if (root >= 0) absl::StrAppend(&text, ", root ", root);
  return text;
}

std::string DescribeState(const Board& board, int rank) {
  Block& block = board.block(rank);
  const CallRecord* last = LastCall(block);
  if (last == nullptr) return "has made no collective call" + BusyWith(block);
  const uint32_t call = last->call.load(kRelaxed);
  const uint64_t progress = block.progress.load(std::memory_order_acquire);
  const uint32_t made = block.calls_made.load(kRelaxed);
  const bool waits = last->began_ns.load(kRelaxed) != 0;
  std::string text;
  if (waits && !Reached(progress, Count(call + 1, 0))) {
    const double seconds =
        static_cast<double>(
            NowNs() - static_cast<int64_t>(last->began_ns.load(kRelaxed))) /
        1e9;
    text = absl::StrFormat("waits in %s for %.1f s", Describe(*last), seconds);
    if (Reached(progress, Count(call, 1))) {
      absl::StrAppendFormat(&text, ", %u operations done",
                            static_cast<uint32_t>(progress));
    }
  } else {
    text = "last entered " + Describe(*last);
  }
  if (static_cast<int32_t>(made - call) > 0) {
    absl::StrAppendFormat(&text, ", %u more calls queued", made - call);
  }
  return text + BusyWith(block);
}

BoardView::BoardView(Board& board, uint64_t calls)
    : board_(board),
      calls_(calls),
      call_(static_cast<uint32_t>(calls)),
      floor_(call_) {
  peers_.assign(static_cast<size_t>(board.ranks()), Peer{Count(call_ + 1, 0)});
}

void BoardView::NextCall(const Signature& s, uint64_t digest) {
  ++calls_;
  ++call_;
  hash_ = Mix(hash_, digest);
  waiting_for_ = known_waiting_for_ = -1;
  if (call_ % kCallsToPublish == 0) Store(Count(call_, 0));
  // Relaxed, all: the line's release makes them visible to whoever reads it;
  // a reader of a dump may see a mixture.
  CallRecord& record = RecordOf(board_.mine(), call_);
  record.count.store(s.count, kRelaxed);
  record.extra.store(s.extra, kRelaxed);
  record.began_ns.store(0, kRelaxed);
  record.call.store(call_, kRelaxed);
  record.hash.store(hash_, kRelaxed);
  record.root.store(s.root, kRelaxed);
  record.collective.store(s.collective, kRelaxed);
  record.type.store(s.type, kRelaxed);
  record.op.store(s.op, kRelaxed);
  record.variant.store(static_cast<uint8_t>(s.variant), kRelaxed);
}

Poll BoardView::LookForFinished(uint32_t call) {
  for (int q = 0; q < board_.ranks(); ++q) {
    if (q != board_.me() && !SeenFinished(q, call)) {
      waiting_for_ = q;
      return Poll::kPending;
    }
  }
  floor_ = call;
  return Poll::kReady;
}

bool BoardView::SeenFinished(int rank, uint32_t call) {
  Peer& peer = peers_[rank];
  const uint64_t target = Count(call + 1, 0);
  if (Reached(peer.count, target)) return true;
  const Block& block = board_.block(rank);
  // acquire, both: its reads of my memory came before its stores.
  const uint64_t count = block.progress.load(std::memory_order_acquire);
  if (Reached(count, peer.count)) peer.count = count;
  const uint64_t word =
      block.lines[(call + 1) % kCallLines].word.load(std::memory_order_acquire);
  const uint64_t entered = Count(static_cast<uint32_t>(word >> 32), 0);
  if (Reached(entered, peer.count)) peer.count = entered;
  return Reached(peer.count, target);
}

void BoardView::FailMismatch(int rank, uint32_t their_hash) {
  // The first call that differs is the one to name: hashes roll.
  Block& mine = board_.mine();
  Block& theirs = board_.block(rank);
  uint32_t call = call_;
  for (uint32_t back = 1; back < kCallLines; ++back) {
    const CallRecord& a = RecordOf(mine, call_ - back);
    const CallRecord& b = RecordOf(theirs, call_ - back);
    if (a.call.load(kRelaxed) != call_ - back ||
        b.call.load(kRelaxed) != call_ - back ||
        a.hash.load(kRelaxed) == b.hash.load(kRelaxed)) {
      break;
    }
    call = call_ - back;
  }
  board_.Fail(absl::FailedPreconditionError(absl::StrFormat(
      "ranks disagree: %s made %s, but %s made %s (hash %08x against %08x); "
      "all ranks must make the same calls in the same order",
      board_.Describe(board_.me()), axon::Describe(RecordOf(mine, call)),
      board_.Describe(rank), axon::Describe(RecordOf(theirs, call)), hash_,
      their_hash)));
}

void BoardView::NoteWaiting() {
  std::atomic<uint64_t>& began = RecordOf(board_.mine(), call_).began_ns;
  if (began.load(kRelaxed) == 0) {
    began.store(static_cast<uint64_t>(NowNs()), kRelaxed);
  }
}

void BoardView::NoteDone() {
  RecordOf(board_.mine(), call_).began_ns.store(0, kRelaxed);
}

std::string BoardView::DescribeCall() const {
  return axon::Describe(RecordOf(board_.mine(), call_));
}

std::string BoardView::DescribeLaggards() const {
  std::vector<std::string> missing, behind;
  for (int q = 0; q < board_.ranks(); ++q) {
    if (q == board_.me()) continue;
    Block& block = board_.block(q);
    const CallRecord* last = LastCall(block);
    const uint64_t progress = block.progress.load(std::memory_order_acquire);
    if (last == nullptr) {
      missing.push_back(absl::StrCat(
          board_.Describe(q), ", which has entered no call",
          block.calls_made.load(kRelaxed) != 0 ? " (it has queued this one"
                                               : "",
          block.calls_made.load(kRelaxed) != 0 ? BusyWith(block) + ")" : ""));
    } else if (static_cast<int32_t>(last->call.load(kRelaxed) - call_) < 0) {
      std::string text = absl::StrCat(board_.Describe(q), ", whose last was ",
                                      axon::Describe(*last));
      if (static_cast<int32_t>(block.calls_made.load(kRelaxed) - call_) >= 0) {
        absl::StrAppend(&text, " (it has queued this one", BusyWith(block),
                        ")");
      }
      missing.push_back(text);
    } else if (!Reached(progress, Count(call_ + 1, 0))) {
      behind.push_back(board_.Describe(q));
    }
  }
  std::string text;
  if (!missing.empty()) {
    absl::StrAppend(&text, "missing: ", absl::StrJoin(missing, "; "));
  }
  if (!behind.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ",
                    "not done: ", absl::StrJoin(behind, "; "));
  }
  return text.empty() ? "no rank is missing" : text;
}

}  // namespace axon
