// SPDX-License-Identifier: Apache-2.0
#include "schedule/hierarchical.h"

#include "gtest/gtest.h"
#include "schedule/check.h"
#include "schedule/cost.h"

namespace axon {
namespace {

// Ranks fill the nodes in order, or are dealt to them like cards.
Call MakeHierarchy(int per_node, int nodes, bool dealt) {
  const auto rank = [=](int node, int i) {
    return dealt ? i * nodes + node : node * per_node + i;
  };
  Call call{Collective::kAllReduce, 0, false, {}};
  call.schedules.resize(static_cast<size_t>(per_node * nodes));
  for (int node = 0; node < nodes; ++node) {
    for (int i = 0; i < per_node; ++i) {
      Group local{{}, i, 0};
      for (int k = 0; k < per_node; ++k) local.ranks.push_back(rank(node, k));
      Group rail{{}, node, 0};
      for (int k = 0; k < nodes; ++k) rail.ranks.push_back(rank(k, i));
      call.schedules[rank(node, i)] = HierarchicalAllReduce(local, rail);
    }
  }
  return call;
}

TEST(HierarchicalTest, IsProvedForNodesOfAllSizes) {
  for (int per_node = 1; per_node <= 8; ++per_node) {
    for (int nodes = 1; nodes <= 8; ++nodes) {
      for (bool dealt : {false, true}) {
        const Call call = MakeHierarchy(per_node, nodes, dealt);
        for (int credits : {1, 2, 0}) {
          for (bool in_place : {false, true}) {
            for (Sending sending : {Sending::kByReference, Sending::kCopied}) {
              const absl::Status status = Check(call, {.credits = credits,
                                                       .in_place = in_place,
                                                       .sending = sending});
              EXPECT_TRUE(status.ok())
                  << per_node << " x " << nodes << ": " << status.message();
            }
          }
        }
      }
    }
  }
}

// What it is for: each byte crosses between nodes once a direction and rail,
// where a flat ring along the ranks sends whole vectors over one rail.
TEST(HierarchicalTest, SharesTheLinksBetweenNodes) {
  const int per_node = 8;
  const int nodes = 4;
  const int ranks = per_node * nodes;
  CostModel model{.links = {{.latency = 3e-7, .seconds_per_byte = 2.5e-11},
                            {.latency = 1.2e-5, .seconds_per_byte = 8e-11}}};
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      model.link_class.push_back(from / per_node == to / per_node ? 0 : 1);
    }
  }
  const Call hierarchy = MakeHierarchy(per_node, nodes, /*dealt=*/false);
  const Algorithm* ring = FindAlgorithm(Collective::kAllReduce, "ring");
  ASSERT_NE(ring, nullptr);
  for (double bytes : {1e3, 1e6, 1e8}) {
    EXPECT_LT(PredictSeconds(hierarchy.schedules, bytes, model),
              PredictSeconds(MakeCall(*ring, ranks, 0).schedules, bytes, model))
        << bytes;
  }
}

}  // namespace
}  // namespace axon
