// SPDX-License-Identifier: Apache-2.0
// From the arguments of a collective to something that can be stepped: which
// path, which plan, cut how.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/scalar.h"
#include "base/status.h"
#include "comm/communicator.h"
#include "schedule/collective.h"

namespace axon {
namespace {

// Pieces of this size fit several times into a core's cache, and are so long
// that waiting for each other costs little.
constexpr size_t kPreferredPiece = 128 << 10;

Place PlaceOf(const Board& board, const CollectiveArgs& args) {
  return {board.ranks(), board.me(), args.root};
}

Signature SignatureOf(const CollectiveArgs& args) {
  return {static_cast<uint8_t>(args.collective),
          static_cast<uint8_t>(args.type),
          static_cast<uint8_t>(args.op),
          IsRooted(args.collective) ? args.root : -1,
          args.count,
          args.extra,
          args.variant};
}

// The call without its buffers.
CollectiveCall CallOf(const CollectiveArgs& args) {
  CollectiveCall call;
  call.collective = args.collective;
  call.type = args.type;
  call.root = args.root;
  call.in_layout.length = call.out_layout.length = args.count;
  if (IsReduction(args.collective)) {
    call.reduce = FindReduce(args.type, args.op);
    call.average = args.op == ReduceOp::kAvg;
    call.has_factor = args.op == ReduceOp::kPreMulSum;
  }
  return call;
}

double FactorOf(const CollectiveArgs& args) {
  return args.factor_at == nullptr ? args.factor
                                   : ReadScalar(args.factor_at, args.type);
}

// Counts of operations have 32 bits, and half of them is behind.
absl::Status CheckSlices(const Plan& plan, size_t block_bytes,
                         const Cutting& cutting) {
  uint32_t ops = 1;
  for (const RankShape& shape : plan.ranks) ops = std::max(ops, shape.ops);
  const size_t slice_bytes =
      std::max<size_t>(1, cutting.slice_elements() * cutting.element_size);
  const size_t slices = CeilDiv(block_bytes, slice_bytes) + plan.max_stages;
  constexpr size_t kMost = size_t{1} << 30;
  if (slices < kMost / ops) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "parts of %u bytes are too long for one call on %d ranks: at most %u",
      block_bytes, plan.ranks.size(),
      (kMost / ops - plan.max_stages) * slice_bytes));
}

}  // namespace

CallShape ShapeOf(const CollectiveArgs& args) {
  return {args.collective, args.type, args.op, args.root, args.count};
}

void Communicator::DescribeBuffers(const CollectiveArgs& args,
                                   Recipe* recipe) const {
  const Place place = PlaceOf(*board_, args);
  const size_t block = args.count * ElementSize(args.type);
  recipe->in_bytes =
      block * static_cast<size_t>(InBlocks(args.collective, place));
  recipe->out_bytes =
      block * static_cast<size_t>(OutBlocks(args.collective, place));
  const axon::InPlace in_place = InPlaceOf(args.collective, place);
  recipe->in_place_possible = in_place.possible;
  recipe->in_place_shift =
      static_cast<ptrdiff_t>(block) * (in_place.out_at - in_place.in_at);
}

absl::Status Communicator::MakeRecipe(const CollectiveArgs& args,
                                      Recipe* recipe) {
  *recipe = Recipe();
  DescribeBuffers(args, recipe);
  const CollectiveCall call = CallOf(args);
  // The size of all blocks decides, so that all ranks decide alike.
  const size_t line_bytes = LineRun::InBytes(
      args.collective, size(), args.count * ElementSize(args.type));
  const Algorithm* const direct = plans_.Direct(args.collective);
  recipe->on_lines = line_bytes <= kInlineBytes ||
                     (line_bytes <= LineRun::kMostBytes && direct != nullptr);
  if (recipe->on_lines) {
    if (direct != nullptr) {
      Log(LogLevel::kDebug, "%s of %u bytes on %d ranks: %s, in one exchange",
          Name(args.collective), line_bytes, size(), direct->name);
    }
    recipe->line = LineRun::Compile(call, SignatureOf(args), size(), rank());
    if (!recipe->line.inlined && recipe->line.writes) {
      RETURN_IF_ERROR(LeaseOutbox());
      recipe->line.outbox_memory = outbox_memory_;
      recipe->line.outbox_offset = process_.arena().OffsetOf(outbox_memory_);
    }
  } else {
    RETURN_IF_ERROR(MakeSetup(args, call, recipe));
  }
  recipe->shape = ShapeOf(args);
  return absl::OkStatus();
}

