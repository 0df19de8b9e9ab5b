// SPDX-License-Identifier: Apache-2.0
// What the ranks' inputs hold and what a collective must make of them. Inputs
// are pseudo-random functions of (rank, index) with so few mantissa bits that
// every partial result is exact: a sum, product, minimum or maximum has one
// right answer, to the bit, in whatever order it is computed. One per rank,
// element type and operator; owned and used by one thread.
//
// The functions repeat after kPeriod elements, a prime, so that they are
// tables: filling and comparing cost little more than memcpy and memcmp, and
// data that end up at a wrong place differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "perf/number.h"

namespace axon::perf {

class Pattern {
 public:
  static constexpr size_t kPeriod = 16381;
  // In place of a rank in Wrong(): the reduction over all ranks.
  static constexpr int kReduced = -1;

  Pattern(const Type& type, const Operator& op, int ranks);

  // Elements [first, first + count) of the input of `rank`.
  void Fill(int rank, size_t first, size_t count, void* to);

  // How many of the `count` elements at `from` are not those of the input of
  // `source`, or of the reduction, that begin at `first`.
  size_t Wrong(int source, size_t first, size_t count, const void* from);

  // The factor of `rank` with the operator "mulsum", as bits of the type.
  uint64_t Scalar(int rank) const;

 private:
  using Table = std::vector<std::byte>;

  const Table& TableOf(int source);
  uint64_t Input(int rank, uint64_t index) const;
  uint64_t IntegerInput(uint64_t random, uint64_t more) const;
  double FloatInput(int rank, uint64_t random, uint64_t shared) const;
  double Summand(int rank, uint64_t random, uint64_t shared) const;
  double Factor(int rank, uint64_t random, uint64_t shared) const;
  uint64_t Reduced(uint64_t index) const;
  uint64_t ReducedIntegers(uint64_t index) const;
  double ReducedFloats(uint64_t index) const;
  bool Right(uint64_t want, uint64_t got) const;

  const Type& type_;
  const Operator op_;
  const int ranks_;
  Table reduced_;
  std::vector<Table> inputs_;  // by rank; empty until needed
};

}  // namespace axon::perf
