// SPDX-License-Identifier: Apache-2.0
// The second call of a shape goes a shorter way than the first: it must check
// as much, keep the order, and fail alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/api/ranks.h"

namespace axon {
namespace {

// Calls twice so that the shape is known, then once more with `more`.
template <typename More>
void AfterTwoSums(size_t count, More more) {
  OnThreads(2, [&](axonComm_t comm, int rank) {
    std::vector<float> in(count, 1.0F), out(count);
    for (int i = 0; i < 2; ++i) {
      ASSERT_AXON_OK(axonAllReduce(in.data(), out.data(), count, axonFloat32,
                                   axonSum, comm, nullptr));
    }
    more(comm, rank, in, out);
  });
}

// Sizes of the ways that a call can go: in lines, beside them, by a plan.
class QuickTest : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Elements, QuickTest, testing::Values(2, 200, 50'000));

TEST_P(QuickTest, WrongBuffersAreRefusedStill) {
  const size_t count = GetParam();
  AfterTwoSums(count, [&](axonComm_t comm, int, std::vector<float>& in,
                          std::vector<float>& out) {
    EXPECT_AXON_ERROR(axonAllReduce(nullptr, out.data(), count, axonFloat32,
                                    axonSum, comm, nullptr),
                      axonInvalidArgument, "sendbuff is NULL");
    EXPECT_AXON_ERROR(axonAllReduce(in.data(), nullptr, count, axonFloat32,
                                    axonSum, comm, nullptr),
                      axonInvalidArgument, "recvbuff is NULL");
    EXPECT_AXON_ERROR(axonAllReduce(in.data(), in.data() + 1, count,
                                    axonFloat32, axonSum, comm, nullptr),
                      axonInvalidArgument, "overlap");
    // In place, and apart by nothing.
    EXPECT_AXON_OK(axonAllReduce(in.data(), in.data(), count, axonFloat32,
                                 axonSum, comm, nullptr));
    EXPECT_THAT(in, testing::Each(2.0F));
  });
}

// Numbers that a narrow type would cut to those of the known call.
TEST_P(QuickTest, WrongNumbersAreRefusedStill) {
  const size_t count = GetParam();
  AfterTwoSums(count, [&](axonComm_t comm, int, std::vector<float>& in,
                          std::vector<float>& out) {
    const auto call = [&](int type, int op) {
      return axonAllReduce(in.data(), out.data(), count,
                           static_cast<axonDataType_t>(type),
                           static_cast<axonRedOp_t>(op), comm, nullptr);
    };
    EXPECT_AXON_ERROR(call(axonFloat32 + 256, axonSum), axonInvalidArgument,
                      "data type 263");
    EXPECT_AXON_ERROR(call(axonFloat32, axonSum + 256), axonInvalidArgument,
                      "operator 256");
    EXPECT_AXON_ERROR(call(axonFloat32, -256), axonInvalidArgument,
                      "operator -256");
    EXPECT_AXON_OK(call(axonFloat32, axonSum));
  });
}

TEST_P(QuickTest, OtherShapesGiveTheirOwnResults) {
  const size_t count = GetParam();
  AfterTwoSums(count, [&](axonComm_t comm, int rank, std::vector<float>& in,
                          std::vector<float>& out) {
    for (int round = 0; round < 3; ++round) {
      for (const int root : {0, 1}) {
        in.assign(count, static_cast<float>(rank + 1));
        EXPECT_AXON_OK(axonBroadcast(in.data(), out.data(), count, axonFloat32,
                                     root, comm, nullptr));
        EXPECT_THAT(out, testing::Each(static_cast<float>(root + 1)));
        EXPECT_AXON_OK(axonAllReduce(in.data(), out.data(), count, axonFloat32,
                                     axonMax, comm, nullptr));
        EXPECT_THAT(out, testing::Each(2.0F));
        EXPECT_AXON_OK(axonAllReduce(in.data(), out.data(), count, axonFloat32,
                                     axonProd, comm, nullptr));
        EXPECT_THAT(out, testing::Each(2.0F));
        EXPECT_AXON_OK(axonAllReduce(in.data(), out.data(), count, axonFloat32,
                                     axonSum, comm, nullptr));
        EXPECT_THAT(out, testing::Each(3.0F));
      }
    }
  });
}

// More shapes than are remembered, in turn.
TEST_P(QuickTest, ForgottenShapesAreWorkedOutAnew) {
  const size_t most = GetParam();
  AfterTwoSums(most, [&](axonComm_t comm, int rank, std::vector<float>& in,
                         std::vector<float>& out) {
    for (int round = 0; round < 3; ++round) {
      for (size_t less = 0; less < 60; ++less) {
        const size_t count = most > less ? most - less : 1;
        in[count - 1] = static_cast<float>(less + static_cast<size_t>(rank));
        ASSERT_AXON_OK(axonAllReduce(in.data(), out.data(), count, axonFloat32,
                                     axonSum, comm, nullptr));
        ASSERT_EQ(out[count - 1], static_cast<float>(2 * less + 1)) << count;
      }
    }
  });
}

TEST_P(QuickTest, WaitsForWhatIsQueued) {
  const size_t count = GetParam();
  AfterTwoSums(count, [&](axonComm_t comm, int, std::vector<float>& in,
                          std::vector<float>& out) {
    axonStream_t stream = nullptr;
    ASSERT_AXON_OK(axonStreamCreate(&stream));
    in.assign(count, 1.0F);
    for (int i = 0; i < 20; ++i) {
      // 1, 2, 4, … in place: the order shows in the result.
      ASSERT_AXON_OK(axonAllReduce(in.data(), in.data(), count, axonFloat32,
                                   axonSum, comm, stream));
      if (i % 5 != 4) continue;
      ASSERT_AXON_OK(axonAllReduce(in.data(), out.data(), count, axonFloat32,
                                   axonSum, comm, nullptr));
      ASSERT_THAT(out, testing::Each(static_cast<float>(2 << (i + 1))));
    }
    ASSERT_AXON_OK(axonStreamDestroy(stream));
  });
}

TEST_P(QuickTest, AMissingRankEndsInATimeout) {
  const size_t count = GetParam();
  std::atomic<bool> over{false};
  AfterTwoSums(count, [&](axonComm_t comm, int rank, std::vector<float>& in,
                          std::vector<float>& out) {
    if (rank == 0) {
      ASSERT_AXON_OK(axonCommSetTimeout(comm, 200));
      EXPECT_AXON_ERROR(axonAllReduce(in.data(), out.data(), count, axonFloat32,
                                      axonSum, comm, nullptr),
                        axonTimeout, "timed out after 200 ms in call 3");
      over = true;
    }
    while (!over) std::this_thread::yield();
    EXPECT_AXON_ERROR(axonAllReduce(in.data(), out.data(), count, axonFloat32,
                                    axonSum, comm, nullptr),
                      axonTimeout, "timed out after 200 ms in call 3");
  });
}

TEST_P(QuickTest, TakesTheLimitOfTheCall) {
  const size_t count = GetParam();
  std::atomic<bool> over{false};
  AfterTwoSums(count, [&](axonComm_t comm, int rank, std::vector<float>& in,
                          std::vector<float>& out) {
    if (rank == 0) {
      ASSERT_AXON_OK(axonSetCallTimeout(100));
      EXPECT_AXON_ERROR(axonAllReduce(in.data(), out.data(), count, axonFloat32,
                                      axonSum, comm, nullptr),
                        axonTimeout, "timed out after 100 ms in call 3");
      over = true;
    }
    while (!over) std::this_thread::yield();
  });
}

TEST_P(QuickTest, ADifferentCallIsSeen) {
  const size_t count = GetParam();
  AfterTwoSums(count, [&](axonComm_t comm, int rank, std::vector<float>& in,
                          std::vector<float>& out) {
    EXPECT_AXON_ERROR(
        axonAllReduce(in.data(), out.data(), count, axonFloat32,
                      rank == 0 ? axonSum : axonMax, comm, nullptr),
        axonInvalidUsage, "ranks disagree");
  });
}

}  // namespace
}  // namespace axon
