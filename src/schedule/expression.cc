// SPDX-License-Identifier: Apache-2.0
#include "schedule/expression.h"

#include <bit>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace axon {

Expressions::Expressions(int ranks, int pieces)
    : ranks_(ranks), pieces_(pieces) {}

absl::StatusOr<Expressions::Id> Expressions::Sum(absl::Span<const Id> terms) {
  std::vector<Id> key(terms.begin(), terms.end());
  if (const auto found = sums_.find(key); found != sums_.end()) {
    return found->second;
  }
  Node node;
  node.ranks.assign((ranks_ + 63) / 64, 0);
  for (Id term : terms) {
    if (term == kUndefined) {
      return absl::FailedPreconditionError("reduces an undefined piece");
    }
    if (!IsContribution(term) && At(term).finished) {
      return absl::FailedPreconditionError(
          absl::StrCat("reduces what is finished: ", Text(term)));
    }
    if (PieceOf(term) != PieceOf(terms[0])) {
      return absl::FailedPreconditionError(absl::StrCat(
          "reduces different pieces: ", Text(terms[0]), " and ", Text(term)));
    }
    if (!AddRanks(term, &node.ranks)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "counts a rank twice: ", Text(term), " is added to others of [",
          absl::StrJoin(terms, ", ",
                        [this](std::string* out, Id id) {
                          absl::StrAppend(out, Text(id));
                        }),
          "]"));
    }
  }
  node.piece = PieceOf(terms[0]);
  node.terms = key;
  const Id id = Intern(std::move(node));
  sums_.emplace(std::move(key), id);
  return id;
}

absl::StatusOr<Expressions::Id> Expressions::Finish(Id id) {
  if (id == kUndefined || !Complete(id)) {
    return absl::FailedPreconditionError(
        absl::StrCat("completes what lacks contributions: ", Text(id)));
  }
  if (!IsContribution(id) && At(id).finished) {
    return absl::FailedPreconditionError(
        absl::StrCat("completes twice: ", Text(id)));
  }
  const auto [found, added] = finished_.try_emplace(id, 0);
  if (added) {
    Node node;
    node.terms = {id};
    node.piece = PieceOf(id);
    node.finished = true;
    found->second = Intern(std::move(node));
  }
  return found->second;
}

int Expressions::FinishedPiece(Id id) const {
  if (id == kUndefined || IsContribution(id) || !At(id).finished) return -1;
  return At(id).piece;
}

bool Expressions::InRankOrder(Id id) const {
  if (FinishedPiece(id) < 0) return false;
  const Id sum = At(id).terms[0];
  if (IsContribution(sum)) return ranks_ == 1;
  const std::vector<Id>& terms = At(sum).terms;
  if (static_cast<int>(terms.size()) != ranks_) return false;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (terms[rank] != Contribution(rank, At(sum).piece)) return false;
  }
  return true;
}

std::string Expressions::Text(Id id) const {
  if (id == kUndefined) return "undefined";
  if (IsContribution(id)) {
    return absl::StrCat("r", id / pieces_, "[", id % pieces_, "]");
  }
  const Node& node = At(id);
  // Deep sums are cut short: a text is for people.
  std::string text = node.finished ? "finished(" : "(";
  for (size_t i = 0; i < node.terms.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "+", Text(node.terms[i]));
    if (text.size() > 200) {
      absl::StrAppend(&text, "+...");
      break;
    }
  }
  return absl::StrCat(text, ")");
}

int Expressions::PieceOf(Id id) const {
  return IsContribution(id) ? id % pieces_ : At(id).piece;
}

bool Expressions::Complete(Id id) const {
  if (IsContribution(id)) return ranks_ == 1;
  if (At(id).finished) return true;
  int count = 0;
  for (uint64_t word : At(id).ranks) count += std::popcount(word);
  return count == ranks_;
}

bool Expressions::AddRanks(Id id, std::vector<uint64_t>* ranks) const {
  if (IsContribution(id)) {
    const int rank = id / pieces_;
    uint64_t& word = (*ranks)[rank / 64];
    const uint64_t bit = uint64_t{1} << (rank % 64);
    const bool fresh = (word & bit) == 0;
    word |= bit;
    return fresh;
  }
  bool fresh = true;
  for (size_t i = 0; i < ranks->size(); ++i) {
    fresh = fresh && ((*ranks)[i] & At(id).ranks[i]) == 0;
    (*ranks)[i] |= At(id).ranks[i];
  }
  return fresh;
}

Expressions::Id Expressions::Intern(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<Id>(nodes_.size()) - 1 + ranks_ * pieces_;
}

}  // namespace axon
