// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "bootstrap/connection.h"
#include "tests/bootstrap/meet.h"
#include "tests/support/ports.h"

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Address Loopback(uint16_t port) {
  constexpr char kIp[4] = {127, 0, 0, 1};
  return Address(AF_INET, kIp, port);
}

TEST(SocketTest, DescriptorsAreNonBlockingAndClosedOnExec) {
  const auto listener = ListenTcp(Loopback(0), {});
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto fd =
      ConnectTcp(Loopback(LocalPort(listener->get())), Deadline::In(5000));
  ASSERT_TRUE(fd.ok()) << fd.status();
  for (const int number : {listener->get(), fd->get()}) {
    EXPECT_TRUE(fcntl(number, F_GETFD) & FD_CLOEXEC);
    EXPECT_TRUE(fcntl(number, F_GETFL) & O_NONBLOCK);
  }
}

TEST(SocketTest, ErrorsNameAddressAndErrno) {
  const uint16_t port = FreePort();
  const auto refused = ConnectTcp(Loopback(port), Deadline::In(5000));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr(absl::StrCat("127.0.0.1:", port)),
                    HasSubstr("Connection refused (errno 111)")));
  const auto first = ListenTcp(Loopback(port), {});
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = ListenTcp(Loopback(port), {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(second.status().message(),
              HasSubstr(absl::StrCat("listening at 127.0.0.1:", port)));
}

// Connecting to a port of the range that the kernel hands out, where nobody
// listens, now and then gives a socket that is its own peer. The kernel prefers
// even ports for connections.
TEST(SocketTest, NeverConnectsToItself) {
  uint16_t port = 40000;
  while (ConnectTcp(Loopback(port), Deadline::In(5000)).ok()) port += 2;
  for (int i = 0; i < 60000; ++i) {
    const auto fd = ConnectTcp(Loopback(port), Deadline::In(5000));
    ASSERT_FALSE(fd.ok()) << "attempt " << i;
  }
}

TEST(SocketTest, AClosedPeerIsAnErrorAndNoSignal) {
  const auto listener = ListenTcp(Loopback(0), {});
  ASSERT_TRUE(listener.ok());
  auto fd =
      ConnectTcp(Loopback(LocalPort(listener->get())), Deadline::In(5000));
  ASSERT_TRUE(fd.ok());
  Connection connection(*std::move(fd));
  {
    const Fd peer(accept(listener->get(), nullptr, nullptr));
    ASSERT_TRUE(peer.valid());
  }
  bool alive = true;
  for (int i = 0; alive && i < 1000; ++i) {
    connection.Send(std::string(1 << 16, 'x'));
    alive = connection.Flush();
  }
  EXPECT_FALSE(alive);
}

TEST(AddressTest, TextsAndPlaces) {
  EXPECT_EQ(Loopback(80).Text(), "127.0.0.1:80");
  EXPECT_EQ(Loopback(80).WithPort(81).port(), 81);
  std::string ip(16, '\0');
  ip[15] = 1;
  EXPECT_EQ(Address(AF_INET6, ip.data(), 7).Text(), "[::1]:7");
  EXPECT_EQ(Address().Text(), "?");
  const auto found = Resolve({"127.0.0.1", 9});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].Text(), "127.0.0.1:9");
  EXPECT_THAT(Resolve({"no-such-host.invalid", 9}).status().message(),
              HasSubstr("'no-such-host.invalid' cannot be looked up"));
  EXPECT_TRUE(IsNumeric("::1"));
  EXPECT_FALSE(IsNumeric("localhost"));
}

}  // namespace
}  // namespace axon
