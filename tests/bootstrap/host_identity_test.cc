// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/host_identity.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace axon {
namespace {

TEST(HostIdentityTest, HostNameIsTheKernels) {
  char name[256] = "";
  ASSERT_EQ(gethostname(name, sizeof(name) - 1), 0);
  EXPECT_EQ(HostName(), name);
}

TEST(HostIdentityTest, OverrideWinsElseItIsStable) {
  EXPECT_EQ(HostId("left half"), "left half");
  EXPECT_FALSE(HostId("").empty());
  EXPECT_EQ(HostId(""), HostId(""));
}

TEST(HostIdentityTest, ProcessUidsDiffer) {
  const auto a = NewProcessUid(), b = NewProcessUid();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->size(), 32u);
  EXPECT_EQ(a->find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(*a, *b);
}

}  // namespace
}  // namespace axon
