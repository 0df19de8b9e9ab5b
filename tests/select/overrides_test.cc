// SPDX-License-Identifier: Apache-2.0
#include "select/overrides.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace axon {
namespace {

using testing::HasSubstr;
using enum Collective;

const Algorithm& Row(Collective collective, const char* name) {
  const Algorithm* row = FindAlgorithm(collective, name);
  EXPECT_NE(row, nullptr) << name;
  return *row;
}

Overrides Parse(const char* text) {
  absl::StatusOr<Overrides> parsed = Overrides::Parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return *parsed;
}

TEST(OverridesTest, NothingSaidAllowsAll) {
  for (const char* text : {"", "  "}) {
    const Overrides all = Parse(text);
    for (const Algorithm& row : Algorithms()) EXPECT_TRUE(all.Allows(row));
    EXPECT_FALSE(all.Speaks(kAllReduce));
  }
}

TEST(OverridesTest, OneCollective) {
  const Overrides ring = Parse("allreduce:ring");
  EXPECT_TRUE(ring.Allows(Row(kAllReduce, "ring")));
  EXPECT_FALSE(ring.Allows(Row(kAllReduce, "mesh")));
  EXPECT_TRUE(ring.Allows(Row(kAllGather, "mesh")));
  EXPECT_TRUE(ring.Speaks(kAllReduce));
  EXPECT_FALSE(ring.Speaks(kAllGather));
}

TEST(OverridesTest, SpellingsOfNames) {
  for (const char* text :
       {"AllReduce:Ring", "all_reduce:RING", " allreduce : ring "}) {
    EXPECT_TRUE(Parse(text).Allows(Row(kAllReduce, "ring"))) << text;
    EXPECT_FALSE(Parse(text).Allows(Row(kAllReduce, "tree"))) << text;
  }
}

TEST(OverridesTest, AllButThese) {
  const Overrides some = Parse("allreduce:^ring,tree");
  EXPECT_FALSE(some.Allows(Row(kAllReduce, "ring")));
  EXPECT_FALSE(some.Allows(Row(kAllReduce, "tree")));
  EXPECT_TRUE(some.Allows(Row(kAllReduce, "mesh")));
}

TEST(OverridesTest, WithoutCollectiveWhereARowOfThatNameExists) {
  const Overrides ring = Parse("ring");
  EXPECT_FALSE(ring.Allows(Row(kAllReduce, "mesh")));
  EXPECT_FALSE(ring.Allows(Row(kAllGather, "mesh")));
  // Broadcast has no ring: nothing is said about it.
  EXPECT_TRUE(ring.Allows(Row(kBroadcast, "mesh")));
}

TEST(OverridesTest, TheNamedCollectiveWinsOverTheGeneralEntry) {
  const Overrides both = Parse("ring;allreduce:mesh;broadcast:^tree");
  EXPECT_TRUE(both.Allows(Row(kAllReduce, "mesh")));
  EXPECT_FALSE(both.Allows(Row(kAllReduce, "ring")));
  EXPECT_FALSE(both.Allows(Row(kAllGather, "mesh")));
  EXPECT_FALSE(both.Allows(Row(kBroadcast, "tree")));
  EXPECT_EQ(both.text(), "ring;allreduce:mesh;broadcast:^tree");
}

TEST(OverridesTest, ErrorsNameWhatIsKnown) {
  const auto error = [](const char* text) {
    return std::string(Overrides::Parse(text).status().message());
  };
  EXPECT_THAT(error("allreduces:ring"), HasSubstr("'allreduces'"));
  EXPECT_THAT(error("allreduces:ring"), HasSubstr("all_reduce, broadcast"));
  EXPECT_THAT(error("allreduce:rnig"), HasSubstr("'rnig' of all_reduce"));
  EXPECT_THAT(error("allreduce:rnig"), HasSubstr("ring"));
  EXPECT_THAT(error("nothing"), HasSubstr("'nothing'; known: one_shot"));
  EXPECT_THAT(error("broadcast:bruck"), HasSubstr("'bruck' of broadcast"));
  EXPECT_THAT(error("ring;tree"), HasSubstr("'tree' names no collective"));
  EXPECT_THAT(error("allreduce:"), HasSubstr("''"));
  EXPECT_THAT(error("ring;"), HasSubstr("only the first entry may"));
}

}  // namespace
}  // namespace axon
