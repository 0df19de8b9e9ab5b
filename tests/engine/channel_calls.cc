// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/channel_calls.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace axon {
namespace {

constexpr size_t kGuard = 64;
constexpr std::byte kGuardByte{0xA5};
// So long nothing may happen while something still will.
constexpr int kIdleSteps = 400;

// Small whole numbers: their sums are exact in every type here, whatever the
// order.
int ValueAt(int rank, size_t at, int round) {
  const uint64_t x = at * 0x9e3779b97f4a7c15 +
                     static_cast<uint64_t>(rank) * 0xd1b54a32d192ed03 +
                     static_cast<uint64_t>(round) * 0x8bb84b93962eacc9;
  return static_cast<int>((x ^ (x >> 29)) * 0xbf58476d1ce4e5b9 >> 60);
}

template <typename T>
void Put(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(value));
}

void PutValue(DataType type, double value, std::byte* to) {
  switch (type) {
    case DataType::kInt8:
      return Put(static_cast<int8_t>(value), to);
    case DataType::kInt32:
      return Put(static_cast<int32_t>(value), to);
    case DataType::kFloat32:
      return Put(static_cast<float>(value), to);
    case DataType::kFloat64:
      return Put(value, to);
    case DataType::kBfloat16: {
      uint32_t bits = 0;
      const auto wide = static_cast<float>(value);
      std::memcpy(&bits, &wide, sizeof(bits));
      return Put(static_cast<uint16_t>(bits >> 16), to);
    }
    default:
      std::abort();
  }
}

std::vector<Schedule> SchedulesOf(const ChannelCase& c) {
  std::vector<Schedule> all;
  for (int r = 0; r < c.ranks; ++r) {
    all.push_back(c.algorithm->generate(Group::World(c.ranks, r, c.root)));
  }
  return all;
}

// The shortest messages with which a piece may have `lines` lines.
size_t MaxMessage(absl::Span<const Schedule> all, const CollectiveCall& call,
                  int lines) {
  size_t size = kCacheLine;
  const auto piece = static_cast<size_t>(lines) * kCacheLine;
  while (MaxPieceBytes(all, call, size) < piece) size += kCacheLine / 8;
  return size;
}

}  // namespace

std::string Describe(const ChannelCase& c) {
  return absl::StrFormat(
      "%s %s, %d ranks, root %d, %u %s, %s, in place %d, %d credits, %d polls, "
      "%d lines, seed %u",
      Name(c.algorithm->collective), c.algorithm->name, c.ranks, c.root,
      c.count, Name(c.type), Name(c.op), c.in_place, c.credits, c.most_polls,
      c.lines, c.seed);
}

std::vector<const Algorithm*> AllRows() {
  std::vector<const Algorithm*> rows;
  for (const Algorithm& row : Algorithms()) rows.push_back(&row);
  return rows;
}

std::string NameOf(const Algorithm& row) {
  return absl::StrCat(Name(row.collective), "_", row.name);
}

ChannelCalls::ChannelCalls(const ChannelCase& c)
    : c_(c),
      random_(c.seed),
      ranks_(At(c.ranks)),
      max_message_(MaxMessage(SchedulesOf(c), CallOf(0), c.lines)),
      cutting_(Cut(c.count, ElementSize(c.type), SchedulesOf(c)[0].cuts,
                   MaxPieceBytes(SchedulesOf(c), CallOf(0), max_message_))),
      transport_(c.ranks, {max_message_, c.credits, c.most_polls, c.seed}) {
  std::vector<Schedule> all = SchedulesOf(c);
  for (int r = 0; r < c.ranks; ++r) {
    ranks_[At(r)].schedule = std::move(all[At(r)]);
    ranks_[At(r)].run = std::make_unique<ChannelRun>(r, transport_.channels(r));
    Prepare(r);
    StartRound(r);
  }
}

double ChannelCalls::FactorOf(int rank) const { return 2 + rank % 2; }

CollectiveCall ChannelCalls::CallOf(int rank) const {
  CollectiveCall call;
  call.collective = c_.algorithm->collective;
  call.type = c_.type;
  call.in_layout.length = call.out_layout.length = c_.count;
  call.root = c_.root;
  if (IsReduction(call.collective)) {
    call.reduce = FindReduce(c_.type, c_.op);
    call.average = c_.op == ReduceOp::kAvg;
    call.has_factor = c_.op == ReduceOp::kPreMulSum;
    if (call.has_factor) call.factor = FactorOf(rank);
  }
  return call;
}

void ChannelCalls::Prepare(int r) {
  Rank& rank = ranks_[At(r)];
  const Collective collective = c_.algorithm->collective;
  const Place place{c_.ranks, r, c_.root};
  const size_t in = At(InBlocks(collective, place)) * block_bytes();
  const size_t out = At(OutBlocks(collective, place)) * block_bytes();
  rank.in_memory.assign(in + kGuard, kGuardByte);
  rank.out_memory.assign(out + kGuard, kGuardByte);
  rank.scratch.resize(rank.schedule.scratch_pieces * cutting_.piece_bytes());
  rank.in = rank.in_memory.data();
  rank.out = rank.out_memory.data();
  const InPlace in_place = InPlaceOf(collective, place);
  if (!c_.in_place || !in_place.possible) return;
  if (in <= out) {
    rank.in = rank.out + At(in_place.in_at) * block_bytes();
  } else {
    rank.out = rank.in + At(in_place.out_at) * block_bytes();
  }
}

