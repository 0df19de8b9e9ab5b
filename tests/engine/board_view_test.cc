// SPDX-License-Identifier: Apache-2.0
#include "engine/board_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/types.h"
#include "tests/support/heap_board.h"

namespace axon {
namespace {

using testing::HasSubstr;

Signature Of(Collective collective, uint64_t count, int root = -1,
             DataType type = DataType::kFloat32) {
  return {static_cast<uint8_t>(collective), static_cast<uint8_t>(type), 0, root,
          count};
}
const Signature kBarrier = Of(Collective::kBarrier, 0);

class BoardViewTest : public testing::Test {
 protected:
  // As if `calls` calls had been made before.
  explicit BoardViewTest(uint64_t calls = 0) : heap_(3, 1 << 17, false) {
    for (int r = 0; r < 3; ++r) {
      Block& block = heap_.board(r).mine();
      block.progress.store(Count(static_cast<uint32_t>(calls) + 1, 0));
      for (uint64_t c = calls - kCallLines + 1; calls > 0 && c <= calls; ++c) {
        block.lines[c % kCallLines].word.store(c << 32);
      }
      views_.push_back(std::make_unique<BoardView>(heap_.board(r), calls));
    }
  }

  BoardView& view(int rank) { return *views_[static_cast<size_t>(rank)]; }
  void Enter(int rank, const Signature& signature = kBarrier) {
    view(rank).NextCall(signature);
    view(rank).PostLine();
  }

