// SPDX-License-Identifier: Apache-2.0
// The checker must refuse every schedule that was spoiled in one place. Each
// test counts its mutants; one that means the same as the original is left out
// with its reason.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "schedule/algorithms.h"
#include "schedule/check.h"
#include "schedule/collective.h"
#include "schedule/text.h"

namespace axon {
namespace {

// Calls f with every row, number of ranks and root worth spoiling.
void ForEachCall(const std::function<void(const Algorithm&, const Call&)>& f) {
  for (const Algorithm& row : Algorithms()) {
    for (int ranks : {2, 3, 4, 5, 6, 8}) {
      if (!Applies(row, ranks)) continue;
      for (int root = 0; root < (IsRooted(row.collective) ? ranks : 1);
           ++root) {
        f(row, MakeCall(row, ranks, root));
      }
    }
  }
}

void ForEachOp(
    const std::function<void(const Algorithm&, const Call&, int, size_t)>& f) {
  ForEachCall([&](const Algorithm& row, const Call& call) {
    for (size_t r = 0; r < call.schedules.size(); ++r) {
      for (size_t i = 0; i < call.schedules[r].ops.size(); ++i) {
        f(row, call, static_cast<int>(r), i);
      }
    }
  });
}

bool Reduces(OpKind kind) {
  return kind == OpKind::kRecvReduce || kind == OpKind::kReduceAll;
}

class Mutants {
 public:
  // `spoiled` differs from a proved call in operation i of rank r.
  void MustFail(const Algorithm& row, const Call& spoiled, int r, size_t i) {
    ++count_;
    if (!Check(spoiled, {}).ok()) return;
    ++survivors_;
    if (survivors_ > 5) return;
    ADD_FAILURE() << Name(row.collective) << " " << row.name << ", root "
                  << spoiled.root << ", spoiled at operation " << i
                  << " of rank " << r << ":\n"
                  << SchedulesText(spoiled.schedules);
  }
  // All were caught, and there were enough of them to mean something.
  void Expect(int at_least) {
    testing::Test::RecordProperty("mutants", count_);
    EXPECT_EQ(survivors_, 0) << "of " << count_;
    EXPECT_GE(count_, at_least);
  }

