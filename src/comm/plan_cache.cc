// SPDX-License-Identifier: Apache-2.0
#include "comm/plan_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "engine/bind.h"
#include "engine/prove.h"
#include "schedule/check.h"
#include "schedule/collective.h"

namespace axon {
namespace {

// Beyond, a proof of bound plans takes minutes; schedules are proved still.
constexpr int kMostRanksToProve = 64;

// Proves the schedules of a row, then what they are bound to: enough slices to
// walk round the smallest outbox, twice, copied and read in place.
absl::Status ProveRow(const Algorithm& algorithm, const Call& call) {
  for (const bool in_place : {false, true}) {
    CheckOptions options;
    options.in_place = in_place;
    if (in_place && algorithm.copy_in_place) options.sending = Sending::kCopied;
    RETURN_IF_ERROR(Check(call, options));
  }
  const size_t ranks = call.schedules.size();
  if (ranks > kMostRanksToProve) return absl::OkStatus();
  ASSIGN_OR_RETURN(BoundCall bound, BindAll(call, /*pipelined=*/true));
  bound.slices = static_cast<int>(bound.plans[0].max_stages) + 3;
  const BoundCall* const twice[] = {&bound, &bound};
  const ProveOptions options{SmallestOutbox(bound)};
  RETURN_IF_ERROR(Prove(twice, options));
  bound.reach.assign(ranks, {true, true});
  for (const bool in_place : {false, true}) {
    bound.in_place = in_place;
    if (in_place && algorithm.copy_in_place) continue;
    RETURN_IF_ERROR(Prove(twice, options));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlanCache::Found> PlanCache::Find(const Demand& demand,
                                                 int root) {
  const int size = std::bit_width(demand.block_bytes) % kSizes;
  std::vector<Choice>& choices =
      choices_[static_cast<size_t>(demand.collective)]
              [demand.rank_order ? 1 : 0];
  if (choices.empty()) choices.resize(kSizes);
  Choice& choice = choices[static_cast<size_t>(size)];
  if (choice.algorithm == nullptr) {
    // Every rank asks about the same size of the class.
    Demand typical = demand;
    typical.block_bytes = size == 0 ? 0 : size_t{1} << (size - 1);
    RETURN_IF_ERROR(Choose(typical, &choice));
  }
  const Plan*& plan = choice.by_root[static_cast<size_t>(root)];
  if (plan == nullptr) {
    ASSIGN_OR_RETURN(plan, MakePlan(*choice.algorithm, root));
  }
  return Found{choice.algorithm, plan};
}

const Algorithm* PlanCache::Direct(Collective collective) const {
  const bool all_reduce = collective == Collective::kAllReduce;
  const Algorithm* row =
      FindAlgorithm(collective, all_reduce ? "one_shot" : "mesh");
  return selector_.Allows(*row) ? row : nullptr;
}

absl::Status PlanCache::Choose(const Demand& demand, Choice* choice) {
  ASSIGN_OR_RETURN(choice->algorithm, selector_.Choose(demand));
  Log(LogLevel::kDebug, "%s of %u bytes on %d ranks: %s",
      Name(demand.collective), demand.block_bytes, ranks_,
      choice->algorithm->name);
  const bool rooted = IsRooted(demand.collective);
  choice->by_root.assign(rooted ? static_cast<size_t>(ranks_) : 1, nullptr);
  return absl::OkStatus();
}

absl::StatusOr<const Plan*> PlanCache::MakePlan(const Algorithm& algorithm,
                                                int root) {
  for (const Made& made : made_) {
    if (made.algorithm == &algorithm && made.root == root) {
      return made.plan.get();
    }
  }
  const Call call = MakeCall(algorithm, ranks_, root);
  if (check_) {
    RETURN_IF_ERROR(ProveRow(algorithm, call));
    Log(LogLevel::kInfo, "proved %s %s on %d ranks", Name(algorithm.collective),
        algorithm.name, ranks_);
  }
  ASSIGN_OR_RETURN(Plan plan, Bind(call.schedules, rank_, /*pipelined=*/true));
  made_.push_back({&algorithm, root, std::make_unique<Plan>(std::move(plan))});
  return made_.back().plan.get();
}

}  // namespace axon