absl::Status Communicator::MakeSetup(const CollectiveArgs& args,
                                     const CollectiveCall& call,
                                     Recipe* recipe) {
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
  BoardRun::Setup& setup = recipe->setup;
  setup.plan = found.plan;
  setup.call = call;
  setup.signature = SignatureOf(args);
  setup.cutting =
      Cut(length, element, found.plan->cuts,
          MaxPieceBytes(*found.plan, outbox_.size(), kPreferredPiece));
  RETURN_IF_ERROR(CheckSlices(*found.plan, length * element, setup.cutting));
  const auto blocks = static_cast<size_t>(
      std::max(InBlocks(args.collective, PlaceOf(*board_, args)),
               OutBlocks(args.collective, PlaceOf(*board_, args))));
  recipe->may_map =
      !uneven && blocks * length * element >=
                     static_cast<size_t>(process_.settings().mapped_min);
  recipe->map_in_place = !found.algorithm->copy_in_place;
  recipe->stages = Stages(*found.plan, false, false);
  const size_t scratch = static_cast<size_t>(found.plan->scratch_pieces) *
                         setup.cutting.piece_bytes();
  if (scratch_.size() < scratch) scratch_.resize(scratch);
  return absl::OkStatus();
}

absl::Status Communicator::SetBuffers(Recipe& recipe, const std::byte* in,
                                      std::byte* out, double factor) {
  BoardRun::Setup& setup = recipe.setup;
  setup.call.in = in;
  setup.call.out = out;
  setup.call.factor = factor;
  setup.scratch = scratch_.data();
  setup.mapped_reads =
      recipe.may_map && (recipe.map_in_place || !recipe.InPlace(in, out));
  setup.outbox_memory = nullptr;
  setup.outbox_offset = 0;
  if (!recipe.stages) return absl::OkStatus();
  if (setup.mapped_reads && !BoardRun::Stages(setup, *board_)) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(LeaseOutbox());
  setup.outbox_memory = outbox_memory_;
  setup.outbox_offset = process_.arena().OffsetOf(outbox_memory_);
  return absl::OkStatus();
}

absl::StatusOr<Work*> Communicator::StartBy(Recipe& recipe, const void* in,
                                            void* out, double factor) {
  const auto* from = static_cast<const std::byte*>(in);
  auto* const to = static_cast<std::byte*>(out);
  on_lines_ = recipe.on_lines;
  if (on_lines_) {
    line_run_.Start(recipe.line, from, to, factor);
    return &line_run_;
  }
  RETURN_IF_ERROR(SetBuffers(recipe, from, to, factor));
  board_run_.Start(recipe.setup);
  return &board_run_;
}

void Communicator::SetParts(const CollectiveArgs& args, CollectiveCall* call) {
  // The engine borrows them for as long as the call runs.
  lengths_ = args.lengths;
  offsets_ = args.offsets;
  BlockedBuffer parts;
  parts.lengths = lengths_.data();
  parts.offsets = offsets_.data();
  BlockedBuffer mine;
  mine.length = static_cast<size_t>(lengths_[static_cast<size_t>(rank())]);
  const bool gathers = args.collective == Collective::kAllGather;
  call->in_layout = gathers ? mine : parts;
  call->out_layout = gathers ? parts : mine;
}

absl::StatusOr<Work*> Communicator::Start(const CollectiveArgs& args) {
  RETURN_IF_ERROR(status());
  const bool uneven = !args.lengths.empty();
  Recipe* recipe = &rare_recipe_;
  absl::Status made;
  if (uneven) {
    CollectiveCall call = CallOf(args);
    SetParts(args, &call);
    rare_recipe_ = Recipe();
    made = MakeSetup(args, call, recipe);
  } else if (args.variant != CallVariant::kPlain || args.extra != 0) {
    made = MakeRecipe(args, recipe);
  } else {
    const CallShape shape = ShapeOf(args);
    recipe = &recipes_.At(shape);
    if (recipe->shape != shape) made = MakeRecipe(args, recipe);
  }
  absl::StatusOr<Work*> work =
      made.ok() ? StartBy(*recipe, args.in, args.out, FactorOf(args)) : made;
  // The others may have what this rank lacks: they must not wait for it.
  if (!work.ok()) board_->Fail(work.status());
  return work;
}

}  // namespace axon