 private:
  int count_ = 0;
  int survivors_ = 0;
};

TEST(MutantsTest, ADeletedOperation) {
  Mutants mutants;
  ForEachOp([&](const Algorithm& row, Call call, int r, size_t i) {
    std::vector<Op>& ops = call.schedules[r].ops;
    ops.erase(ops.begin() + i);
    mutants.MustFail(row, call, r, i);
  });
  mutants.Expect(5000);
}

TEST(MutantsTest, AWrongPeer) {
  Mutants mutants;
  ForEachOp([&](const Algorithm& row, const Call& call, int r, size_t i) {
    const Op& op = call.schedules[r].ops[i];
    const bool listed =
        op.kind == OpKind::kPublish || op.kind == OpKind::kReduceAll;
    const int ranks = static_cast<int>(call.schedules.size());
    for (int16_t peer : call.schedules[r].Peers(op)) {
      for (int16_t other = -1; other <= ranks; ++other) {
        if (other == peer) continue;
        Call spoiled = call;
        Schedule& schedule = spoiled.schedules[r];
        if (listed) {
          std::vector<int16_t> list = schedule.lists[op.peer];
          std::replace(list.begin(), list.end(), peer, other);
          std::sort(list.begin(), list.end());
          schedule.ops[i].peer = static_cast<int16_t>(schedule.lists.size());
          schedule.lists.push_back(list);
        } else {
          schedule.ops[i].peer = other;
        }
        mutants.MustFail(row, spoiled, r, i);
      }
    }
  });
  mutants.Expect(20000);
}

TEST(MutantsTest, AShiftedSpan) {
  Mutants mutants;
  ForEachOp([&](const Algorithm& row, const Call& call, int r, size_t i) {
    for (int by : {-1, 1}) {
      for (Span Op::*span : {&Op::source, &Op::destination}) {
        Call spoiled = call;
        Span& shifted = spoiled.schedules[r].ops[i].*span;
        if (shifted.count == 0) continue;  // names no piece: means the same
        shifted.first = static_cast<uint16_t>(shifted.first + by);
        mutants.MustFail(row, spoiled, r, i);
      }
    }
  });
  mutants.Expect(17000);
}

// Results in a buffer where nobody looks for them.
TEST(MutantsTest, AnotherDestination) {
  Mutants mutants;
  ForEachOp([&](const Algorithm& row, const Call& call, int r, size_t i) {
    for (Buffer buffer : {Buffer::kIn, Buffer::kOut, Buffer::kScratch}) {
      Call spoiled = call;
      Schedule& schedule = spoiled.schedules[r];
      Span& span = schedule.ops[i].destination;
      if (span.count == 0 || span.buffer == buffer) continue;
      span.buffer = buffer;
      schedule.scratch_pieces =
          std::max<uint16_t>(schedule.scratch_pieces, span.first + span.count);
      mutants.MustFail(row, spoiled, r, i);
    }
  });
  mutants.Expect(5000);
}

// The sender's message and the term it is for, both gone.
TEST(MutantsTest, ADroppedContribution) {
  Mutants mutants;
  ForEachOp([&](const Algorithm& row, const Call& call, int r, size_t i) {
    const Schedule& schedule = call.schedules[r];
    const Op op = schedule.ops[i];
    if (!Reduces(op.kind)) return;
    for (int16_t peer : schedule.Peers(op)) {
      Call spoiled = call;
      // Which of the peer's messages to me is it?
      int number = 0;
      for (size_t k = 0; k < i; ++k) {
        const auto peers = schedule.Peers(schedule.ops[k]);
        number += Receives(schedule.ops[k].kind) &&
                  std::count(peers.begin(), peers.end(), peer);
      }
      Schedule& sender = spoiled.schedules[peer];
      for (size_t k = 0; k < sender.ops.size(); ++k) {
        const auto peers = sender.Peers(sender.ops[k]);
        if (Receives(sender.ops[k].kind) ||
            std::count(peers.begin(), peers.end(), r) == 0 || number-- > 0) {
          continue;
        }
        std::vector<int16_t> fewer(peers.begin(), peers.end());
        fewer.erase(std::find(fewer.begin(), fewer.end(), r));
        if (fewer.empty()) {
          sender.ops.erase(sender.ops.begin() + k);
        } else {
          sender.ops[k].peer = static_cast<int16_t>(sender.lists.size());
          sender.lists.push_back(fewer);
        }
        break;
      }
      Schedule& mine = spoiled.schedules[r];
      const auto peers = mine.Peers(op);
      std::vector<int16_t> fewer(peers.begin(), peers.end());
      fewer.erase(std::find(fewer.begin(), fewer.end(), peer));
      if (fewer.empty()) {
        mine.ops[i] = {.kind = OpKind::kCopy,
                       .completes = op.completes,
                       .source = op.source,
                       .destination = op.destination};
      } else {
        mine.ops[i].peer = static_cast<int16_t>(mine.lists.size());
        mine.lists.push_back(fewer);
      }
      mutants.MustFail(row, spoiled, r, i);
    }
  });
  mutants.Expect(1000);
}

TEST(MutantsTest, AReceptionThatForgetsToReduce) {
  Mutants mutants;
  ForEachOp([&](const Algorithm& row, Call call, int r, size_t i) {
    Op& op = call.schedules[r].ops[i];
    if (op.kind != OpKind::kRecvReduce) return;
    op.kind = OpKind::kRecv;
    op.source = {};
    op.completes = false;
    mutants.MustFail(row, call, r, i);
  });
  mutants.Expect(450);
}

// One sum over all ranks becomes a chain of sums: another order, other bits.
TEST(MutantsTest, ASwappedOrderOfSumming) {
  Mutants mutants;
  int same = 0;
  ForEachOp([&](const Algorithm& row, const Call& call, int r, size_t i) {
    const Op op = call.schedules[r].ops[i];
    if (op.kind != OpKind::kReduceAll) return;
    const auto peers = call.schedules[r].Peers(op);
    Call spoiled = call;
    std::vector<Op>& ops = spoiled.schedules[r].ops;
    ops.erase(ops.begin() + i);
    Span source = op.source;
    for (size_t k = 0; k < peers.size(); ++k) {
      ops.insert(ops.begin() + i + k,
                 {.kind = OpKind::kRecvReduce,
                  .completes = op.completes && k + 1 == peers.size(),
                  .peer = peers[k],
                  .source = source,
                  .destination = op.destination});
      source = op.destination;
    }
    if (peers.size() == 1 && r < peers[0]) {
      // Mine, then the message: the very same sum.
      EXPECT_TRUE(Check(spoiled, {}).ok());
      ++same;
      return;
    }
    mutants.MustFail(row, spoiled, r, i);
  });
  EXPECT_GT(same, 0);
  mutants.Expect(130);
}

TEST(MutantsTest, AFlippedCompletes) {
  Mutants mutants;
  ForEachOp([&](const Algorithm& row, Call call, int r, size_t i) {
    Op& op = call.schedules[r].ops[i];
    op.completes = !op.completes;
    mutants.MustFail(row, call, r, i);
  });
  mutants.Expect(5000);
}

// Rows that no longer wait until scratch has been read.
TEST(MutantsTest, AReusedScratchPiece) {
  Mutants mutants;
  const Algorithm* ring = FindAlgorithm(Collective::kReduceScatter, "ring");
  ASSERT_NE(ring, nullptr);
  for (int ranks = 4; ranks <= 16; ++ranks) {
    Call call = MakeCall(*ring, ranks, 0);
    for (Schedule& schedule : call.schedules) {
      for (Op& op : schedule.ops) {
        for (Span* span : {&op.source, &op.destination}) {
          if (span->buffer == Buffer::kScratch) span->first = 0;
        }
      }
    }
    mutants.MustFail(*ring, call, 0, 0);
    // Copied messages lie elsewhere: then one piece is enough.
    EXPECT_TRUE(Check(call, {.sending = Sending::kCopied}).ok());
  }
  mutants.Expect(13);
}

}  // namespace
}  // namespace axon
