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
    if (record.call() == 0) continue;
    if (last == nullptr ||
        static_cast<int32_t>(record.call() - last->call()) > 0) {
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

// The parts of Signature::kind.
constexpr int kCollectiveAt = 56, kTypeAt = 48, kOpAt = 40, kVariantAt = 32;

uint64_t Packed(uint64_t part, int at) { return part << at; }
template <typename T>
T Unpacked(uint64_t kind, int at) {
  return static_cast<T>(static_cast<uint8_t>(kind >> at));
}

}  // namespace

Signature::Signature(uint8_t collective, uint8_t type, uint8_t op, int32_t root,
                     uint64_t count, uint64_t extra, CallVariant variant)
    : kind(Packed(collective, kCollectiveAt) | Packed(type, kTypeAt) |
           Packed(op, kOpAt) |
           Packed(static_cast<uint8_t>(variant), kVariantAt) |
           static_cast<uint32_t>(root)),
      count(count),
      extra(extra),
      digest(extra ^ Fold(kind ^ 0x9e3779b97f4a7c15ULL,
                          count ^ 0xd1b54a32d192ed03ULL)) {}

std::string Describe(const CallRecord& record) {
  const uint64_t kind = record.kind.load(kRelaxed);
  const uint64_t count = record.count.load(kRelaxed);
  const auto collective = Unpacked<Collective>(kind, kCollectiveAt);
  std::string text =
      absl::StrFormat("call %u, %s", record.call(), Name(collective));
  if (collective == Collective::kBarrier) return text;
  const auto variant = Unpacked<CallVariant>(kind, kVariantAt);
  if (variant == CallVariant::kSplit) return absl::StrCat(text, " of a split");
  const char* type = Name(Unpacked<DataType>(kind, kTypeAt));
  if (variant == CallVariant::kUneven) {
    const uint64_t extra = record.extra.load(kRelaxed);
    if (extra == 0) return absl::StrCat(text, " of unequal parts of ", type);
    return absl::StrFormat("%s of unequal parts of %u %s (counts' hash %016x)",
                           text, count, type, extra);
  }
  absl::StrAppendFormat(&text, " of %u %s", count, type);
  if (collective == Collective::kAllReduce ||
      collective == Collective::kReduce ||
      collective == Collective::kReduceScatter) {
    absl::StrAppend(&text, ", ", Name(Unpacked<ReduceOp>(kind, kOpAt)));
  }
  const auto root = static_cast<int32_t>(static_cast<uint32_t>(kind));
  if (root >= 0) absl::StrAppend(&text, ", root ", root);
  return text;
}

std::string DescribeState(const Board& board, int rank) {
  Block& block = board.block(rank);
  const CallRecord* last = LastCall(block);
  if (last == nullptr) return "has made no collective call" + BusyWith(block);
  const uint32_t call = last->call();
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
    : board_(board), calls_(calls), word_(calls << 32), floor_(call()) {
  peers_.assign(static_cast<size_t>(board.ranks()), Peer{Count(call() + 1, 0)});
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

Poll BoardView::NoLine(int rank) {
  // acquire: of a mismatch, the record.
  const uint64_t word =
      board_.block(rank).lines[slot()].word.load(std::memory_order_acquire);
  if (word == word_ || static_cast<uint32_t>(word >> 32) != call()) {
    waiting_for_ = rank;
    return Poll::kPending;
  }
  FailMismatch(rank, static_cast<uint32_t>(word));
  return Poll::kFailed;
}

void BoardView::FailMismatch(int rank, uint32_t their_hash) {
  // The first call that differs is the one to name: hashes roll.
  Block& mine = board_.mine();
  Block& theirs = board_.block(rank);
  uint32_t first = call();
  for (uint32_t back = 1; back < kCallLines; ++back) {
    const CallRecord& a = RecordOf(mine, call() - back);
    const CallRecord& b = RecordOf(theirs, call() - back);
    if (a.call() != call() - back || b.call() != call() - back ||
        a.hash() == b.hash()) {
      break;
    }
    first = call() - back;
  }
  board_.Fail(absl::FailedPreconditionError(absl::StrFormat(
      "ranks disagree: %s made %s, but %s made %s (hash %08x against %08x); "
      "all ranks must make the same calls in the same order",
      board_.Describe(board_.me()), axon::Describe(RecordOf(mine, first)),
      board_.Describe(rank), axon::Describe(RecordOf(theirs, first)), hash(),
      their_hash)));
}

void BoardView::NoteWaiting() {
  std::atomic<uint64_t>& began = RecordOf(board_.mine(), call()).began_ns;
  if (began.load(kRelaxed) == 0) {
    began.store(static_cast<uint64_t>(NowNs()), kRelaxed);
  }
}

void BoardView::NoteDone() {
  RecordOf(board_.mine(), call()).began_ns.store(0, kRelaxed);
}

std::string BoardView::DescribeCall() const {
  return axon::Describe(RecordOf(board_.mine(), call()));
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
    } else if (static_cast<int32_t>(last->call() - call()) < 0) {
      std::string text = absl::StrCat(board_.Describe(q), ", whose last was ",
                                      axon::Describe(*last));
      if (static_cast<int32_t>(block.calls_made.load(kRelaxed) - call()) >= 0) {
        absl::StrAppend(&text, " (it has queued this one", BusyWith(block),
                        ")");
      }
      missing.push_back(text);
    } else if (!Reached(progress, Count(call() + 1, 0))) {
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
