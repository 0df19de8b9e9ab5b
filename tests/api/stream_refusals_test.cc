// SPDX-License-Identifier: Apache-2.0
// What streams and events refuse, and how they say so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "axon/axon.h"
#include "tests/api/ranks.h"

namespace axon {
namespace {

TEST(StreamRefusalsTest, NameWhatIsWrong) {
  axonStream_t queue = nullptr;
  axonEvent_t mark = nullptr;
  ASSERT_AXON_OK(axonStreamCreate(&queue));
  ASSERT_AXON_OK(axonEventCreate(&mark));
  EXPECT_AXON_ERROR(axonStreamCreate(nullptr), axonInvalidArgument, "stream");
  EXPECT_AXON_ERROR(axonEventCreate(nullptr), axonInvalidArgument, "event");
  EXPECT_AXON_ERROR(axonStreamSynchronize(nullptr), axonInvalidArgument,
                    "stream is NULL");
  EXPECT_AXON_ERROR(axonStreamDestroy(nullptr), axonInvalidArgument,
                    "stream is NULL");
  EXPECT_AXON_ERROR(axonStreamQuery(nullptr), axonInvalidArgument,
                    "stream is NULL");
  EXPECT_AXON_ERROR(axonStreamAddCallback(queue, nullptr, nullptr),
                    axonInvalidArgument, "callback is NULL");
  EXPECT_AXON_ERROR(axonEventRecord(nullptr, queue), axonInvalidArgument,
                    "event is NULL");
  EXPECT_AXON_ERROR(axonEventRecord(mark, nullptr), axonInvalidArgument,
                    "stream is NULL");
  EXPECT_AXON_ERROR(axonStreamWaitEvent(queue, nullptr), axonInvalidArgument,
                    "event is NULL");
  EXPECT_AXON_ERROR(axonEventQuery(nullptr), axonInvalidArgument, "NULL");
  EXPECT_AXON_ERROR(axonEventSynchronize(nullptr), axonInvalidArgument, "NULL");
  EXPECT_AXON_ERROR(axonEventDestroy(nullptr), axonInvalidArgument, "NULL");
  alignas(16) char junk[256] = {};
  EXPECT_AXON_ERROR(axonStreamQuery(reinterpret_cast<axonStream_t>(junk)),
                    axonInvalidArgument, "not one of axonStreamCreate");
  EXPECT_AXON_ERROR(axonEventQuery(reinterpret_cast<axonEvent_t>(junk)),
                    axonInvalidArgument, "not one of axonEventCreate");
  EXPECT_AXON_OK(axonEventDestroy(mark));
  EXPECT_AXON_OK(axonStreamDestroy(queue));
}

}  // namespace
}  // namespace axon
