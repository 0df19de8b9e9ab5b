// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/unique_id.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bootstrap/random.h"

namespace axon {
namespace {

using ::testing::HasSubstr;

UniqueId Sample() {
  char v4[4], v6[16];
  inet_pton(AF_INET, "10.0.0.1", v4);
  inet_pton(AF_INET6, "fd00::7", v6);
  return {*RandomBytes(kSecretSize),
          {Address(AF_INET, v4, 4711), Address(AF_INET6, v6, 4711)},
          {}};
}

TEST(UniqueIdTest, PacksAndUnpacks) {
  const UniqueId id = Sample();
  const std::string bytes = PackUniqueId(id);
  ASSERT_EQ(bytes.size(), kUniqueIdSize);
  const auto back = UnpackUniqueId(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->secret, id.secret);
  EXPECT_FALSE(back->fixed());
  EXPECT_EQ(back->Text(), "10.0.0.1:4711, [fd00::7]:4711");
}

TEST(UniqueIdTest, FixedPlaces) {
  const auto id = FixedUniqueId("head.cluster:29501", "s3cret");
  ASSERT_TRUE(id.ok()) << id.status();
  const auto back = UnpackUniqueId(PackUniqueId(*id));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->fixed());
  EXPECT_EQ(back->Text(), "head.cluster:29501");
  EXPECT_EQ(back->secret, id->secret);
  // The same everywhere, but not with another secret.
  EXPECT_EQ(FixedUniqueId("a:1", "x")->secret,
            FixedUniqueId("b:2", "x")->secret);
  EXPECT_NE(FixedUniqueId("a:1", "x")->secret,
            FixedUniqueId("a:1", "y")->secret);
  EXPECT_NE(FixedUniqueId("a:1", "x")->secret,
            FixedUniqueId("a:1", "")->secret);
}

TEST(UniqueIdTest, PlacesThatAreNone) {
  for (const char* place : {"", "host", "host:", ":1", "host:0", "host:65536",
                            "host:x", "fd00::1", "[fd00::1]", "[host]:1"}) {
    EXPECT_EQ(FixedUniqueId(place, "").status().code(),
              absl::StatusCode::kInvalidArgument)
        << place;
  }
  EXPECT_EQ(FixedUniqueId("[fd00::1]:80", "")->place.host, "fd00::1");
  EXPECT_THAT(
      FixedUniqueId(std::string(200, 'h') + ":1", "").status().message(),
      HasSubstr("longer than"));
}

// Any byte that changes is found, whichever it is.
TEST(UniqueIdTest, RefusesEveryDamagedByte) {
  const std::string good = PackUniqueId(Sample());
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int bit : {0, 3, 7}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      EXPECT_FALSE(UnpackUniqueId(bad).ok()) << "byte " << i;
    }
  }
  EXPECT_FALSE(UnpackUniqueId("").ok());
  EXPECT_FALSE(UnpackUniqueId(good + "x").ok());
  EXPECT_FALSE(UnpackUniqueId(std::string(kUniqueIdSize, '\0')).ok());
}

TEST(UniqueIdTest, SecretsDiffer) {
  EXPECT_NE(*RandomBytes(16), *RandomBytes(16));
  EXPECT_EQ(RandomBytes(1000)->size(), 1000u);
}

}  // namespace
}  // namespace axon
