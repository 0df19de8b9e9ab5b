// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/wire.h"

#include <gtest/gtest.h>

#include <random>

#include "bootstrap/random.h"

namespace axon {
namespace {

const Hello kHello{3, 8, 10203, 4711, 5000, "host", "A=1 B=2"};

TEST(WireTest, HelloComesBackAndEveryPrefixIsPending) {
  const std::string secret = *RandomBytes(kSecretSize);
  const std::string bytes = PackHello(secret, kHello);
  for (size_t n = 0; n < bytes.size(); ++n) {
    HelloView view;
    ASSERT_EQ(FindHello(bytes.substr(0, n), &view), Poll::kPending) << n;
    EXPECT_EQ(view.secret.empty(), n < kHelloPrefix);
  }
  HelloView view;
  const std::string longer = bytes + "more";
  ASSERT_EQ(FindHello(longer, &view), Poll::kReady);
  EXPECT_EQ(view.secret, secret);
  EXPECT_EQ(view.size, bytes.size());
  Hello hello;
  ASSERT_TRUE(UnpackHello(view.body, &hello));
  EXPECT_EQ(hello.rank, 3);
  EXPECT_EQ(hello.nranks, 8);
  EXPECT_EQ(hello.version, 10203);
  EXPECT_EQ(hello.pid, 4711);
  EXPECT_EQ(hello.timeout_ms, 5000);
  EXPECT_EQ(hello.host, "host");
  EXPECT_EQ(hello.digest, "A=1 B=2");
}

TEST(WireTest, BodiesCutShortAreRefused) {
  const std::string bytes = PackHello(std::string(kSecretSize, 's'), kHello);
  const std::string body = bytes.substr(kHelloPrefix);
  Hello hello;
  for (size_t n = 0; n < body.size(); ++n) {
    EXPECT_FALSE(UnpackHello(body.substr(0, n), &hello)) << n;
  }
  EXPECT_FALSE(UnpackHello(body + "x", &hello));
}

TEST(WireTest, LengthsThatLieAreRefused) {
  for (const int64_t length : {int64_t{-1}, int64_t{6}, INT64_MAX, INT64_MIN}) {
    const std::string bytes = Packer().Int(length).Take() + "five5";
    Unpacker in(bytes);
    EXPECT_EQ(in.Text(), "");
    EXPECT_FALSE(in.ok());
    EXPECT_EQ(in.Int(), 0);
  }
}

// Nothing that arrives may do more than be refused; run under a sanitizer this
// finds reads out of bounds.
TEST(WireTest, RandomBytesAreHarmless) {
  std::mt19937 random(7);
  const std::string good = PackHello(std::string(kSecretSize, 's'), kHello);
  int ready = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good.substr(0, random() % (good.size() + 1));
    for (int k = 0; k < 3 && !bytes.empty(); ++k) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    HelloView view;
    Hello hello;
    if (FindHello(bytes, &view) == Poll::kReady) {
      ++ready;
      (void)UnpackHello(view.body, &hello);
    }
    (void)UnpackError(bytes);
  }
  EXPECT_GT(ready, 0);
}

TEST(WireTest, ErrorsKeepCodeAndText) {
  const std::string frame =
      PackError(FrameKind::kError, absl::UnavailableError("gone"));
  EXPECT_EQ(UnpackError(absl::string_view(frame).substr(kFrameHeader)),
            absl::UnavailableError("gone"));
  // Code 0 would turn an error into success.
  EXPECT_FALSE(UnpackError(Packer().Int(0).Text("").Take()).ok());
  EXPECT_FALSE(UnpackError("").ok());
}

}  // namespace
}  // namespace axon
