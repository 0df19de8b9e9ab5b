// SPDX-License-Identifier: Apache-2.0
#include "schedule/collective.h"

namespace axon {

bool IsRooted(Collective collective) {
  return collective == Collective::kBroadcast ||
         collective == Collective::kReduce ||
         collective == Collective::kGather ||
         collective == Collective::kScatter;
}

bool IsReduction(Collective collective) {
  return collective == Collective::kAllReduce ||
         collective == Collective::kReduce ||
         collective == Collective::kReduceScatter;
}

int InBlocks(Collective collective, const Place& place) {
  const bool root = place.me == place.root;
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
    case Collective::kAllGather:
    case Collective::kGather:
      return 1;
    case Collective::kBroadcast:
      return root ? 1 : 0;
    case Collective::kReduceScatter:
    case Collective::kAlltoAll:
      return place.ranks;
    case Collective::kScatter:
      return root ? place.ranks : 0;
    case Collective::kBarrier:
      break;
  }
  return 0;
}

int OutBlocks(Collective collective, const Place& place) {
  const bool root = place.me == place.root;
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kBroadcast:
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return 1;
    case Collective::kReduce:
      return root ? 1 : 0;
    case Collective::kAllGather:
    case Collective::kAlltoAll:
      return place.ranks;
    case Collective::kGather:
      return root ? place.ranks : 0;
    case Collective::kBarrier:
      break;
  }
  return 0;
}

Statement Holds(Collective collective, const Place& place, int block) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
      return {kAllRanks, 0};
    case Collective::kReduceScatter:
      return {kAllRanks, place.me};
    case Collective::kBroadcast:
      return {place.root, 0};
    case Collective::kScatter:
      return {place.root, place.me};
    case Collective::kAllGather:
    case Collective::kGather:
      return {block, 0};
    case Collective::kAlltoAll:
      return {block, place.me};
    case Collective::kBarrier:
      break;
  }
  return {};
}

InPlace InPlaceOf(Collective collective, const Place& place) {
  if (collective == Collective::kAlltoAll || InBlocks(collective, place) == 0 ||
      OutBlocks(collective, place) == 0) {
    return {};
  }
  switch (collective) {
    case Collective::kAllGather:
    case Collective::kGather:
      return {true, place.me, 0};
    case Collective::kReduceScatter:
    case Collective::kScatter:
      return {true, 0, place.me};
    default:
      return {true, 0, 0};
  }
}

}  // namespace axon
