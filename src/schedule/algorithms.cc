// SPDX-License-Identifier: Apache-2.0
#include "schedule/algorithms.h"

#include <bit>

namespace axon {

// Each generator is a file of this folder; this table is the only one that
// names them.
#define AXON_GENERATOR(name) Schedule name(const Group& group)
AXON_GENERATOR(OneShotAllReduce);
AXON_GENERATOR(MeshAllReduce);
AXON_GENERATOR(RingAllReduce);
AXON_GENERATOR(RecursiveDoublingAllReduce);
AXON_GENERATOR(HalvingDoublingAllReduce);
AXON_GENERATOR(TreeAllReduce);
AXON_GENERATOR(MeshAllGather);
AXON_GENERATOR(RingAllGather);
AXON_GENERATOR(BruckAllGather);
AXON_GENERATOR(RecursiveDoublingAllGather);
AXON_GENERATOR(MeshReduceScatter);
AXON_GENERATOR(RingReduceScatter);
AXON_GENERATOR(RecursiveHalvingReduceScatter);
AXON_GENERATOR(MeshBroadcast);
AXON_GENERATOR(TreeBroadcastFromRoot);
AXON_GENERATOR(ScatterAllGatherBroadcast);
AXON_GENERATOR(MeshReduce);
AXON_GENERATOR(TreeReduceToRoot);
AXON_GENERATOR(MeshAlltoAll);
AXON_GENERATOR(PairwiseAlltoAll);
AXON_GENERATOR(BruckAlltoAll);
AXON_GENERATOR(MeshGather);
AXON_GENERATOR(BinomialGather);
AXON_GENERATOR(MeshScatter);
AXON_GENERATOR(BinomialScatter);
AXON_GENERATOR(MeshBarrier);
AXON_GENERATOR(DisseminationBarrier);
#undef AXON_GENERATOR

namespace {

constexpr bool kRankOrder = true;
constexpr bool kOtherOrder = false;
constexpr bool kPowerOfTwo = true;
constexpr bool kAnySize = false;
constexpr bool kCopyInPlace = true;

using enum Collective;

constexpr Algorithm kAlgorithms[] = {
    {"one_shot", kAllReduce, OneShotAllReduce, kRankOrder, kAnySize,
     kCopyInPlace},
    {"mesh", kAllReduce, MeshAllReduce, kRankOrder, kAnySize},
    {"ring", kAllReduce, RingAllReduce, kOtherOrder, kAnySize},
    {"recursive_doubling", kAllReduce, RecursiveDoublingAllReduce, kOtherOrder,
     kAnySize, kCopyInPlace},
    {"halving_doubling", kAllReduce, HalvingDoublingAllReduce, kOtherOrder,
     kAnySize},
    {"tree", kAllReduce, TreeAllReduce, kOtherOrder, kAnySize},
    {"mesh", kAllGather, MeshAllGather, kRankOrder, kAnySize},
    {"ring", kAllGather, RingAllGather, kRankOrder, kAnySize},
    {"bruck", kAllGather, BruckAllGather, kRankOrder, kAnySize},
    {"recursive_doubling", kAllGather, RecursiveDoublingAllGather, kRankOrder,
     kPowerOfTwo},
    {"mesh", kReduceScatter, MeshReduceScatter, kRankOrder, kAnySize},
    {"ring", kReduceScatter, RingReduceScatter, kOtherOrder, kAnySize},
    {"recursive_halving", kReduceScatter, RecursiveHalvingReduceScatter,
     kOtherOrder, kPowerOfTwo},
    {"mesh", kBroadcast, MeshBroadcast, kRankOrder, kAnySize},
    {"tree", kBroadcast, TreeBroadcastFromRoot, kRankOrder, kAnySize},
    {"scatter_allgather", kBroadcast, ScatterAllGatherBroadcast, kRankOrder,
     kAnySize},
    {"mesh", kReduce, MeshReduce, kRankOrder, kAnySize},
    {"tree", kReduce, TreeReduceToRoot, kOtherOrder, kAnySize},
    {"mesh", kAlltoAll, MeshAlltoAll, kRankOrder, kAnySize},
    {"pairwise", kAlltoAll, PairwiseAlltoAll, kRankOrder, kAnySize},
    {"bruck", kAlltoAll, BruckAlltoAll, kRankOrder, kAnySize},
    {"mesh", kGather, MeshGather, kRankOrder, kAnySize},
    {"binomial", kGather, BinomialGather, kRankOrder, kAnySize},
    {"mesh", kScatter, MeshScatter, kRankOrder, kAnySize},
    {"binomial", kScatter, BinomialScatter, kRankOrder, kAnySize},
    {"mesh", kBarrier, MeshBarrier, kRankOrder, kAnySize},
    {"dissemination", kBarrier, DisseminationBarrier, kRankOrder, kAnySize},
};

}  // namespace

absl::Span<const Algorithm> Algorithms() { return kAlgorithms; }

const Algorithm* FindAlgorithm(Collective collective, absl::string_view name) {
  for (const Algorithm& row : kAlgorithms) {
    if (row.collective == collective && row.name == name) return &row;
  }
  return nullptr;
}

bool Applies(const Algorithm& algorithm, int ranks) {
  return ranks >= 1 && ranks <= kMaxScheduledRanks &&
         (!algorithm.power_of_two_only ||
          std::has_single_bit(static_cast<unsigned>(ranks)));
}

}  // namespace axon
