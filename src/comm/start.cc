// SPDX-License-Identifier: Apache-2.0
// From the arguments of a collective to something that can be stepped: which
// path, which plan, cut how.
#include <algorithm>
#include <utility>

#include "base/scalar.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "schedule/collective.h"

namespace axon {
namespace {

// Pieces of this size fit several times into a core's cache.
constexpr size_t kPreferredPiece = 32 << 10;

Place PlaceOf(const Board& board, const CollectiveArgs& args) {
  return {board.ranks(), board.me(), args.root};
}

}  // namespace

bool Communicator::InPlace(const CollectiveArgs& args) const {
  const axon::InPlace place =
      InPlaceOf(args.collective, PlaceOf(*board_, args));
  const size_t block = args.count * ElementSize(args.type);
  const auto* in = static_cast<const std::byte*>(args.in);
  const auto* out = static_cast<const std::byte*>(args.out);
  return place.possible && in + static_cast<size_t>(place.out_at) * block ==
                               out + static_cast<size_t>(place.in_at) * block;
}

CollectiveCall Communicator::MakeCall(const CollectiveArgs& args) {
  CollectiveCall call;
  call.collective = args.collective;
  call.type = args.type;
  call.in = static_cast<const std::byte*>(args.in);
  call.out = static_cast<std::byte*>(args.out);
  call.root = args.root;
  call.in_layout.length = call.out_layout.length = args.count;
  if (IsReduction(args.collective)) {
    call.reduce = FindReduce(args.type, args.op);
    call.average = args.op == ReduceOp::kAvg;
    call.has_factor = args.op == ReduceOp::kPreMulSum;
    call.factor = args.factor_at == nullptr
                      ? args.factor
                      : ReadScalar(args.factor_at, args.type);
  }
  if (!args.lengths.empty()) {
    // The engine borrows them for as long as the call runs.
    lengths_ = args.lengths;
    offsets_ = args.offsets;
    BlockedBuffer parts;
    parts.lengths = lengths_.data();
    parts.offsets = offsets_.data();
    BlockedBuffer mine;
    mine.length = static_cast<size_t>(lengths_[static_cast<size_t>(rank())]);
    const bool gathers = args.collective == Collective::kAllGather;
    call.in_layout = gathers ? mine : parts;
    call.out_layout = gathers ? parts : mine;
  }
  return call;
}

absl::StatusOr<BoardRun::Setup> Communicator::SetUp(
    const CollectiveArgs& args, const CollectiveCall& call) {
  const bool uneven = !args.lengths.empty();
  const size_t length = uneven ? static_cast<size_t>(*std::max_element(
                                     args.lengths.begin(), args.lengths.end()))
                               : args.count;
  const size_t element = ElementSize(args.type);
  const int root = IsRooted(args.collective) ? args.root : 0;
  PlanCache::Found found;
  if (uneven) {
    // Only direct messages do not mind how long the parts are.
    found.algorithm = FindAlgorithm(args.collective, "mesh");
    ASSIGN_OR_RETURN(found.plan, plans_.MakePlan(*found.algorithm, root));
  } else {
    const bool rank_order =
        IsReduction(args.collective) &&
        (IsNarrowFloat(args.type) || args.op == ReduceOp::kPreMulSum);
    ASSIGN_OR_RETURN(
        found,
        plans_.Find({args.collective, length * element, rank_order}, root));
  }
  BoardRun::Setup setup;
  setup.plan = found.plan;
  setup.call = call;
  setup.cutting =
      Cut(length, element, found.plan->cuts,
          MaxPieceBytes(*found.plan, outbox_.size(), kPreferredPiece));
  const auto blocks = static_cast<size_t>(
      std::max(InBlocks(args.collective, PlaceOf(*board_, args)),
               OutBlocks(args.collective, PlaceOf(*board_, args))));
  setup.mapped_reads =
      !uneven &&
      blocks * length * element >=
          static_cast<size_t>(process_.settings().mapped_min) &&
      !(found.algorithm->copy_in_place && InPlace(args));
  const size_t scratch = static_cast<size_t>(found.plan->scratch_pieces) *
                         setup.cutting.piece_bytes();
  if (scratch_.size() < scratch) scratch_.resize(scratch);
  setup.scratch = scratch_.data();
  if (BoardRun::Stages(setup, *board_)) {
    RETURN_IF_ERROR(LeaseOutbox());
    setup.outbox_memory = outbox_memory_;
    setup.outbox_offset = process_.arena().OffsetOf(outbox_memory_);
  }
  return setup;
}

absl::StatusOr<Work*> Communicator::Start(const CollectiveArgs& args) {
  RETURN_IF_ERROR(status());
  const Signature signature{static_cast<uint8_t>(args.collective),
                            static_cast<uint8_t>(args.type),
                            static_cast<uint8_t>(args.op),
                            IsRooted(args.collective) ? args.root : -1,
                            args.count,
                            args.extra,
                            args.variant};
  const CollectiveCall call = MakeCall(args);
  // The size of all blocks decides, so that all ranks decide alike.
  const bool per_rank = args.collective == Collective::kReduceScatter ||
                        args.collective == Collective::kAlltoAll ||
                        args.collective == Collective::kScatter;
  const size_t line_bytes = (per_rank ? static_cast<size_t>(size()) : 1) *
                            args.count * ElementSize(args.type);
  on_lines_ = args.lengths.empty() && LineRun::Fits(line_bytes);
  if (on_lines_) {
    line_run_.Start(call, signature);
    return &line_run_;
  }
  absl::StatusOr<BoardRun::Setup> setup = SetUp(args, call);
  if (!setup.ok()) {
    // The others may have what this rank lacks: they must not wait for it.
    board_->Fail(setup.status());
    return setup.status();
  }
  board_run_.Start(*setup, signature);
  return &board_run_;
}

}  // namespace axon
