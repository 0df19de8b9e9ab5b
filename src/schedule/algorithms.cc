// SPDX-License-Identifier: Apache-2.0
#include "schedule/algorithms.h"

#include <bit>

namespace axon {

// Each generator is a file of this folder; this table is the only one that
// names them.
#define AXON_GENERATOR(name) Schedule name(const Group& group)
AXON_GENERATOR(OneShotAllReduce);
AXON_GENERATOR(MeshAllReduce);
AXON_GENERATOR(MeshAllGather);
AXON_GENERATOR(MeshReduceScatter);
AXON_GENERATOR(MeshBroadcast);
AXON_GENERATOR(MeshReduce);
AXON_GENERATOR(MeshAlltoAll);
AXON_GENERATOR(MeshGather);
AXON_GENERATOR(MeshScatter);
AXON_GENERATOR(MeshBarrier);
#undef AXON_GENERATOR

namespace {

constexpr bool kRankOrder = true;
constexpr bool kAnyOrder = false;
constexpr bool kAnySize = false;

using enum Collective;

constexpr Algorithm kAlgorithms[] = {
    {"one_shot", kAllReduce, OneShotAllReduce, kRankOrder, kAnySize,
     /*copy_in_place=*/true},
    {"mesh", kAllReduce, MeshAllReduce, kRankOrder, kAnySize},
    {"mesh", kAllGather, MeshAllGather, kRankOrder, kAnySize},
    {"mesh", kReduceScatter, MeshReduceScatter, kRankOrder, kAnySize},
    {"mesh", kBroadcast, MeshBroadcast, kRankOrder, kAnySize},
    {"mesh", kReduce, MeshReduce, kRankOrder, kAnySize},
    {"mesh", kAlltoAll, MeshAlltoAll, kRankOrder, kAnySize},
    {"mesh", kGather, MeshGather, kRankOrder, kAnySize},
    {"mesh", kScatter, MeshScatter, kRankOrder, kAnySize},
    {"mesh", kBarrier, MeshBarrier, kRankOrder, kAnySize},
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
  return ranks >= 1 && (!algorithm.power_of_two_only ||
                        std::has_single_bit(static_cast<unsigned>(ranks)));
}

}  // namespace axon
