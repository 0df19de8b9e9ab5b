// SPDX-License-Identifier: Apache-2.0
// What the checker knows of a value: an ordered expression over contributions.
// A contribution is one piece of one rank's `in`; a sum keeps its terms in the
// order in which they are combined, so equal expressions are equal bits. Equal
// expressions have equal ids. Owned by one check; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace axon {

class Expressions {
 public:
  using Id = int32_t;
  static constexpr Id kUndefined = -1;

  // Contributions are pieces 0 .. pieces-1 of ranks 0 .. ranks-1.
  Expressions(int ranks, int pieces);

  Id Contribution(int rank, int piece) const { return rank * pieces_ + piece; }
  // Refuses terms that are undefined, of different pieces, that share a rank,
  // or are finished.
  absl::StatusOr<Id> Sum(absl::Span<const Id> terms);
  // The same value after the last step of a reduction (an average's division);
  // refuses one that does not hold all ranks, or is finished.
  absl::StatusOr<Id> Finish(Id id);

  // Of a finished value: the piece it is the reduction of, or -1.
  int FinishedPiece(Id id) const;
  // Of a finished value: one sum of the contributions of ranks 0, 1, 2, ….
  bool InRankOrder(Id id) const;
  std::string Text(Id id) const;

 private:
  struct Node {
    std::vector<Id> terms;        // of a sum; of a finished value the one below
    std::vector<uint64_t> ranks;  // bit r: rank r has contributed
    int piece = 0;
    bool finished = false;
  };
  bool IsContribution(Id id) const { return id < ranks_ * pieces_; }
  const Node& At(Id id) const { return nodes_[id - ranks_ * pieces_]; }
  int PieceOf(Id id) const;
  bool Complete(Id id) const;
  // Adds the ranks of `id`; false if one was there already.
  bool AddRanks(Id id, std::vector<uint64_t>* ranks) const;
  Id Intern(Node node);

  int ranks_;
  int pieces_;
  std::vector<Node> nodes_;
  absl::flat_hash_map<std::vector<Id>, Id> sums_;
  absl::flat_hash_map<Id, Id> finished_;
};

}  // namespace axon
