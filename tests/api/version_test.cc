// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "axon/axon.h"

namespace axon {
namespace {

TEST(VersionTest, IsThatOfTheHeader) {
  int version = 0;
  EXPECT_EQ(axonGetVersion(&version), axonSuccess);
  EXPECT_EQ(version, AXON_VERSION_CODE);
  EXPECT_EQ(version, AXON_MAJOR * 10000 + AXON_MINOR * 100 + AXON_PATCH);
  EXPECT_EQ(axonGetVersion(nullptr), axonInvalidArgument);
}

}  // namespace
}  // namespace axon
