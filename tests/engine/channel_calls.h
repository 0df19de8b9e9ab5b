// SPDX-License-Identifier: Apache-2.0
// Calls of an algorithm on all ranks over channels, in one thread: a seeded
// random choice says which rank goes on next, so a run can be had again. Owned
// by the test.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/channel_run.h"
#include "schedule/algorithms.h"
#include "schedule/collective.h"
#include "tests/support/fake_transport.h"

namespace axon {

struct ChannelCase {
  const Algorithm* algorithm = nullptr;
  int ranks = 1;
  int root = 0;
  size_t count = 0;
  bool in_place = false;
  DataType type = DataType::kInt32;
  ReduceOp op = ReduceOp::kSum;
  int credits = 1;
  int most_polls = 0;
  int lines = 1;   // a piece may have so many cache lines
  int rounds = 2;  // calls, one after the other, without waiting in between
  uint64_t seed = 1;
};
std::string Describe(const ChannelCase& c);

// The table of algorithms, and a row's name for a test ("all_reduce_ring").
std::vector<const Algorithm*> AllRows();
std::string NameOf(const Algorithm& row);

class ChannelCalls {
 public:
  explicit ChannelCalls(const ChannelCase& c);

  FakeTransport& transport() { return transport_; }
  // Steps ranks until all have ended, or nothing has happened for so long that
  // nothing will.
  void Run();

  // kPending: stuck. What a rank that ended in kReady wrote has been compared.
  Poll result(int rank) const { return ranks_[At(rank)].result; }
  absl::Status status(int rank) const { return ranks_[At(rank)].run->status(); }
  // How results differ from what they must be, and where; "" if they do not.
  const std::string& difference() const { return difference_; }
  // Where every rank is.
  std::string Positions() const;

 private:
  struct Rank {
    Schedule schedule;
    std::unique_ptr<ChannelRun> run;
    // With some bytes more at the end. In place, one holds both.
    std::vector<std::byte> in_memory, out_memory, scratch;
    std::byte* in = nullptr;
    std::byte* out = nullptr;
    int round = 0;
    Poll result = Poll::kPending;
  };

  static size_t At(int i) { return static_cast<size_t>(i); }
  size_t block_bytes() const { return c_.count * ElementSize(c_.type); }
  double FactorOf(int rank) const;
  CollectiveCall CallOf(int rank) const;
  void Prepare(int rank);
  void StartRound(int rank);
  // One step; whether something was done.
  bool StepRank(int rank);
  void Compare(int rank);
  void CompareBytes(int rank, const char* what, const std::byte* is,
                    const std::vector<std::byte>& wanted);
  // What rank `rank` gives to a call: a block of its input.
  std::vector<std::byte> Given(int rank, int block, int round) const;
  std::vector<std::byte> Wanted(int rank, int block, int round) const;

  const ChannelCase c_;
  std::mt19937_64 random_;
  std::vector<Rank> ranks_;
  size_t max_message_;
  Cutting cutting_;
  FakeTransport transport_;
  std::string difference_;
};

}  // namespace axon
