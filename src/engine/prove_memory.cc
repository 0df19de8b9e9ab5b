// SPDX-License-Identifier: Apache-2.0
// What operations do to memory: cells that are read and written.
#include "absl/strings/str_cat.h"
#include "engine/prove_world.h"
#include "schedule/collective.h"

namespace axon {
namespace {

// Messages are told apart by their number and the cell within them.
constexpr uint64_t kCellsOfMessage = uint64_t{1} << 24;

}  // namespace

bool Proof::Do(size_t r, const PlannedOp& op, int slice) {
  ProofRank& rank = ranks_[r];
  ++rank.clock[r];
  const RankPairs& pairs = FactsOf(r).pairs[r];
  for (uint32_t i = 0; i < op.num_incoming; ++i) {
    if (!ReadMessage(r, PlanOf(r).incoming[op.first_incoming + i], slice,
                     pairs.expected[rank.op][i])) {
      return false;
    }
  }
  const bool reads_own = op.kind != OpKind::kRecv;
  if (reads_own && !OwnScratch(r, op.source, slice)) return false;
  if (op.kind == OpKind::kReduce && !OwnScratch(r, op.destination, slice)) {
    return false;
  }
  if (!Sends(op.kind) && !WriteSpan(r, op, slice)) return false;
  return op.unit < 0 || Send(r, op, slice, pairs.send[rank.op]);
}

bool Proof::OwnScratch(size_t r, Span span, int slice) {
  if (span.buffer != Buffer::kScratch) return true;
  for (int i = span.first; i < span.first + span.count; ++i) {
    if (ranks_[r].scratch.at(static_cast<size_t>(i)) != slice) {
      return Fail(r, "reads scratch of another slice");
    }
  }
  return true;
}

bool Proof::Write(size_t r, Cell& cell) {
  ProofRank& rank = ranks_[r];
  const int reader = cell.Write(++rank.writes, rank.clock);
  return reader < 0 || Fail(r, absl::StrCat("overwrites a buffer that rank ",
                                            reader, " may still read"));
}

bool Proof::WriteSpan(size_t r, const PlannedOp& op, int slice) {
  const Span span = op.destination;
  if (span.buffer == Buffer::kScratch) {
    for (int i = span.first; i < span.first + span.count; ++i) {
      ranks_[r].scratch.at(static_cast<size_t>(i)) = slice;
    }
    return true;
  }
  for (int i = 0; i < span.count; ++i) {
    Cell* cell = CellOf(r, ranks_[r].call, span, i, slice);
    if (cell == nullptr) return Fail(r, "writes out of range");
    // In place, a plain copy to itself does nothing.
    if (op.kind == OpKind::kCopy && !op.completes &&
        op.source.buffer != Buffer::kScratch &&
        cell == CellOf(r, ranks_[r].call, op.source, i, slice)) {
      continue;
    }
    if (!Write(r, *cell)) return false;
  }
  return true;
}

Cell* Proof::CellOf(size_t q, size_t call, Span span, int i, int slice) {
  const BoundCall& c = *calls_[call];
  const Place place{static_cast<int>(n_), static_cast<int>(q), c.call.root};
  const int cuts = c.call.schedules[q].cuts;
  const bool in = span.buffer == Buffer::kIn;
  const InPlace lie = InPlaceOf(c.call.collective, place);
  int block = in ? 0 : InBlocks(c.call.collective, place);
  if (c.in_place && lie.possible) block = in ? lie.in_at : lie.out_at;
  const int piece = block * cuts + span.first + i;
  const size_t at = static_cast<size_t>(piece) * static_cast<size_t>(c.slices) +
                    static_cast<size_t>(slice);
  std::vector<Cell>& memory = facts_[call].memory[q];
  return at < memory.size() ? &memory[at] : nullptr;
}

bool Proof::Send(size_t r, const PlannedOp& op, int slice, int number) {
  ProofRank& rank = ranks_[r];
  CallFacts& facts = FactsOf(r);
  const Span span = SentSpan(op);
  SentMessage& message =
      facts
          .messages[r][static_cast<size_t>(slice) * facts.pairs[r].sent.size() +
                       static_cast<size_t>(number)];
  message.number = ++messages_;
  message.step = rank.clock[r];
  if (Reaches(rank.call, r, span.buffer)) {
    for (int i = 0; i < span.count; ++i) {
      const Cell* cell = CellOf(r, rank.call, span, i, slice);
      if (cell == nullptr) return Fail(r, "sends what is out of range");
      message.contents.push_back(cell->content());
    }
    return true;
  }
  const size_t unit = CallOf(r).unit;
  const size_t begin = SlicesOf(r, r).PositionOf(slice, rank.lease.position) +
                       static_cast<size_t>(op.unit) * unit;
  const size_t size = span.count * unit;
  if (begin + size > rank.box.size()) {
    return Fail(r, "sends beyond the end of its outbox");
  }
  for (size_t i = 0; i < size; ++i) {
    const uint64_t content = message.number * kCellsOfMessage + i;
    const int reader = rank.box[begin + i].Write(content, rank.clock);
    if (reader >= 0) {
      return Fail(r, absl::StrCat("overwrites a message that rank ", reader,
                                  " may still read"));
    }
  }
  return true;
}

bool Proof::ReadMessage(size_t r, const Incoming& in, int slice,
                        SendName name) {
  ProofRank& rank = ranks_[r];
  CallFacts& facts = FactsOf(r);
  const auto q = static_cast<size_t>(name.rank);
  const size_t sends = facts.pairs[q].sent.size();
  const SentMessage& message =
      facts.messages[q][static_cast<size_t>(slice) * sends +
                        static_cast<size_t>(name.number)];
  if (message.number == 0 || message.step > rank.clock[q]) {
    return Fail(
        r, absl::StrCat("reads what rank ", q, " may not have written yet"));
  }
  Cell& line = ranks_[q].lines[Number(r) % options_.lines];
  if (line.content() != Number(r)) {
    return Fail(r,
                absl::StrCat("needs a line that rank ", q, " has used again"));
  }
  line.Read(static_cast<int>(r), rank.clock[r]);
  const Span meant = facts.pairs[q].sent[static_cast<size_t>(name.number)];
  const bool right =
      in.source == meant && (Reaches(rank.call, q, in.source.buffer)
                                 ? ReadInPlace(r, q, in.source, slice, message)
                                 : ReadCopy(r, q, in, slice, message));
  return right || Fail(r, absl::StrCat("finds another message of rank ", q,
                                       " than the one it is meant to find"));
}

bool Proof::ReadInPlace(size_t r, size_t q, Span span, int slice,
                        const SentMessage& message) {
  for (int i = 0; i < span.count; ++i) {
    Cell* cell = CellOf(q, ranks_[r].call, span, i, slice);
    if (cell == nullptr ||
        cell->content() != message.contents[static_cast<size_t>(i)]) {
      return false;
    }
    cell->Read(static_cast<int>(r), ranks_[r].clock[r]);
  }
  return true;
}

bool Proof::ReadCopy(size_t r, size_t q, const Incoming& in, int slice,
                     const SentMessage& message) {
  const size_t unit = CallOf(r).unit;
  const size_t begin =
      SlicesOf(r, q).PositionOf(slice, FactsOf(r).lease[q]) + in.unit * unit;
  const size_t size = in.source.count * unit;
  std::vector<Cell>& box = ranks_[q].box;
  if (begin + size > box.size()) return false;
  for (size_t i = 0; i < size; ++i) {
    Cell& cell = box[begin + i];
    if (cell.content() != message.number * kCellsOfMessage + i) return false;
    cell.Read(static_cast<int>(r), ranks_[r].clock[r]);
  }
  return true;
}

}  // namespace axon