  HeapBoard heap_;
  std::vector<std::unique_ptr<BoardView>> views_;
};

TEST_F(BoardViewTest, LinesAreAwaited) {
  Enter(0);
  EXPECT_EQ(view(0).AwaitLine(1, 0), Poll::kPending);
  EXPECT_EQ(view(0).waiting_for(), 1);
  view(1).NextCall(kBarrier);
  view(1).line().factor = 2.5;
  EXPECT_EQ(view(0).AwaitLine(1, 0), Poll::kPending);
  view(1).PostLine();
  ASSERT_EQ(view(0).AwaitLine(1, 0), Poll::kReady);
  EXPECT_EQ(view(0).peer(1).body->factor, 2.5);
}

TEST_F(BoardViewTest, CountsAreAwaited) {
  Enter(0);
  Enter(1);
  EXPECT_EQ(view(0).AwaitDone(1, 1), Poll::kPending);
  view(1).Publish(3);
  EXPECT_EQ(view(0).AwaitDone(1, 3), Poll::kReady);
  EXPECT_EQ(view(0).AwaitDone(1, 4), Poll::kPending);
  // The end of a call is more than any of its operations.
  view(1).Finish();
  EXPECT_EQ(view(0).AwaitDone(1, 4'000'000'000U), Poll::kReady);
}

TEST_F(BoardViewTest, TheLineTellsOfThePrologue) {
  Enter(0);
  Enter(1);
  EXPECT_EQ(view(0).AwaitDone(1, 2), Poll::kPending);
  EXPECT_EQ(view(0).AwaitLine(1, 2), Poll::kReady);
  EXPECT_EQ(view(0).AwaitDone(1, 2), Poll::kReady);
  EXPECT_EQ(view(0).AwaitDone(1, 3), Poll::kPending);
}

TEST_F(BoardViewTest, ACallIsFinishedByAWordOrByTheNextEntry) {
  for (int r = 0; r < 3; ++r) Enter(r);
  EXPECT_EQ(view(0).AwaitFinished(1), Poll::kPending);
  EXPECT_EQ(view(0).floor(), 0U);
  view(1).Finish();
  EXPECT_EQ(view(0).AwaitFinished(1), Poll::kPending);
  EXPECT_EQ(view(0).waiting_for(), 2);
  Enter(2);  // call 2: it is done with call 1
  EXPECT_EQ(view(0).AwaitFinished(1), Poll::kReady);
  EXPECT_EQ(view(0).floor(), 1U);
}

TEST_F(BoardViewTest, ARankWaitsBeforeItUsesALineAgain) {
  for (uint32_t call = 1; call <= kCallLines; ++call) {
    view(0).NextCall(kBarrier);
    EXPECT_EQ(view(0).AwaitFinished(call - kCallLines), Poll::kReady) << call;
    view(0).PostLine();
  }
  view(0).NextCall(kBarrier);
  EXPECT_EQ(view(0).AwaitFinished(1), Poll::kPending);
  for (int r : {1, 2}) {
    Enter(r);
    view(r).Finish();
  }
  EXPECT_EQ(view(0).AwaitFinished(1), Poll::kReady);
}

TEST_F(BoardViewTest, MismatchesNameBothCalls) {
  Enter(0, Of(Collective::kAllReduce, 7));
  Enter(1, Of(Collective::kBroadcast, 7, 2));
  EXPECT_EQ(view(0).AwaitLine(1, 0), Poll::kFailed);
  const std::string text(heap_.board(0).failure().message());
  EXPECT_THAT(text, HasSubstr("ranks disagree: rank 0 (host test, pid "));
  EXPECT_THAT(text, HasSubstr("made call 1, all_reduce of 7 float32, sum, but "
                              "rank 1 (host test"));
  EXPECT_THAT(text, HasSubstr("made call 1, broadcast of 7 float32, root 2"));
  EXPECT_EQ(heap_.board(0).failure().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(heap_.board(2).failed());
}

TEST_F(BoardViewTest, EveryFieldOfASignatureCounts) {
  const Signature one(1, 2, 3, 4, 5, 6, CallVariant::kUneven);
  const Signature others[] = {
      {0, 2, 3, 4, 5, 6, CallVariant::kUneven},
      {1, 0, 3, 4, 5, 6, CallVariant::kUneven},
      {1, 2, 0, 4, 5, 6, CallVariant::kUneven},
      {1, 2, 3, -1, 5, 6, CallVariant::kUneven},
      {1, 2, 3, 4, 0, 6, CallVariant::kUneven},
      {1, 2, 3, 4, 5, 0, CallVariant::kUneven},
      {1, 2, 3, 4, 5, 6, CallVariant::kSplit},
  };
  for (const Signature& other : others) {
    EXPECT_NE(one.digest, other.digest);
    EXPECT_NE(Mix(77, one.digest), Mix(77, other.digest));
  }
  EXPECT_NE(Mix(0, one.digest), Mix(1, one.digest));
}

TEST_F(BoardViewTest, TwoRootsThatOnlySendAreFoundOneCallLater) {
  Enter(0, Of(Collective::kBroadcast, 4, 0));
  Enter(1, Of(Collective::kBroadcast, 4, 1));
  Enter(0, Of(Collective::kAllReduce, 9));
  Enter(1, Of(Collective::kAllReduce, 9));
  EXPECT_EQ(view(0).AwaitLine(1, 0), Poll::kFailed);
  // The call that differed is named, not the one that showed it.
  EXPECT_THAT(
      std::string(heap_.board(0).failure().message()),
      testing::AllOf(HasSubstr("call 1, broadcast of 4 float32, root 0"),
                     HasSubstr("call 1, broadcast of 4 float32, root "
                               "1")));
}

TEST_F(BoardViewTest, Texts) {
  EXPECT_EQ(DescribeState(heap_.board(0), 1), "has made no collective call");
  Enter(1, Of(Collective::kAllGather, 3));
  Enter(0, Of(Collective::kAllGather, 3));
  EXPECT_THAT(DescribeState(heap_.board(0), 1),
              HasSubstr("last entered call 1, all_gather of 3 float32"));
  view(1).NoteWaiting();
  EXPECT_THAT(DescribeState(heap_.board(0), 1),
              HasSubstr("waits in call 1, all_gather of 3 float32 for "));
  EXPECT_THAT(view(0).DescribeLaggards(),
              testing::AllOf(HasSubstr("missing: rank 2"),
                             HasSubstr("which has entered no call"),
                             HasSubstr("not done: rank 1")));
  EXPECT_EQ(view(0).DescribeCall(), "call 1, all_gather of 3 float32");
}

// What a peer's records say is put into words whatever it is.
TEST_F(BoardViewTest, NonsenseInRecordsIsNotFollowed) {
  Enter(1, Of(Collective::kAllReduce, 3));
  for (const uint8_t nonsense : {12, 100, 255}) {
    CallRecord& record = heap_.board(1).mine().records[1];
    record.kind.store(Signature(0, nonsense, nonsense, -1, 3).kind);
    EXPECT_THAT(DescribeState(heap_.board(0), 1),
                HasSubstr("call 1, all_reduce of 3 (unknown), (unknown)"));
    record.kind.store(
        Signature(nonsense, 2, 0, -1, 3, 0, static_cast<CallVariant>(nonsense))
            .kind);
    EXPECT_THAT(DescribeState(heap_.board(0), 1),
                HasSubstr("call 1, (unknown) of 3"));
  }
}

class LongTest : public BoardViewTest {
 protected:
  LongTest() : BoardViewTest((uint64_t{1} << 24) - 5) {}
};

// Small calls that everybody enters publish no counts. Left alone, a count
// would after 2^31 of them seem to lie ahead: data would be read before it is
// there.
TEST_F(LongTest, CountsDoNotGrowOldInSmallCalls) {
  for (int r = 0; r < 3; ++r) {
    heap_.board(r).mine().progress.store(Count(1, 0));
  }
  for (int i = 0; i < 10; ++i) {
    for (int r = 0; r < 3; ++r) Enter(r);
    for (int r = 0; r < 3; ++r) {
      for (int q = 0; q < 3; ++q) {
        ASSERT_TRUE(q == r || view(r).AwaitLine(q, 0) == Poll::kReady);
      }
      view(r).AllEntered();
    }
  }
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(heap_.board(r).mine().progress.load(), Count(1 << 24, 0));
  }
}

class WrapTest : public BoardViewTest {
 protected:
  WrapTest() : BoardViewTest((uint64_t{1} << 32) - 5) {}
};

TEST_F(WrapTest, CallNumbersWrap) {
  for (int i = 0; i < 20; ++i) {
    for (int r = 0; r < 3; ++r) {
      view(r).NextCall(Of(Collective::kAllReduce, static_cast<uint64_t>(i)));
      ASSERT_EQ(view(r).AwaitFinished(view(r).call() - kCallLines),
                Poll::kReady)
          << i;
      ASSERT_EQ(view(r).AwaitLine((r + 1) % 3, 0),
                r == 2 ? Poll::kReady : Poll::kPending)
          << i;
      view(r).line().factor = i + r;
      view(r).PostLine();
      view(r).Publish(1);
    }
    for (int r = 0; r < 3; ++r) {
      for (int q = 0; q < 3; ++q) {
        if (q == r) continue;
        ASSERT_EQ(view(r).AwaitLine(q, 0), Poll::kReady) << i;
        ASSERT_EQ(view(r).peer(q).body->factor, i + q);
        ASSERT_EQ(view(r).AwaitDone(q, 1), Poll::kReady) << i;
        ASSERT_EQ(view(r).AwaitDone(q, 2), Poll::kPending) << i;
      }
    }
    for (int r = 0; r < 3; ++r) view(r).Finish();
  }
  EXPECT_EQ(view(0).call(), 15U);
  EXPECT_EQ(view(0).calls(), (uint64_t{1} << 32) + 15);
  EXPECT_TRUE(Reached(Count(3, 0), Count(~uint32_t{0}, 99)));
  EXPECT_FALSE(Reached(Count(~uint32_t{0}, 99), Count(3, 0)));
}

}  // namespace
}  // namespace axon