void ChannelCalls::StartRound(int r) {
  Rank& rank = ranks_[At(r)];
  const Place place{c_.ranks, r, c_.root};
  for (int b = 0; b < InBlocks(c_.algorithm->collective, place); ++b) {
    const std::vector<std::byte> block = Given(r, b, rank.round);
    std::copy(block.begin(), block.end(), rank.in + At(b) * block_bytes());
  }
  CollectiveCall call = CallOf(r);
  call.in = rank.in;
  call.out = rank.out;
  rank.run->Start({&rank.schedule, call, cutting_, rank.scratch.data()});
}

std::vector<std::byte> ChannelCalls::Given(int rank, int block,
                                           int round) const {
  const size_t size = ElementSize(c_.type);
  // Where the order of sums is promised, let them depend on it.
  const bool inexact = IsFloat(c_.type) && c_.algorithm->rank_order;
  std::vector<std::byte> bytes(block_bytes());
  for (size_t i = 0; i < c_.count; ++i) {
    const int value = ValueAt(rank, At(block) * c_.count + i, round);
    PutValue(c_.type, inexact ? value / 7.0 : value, bytes.data() + i * size);
  }
  return bytes;
}

std::vector<std::byte> ChannelCalls::Wanted(int rank, int block,
                                            int round) const {
  const Statement s =
      Holds(c_.algorithm->collective, {c_.ranks, rank, c_.root}, block);
  if (s.source != kAllRanks) return Given(s.source, s.source_block, round);
  std::vector<std::vector<std::byte>> given;
  std::vector<const void*> sources;
  std::vector<double> factors;
  for (int r = 0; r < c_.ranks; ++r) {
    given.push_back(Given(r, s.source_block, round));
    sources.push_back(given.back().data());
    factors.push_back(FactorOf(r));
  }
  std::vector<std::byte> sum(block_bytes());
  void* to = sum.data();
  FindReduce(c_.type,
             c_.op)({sources.data(), c_.ranks, &to, 1, c_.count, factors.data(),
                     c_.op == ReduceOp::kAvg ? c_.ranks : 0});
  return sum;
}

void ChannelCalls::CompareBytes(int rank, const char* what, const std::byte* is,
                                const std::vector<std::byte>& wanted) {
  const auto [at, end] = std::mismatch(wanted.begin(), wanted.end(), is);
  if (at == wanted.end() || !difference_.empty()) return;
  difference_ =
      absl::StrFormat("rank %d round %d: byte %d of %s", rank,
                      ranks_[At(rank)].round, at - wanted.begin(), what);
}

void ChannelCalls::Compare(int r) {
  const Rank& rank = ranks_[At(r)];
  const Collective collective = c_.algorithm->collective;
  const Place place{c_.ranks, r, c_.root};
  for (int b = 0; b < OutBlocks(collective, place); ++b) {
    CompareBytes(r, absl::StrCat("block ", b).c_str(),
                 rank.out + At(b) * block_bytes(), Wanted(r, b, rank.round));
  }
  if (!c_.in_place) {
    for (int b = 0; b < InBlocks(collective, place); ++b) {
      CompareBytes(r, "the input", rank.in + At(b) * block_bytes(),
                   Given(r, b, rank.round));
    }
  }
  const std::vector<std::byte> guard(kGuard, kGuardByte);
  for (const auto* memory : {&rank.in_memory, &rank.out_memory}) {
    CompareBytes(r, "what lies behind a buffer",
                 memory->data() + memory->size() - kGuard, guard);
  }
}

bool ChannelCalls::StepRank(int r) {
  Rank& rank = ranks_[At(r)];
  const Poll poll = rank.run->Step();
  const bool stepped = rank.run->TookStep();
  if (poll == Poll::kPending) return stepped;
  if (poll == Poll::kReady) {
    Compare(r);
    if (++rank.round < c_.rounds) {
      StartRound(r);
      return true;
    }
  }
  rank.result = poll;
  return true;
}

void ChannelCalls::Run() {
  std::vector<int> left;
  for (int r = 0; r < c_.ranks; ++r) {
    if (ranks_[At(r)].result == Poll::kPending) left.push_back(r);
  }
  for (int idle = 0; !left.empty() && idle < kIdleSteps * c_.ranks;) {
    const size_t i = random_() % left.size();
    idle = StepRank(left[i]) ? 0 : idle + 1;
    if (result(left[i]) != Poll::kPending) {
      left.erase(left.begin() + static_cast<ptrdiff_t>(i));
    }
  }
}

std::string ChannelCalls::Positions() const {
  std::string text;
  for (int r = 0; r < c_.ranks; ++r) {
    const Rank& rank = ranks_[At(r)];
    const char* kResults[] = {"done", "not done", "failed"};
    absl::StrAppend(&text, "rank ", r, ": ",
                    kResults[static_cast<int>(rank.result)], ", round ",
                    rank.round, ", ", rank.run->Describe(), "\n");
  }
  return text;
}

}  // namespace axon
