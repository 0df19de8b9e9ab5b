// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/interfaces.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace axon {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Interface Make(const char* name, const char* ip, bool up = true) {
  char bytes[16];
  const int family = strchr(ip, ':') ? AF_INET6 : AF_INET;
  EXPECT_EQ(inet_pton(family, ip, bytes), 1);
  return {name, Address(family, bytes, 0), up, std::string(name) == "lo"};
}

std::vector<Interface> Machine() {
  return {Make("lo", "127.0.0.1"),
          Make("eth0", "10.1.2.3"),
          Make("docker0", "172.17.0.1"),
          Make("eth1", "10.2.0.9"),
          Make("eth10", "192.168.7.1"),
          Make("ib0", "10.200.0.1", false),
          Make("eth0", "fe80::1"),
          Make("eth0", "fd00::9"),
          Make("lo", "::1")};
}

std::vector<std::string> Choose(const std::vector<Interface>& all,
                                const char* filter) {
  const auto chosen = ChooseInterfaces(all, filter);
  if (!chosen.ok()) return {std::string(chosen.status().message())};
  std::vector<std::string> names;
  for (const Interface& i : *chosen) {
    names.push_back(i.name + " " + i.address.Text());
  }
  return names;
}

TEST(InterfacesTest, SkipsWhatDoesNotReachOtherMachines) {
  EXPECT_THAT(Choose(Machine(), ""),
              ElementsAre("eth0 10.1.2.3:0", "eth1 10.2.0.9:0",
                          "eth10 192.168.7.1:0", "eth0 [fd00::9]:0"));
}

TEST(InterfacesTest, FallsBackToContainersThenLoopback) {
  EXPECT_THAT(Choose({Make("lo", "127.0.0.1"), Make("br-1", "172.18.0.1")}, ""),
              ElementsAre("br-1 172.18.0.1:0"));
  EXPECT_THAT(Choose({Make("lo", "127.0.0.1"), Make("eth0", "169.254.3.3"),
                      Make("eth1", "10.0.0.1", false)},
                     ""),
              ElementsAre("lo 127.0.0.1:0"));
  EXPECT_THAT(Choose({Make("eth0", "10.0.0.1", false)}, ""),
              ElementsAre(AllOf(HasSubstr("no network interface is up"),
                                HasSubstr("eth0 (10.0.0.1, down)"))));
}

TEST(InterfacesTest, NamesPrefixesAndExactNames) {
  EXPECT_THAT(Choose(Machine(), "eth1"),
              ElementsAre("eth1 10.2.0.9:0", "eth10 192.168.7.1:0"));
  EXPECT_THAT(Choose(Machine(), "=eth1"), ElementsAre("eth1 10.2.0.9:0"));
  EXPECT_THAT(Choose(Machine(), "docker0"),
              ElementsAre("docker0 172.17.0.1:0"));
  EXPECT_THAT(Choose(Machine(), "eth10,=eth1"),
              ElementsAre(HasSubstr("=eth1 not found")));
  EXPECT_THAT(
      Choose(Machine(), "eth10,lo"),
      ElementsAre("eth10 192.168.7.1:0", "lo 127.0.0.1:0", "lo [::1]:0"));
}

TEST(InterfacesTest, Subnets) {
  EXPECT_THAT(Choose(Machine(), "10.0.0.0/8"),
              ElementsAre("eth0 10.1.2.3:0", "eth1 10.2.0.9:0"));
  EXPECT_THAT(Choose(Machine(), "10.1.2.0/23"), ElementsAre("eth0 10.1.2.3:0"));
  EXPECT_THAT(Choose(Machine(), "fd00::/8"), ElementsAre("eth0 [fd00::9]:0"));
  for (const char* bad : {"10.0.0.0/33", "10.0.0/8", "10.0.0.0/x", "::/129"}) {
    EXPECT_THAT(Choose(Machine(), bad), ElementsAre(HasSubstr(bad)));
  }
}

TEST(InterfacesTest, Excludes) {
  EXPECT_THAT(Choose(Machine(), "^eth1"),
              ElementsAre("eth0 10.1.2.3:0", "eth0 [fd00::9]:0"));
  EXPECT_THAT(Choose(Machine(), "^=eth1,10.1.0.0/16"),
              ElementsAre("eth10 192.168.7.1:0", "eth0 [fd00::9]:0"));
  EXPECT_THAT(Choose(Machine(), "^eth"), ElementsAre("docker0 172.17.0.1:0"));
}

TEST(InterfacesTest, ErrorsSayWhatIsThere) {
  EXPECT_THAT(Choose(Machine(), "eth0,wlan"),
              ElementsAre(AllOf(HasSubstr("interface wlan not found"),
                                HasSubstr("eth10 (192.168.7.1)"),
                                HasSubstr("ib0 (10.200.0.1, down)"))));
  EXPECT_THAT(Choose(Machine(), "ib0"),
              ElementsAre(HasSubstr("leaves no interface that is up")));
}

TEST(InterfacesTest, ThisMachineHasOne) {
  const auto all = ListInterfaces();
  ASSERT_TRUE(all.ok()) << all.status();
  const auto chosen = ChooseInterfaces(*all, "");
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_FALSE(chosen->empty());
}

}  // namespace
}  // namespace axon
