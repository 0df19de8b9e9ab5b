// SPDX-License-Identifier: Apache-2.0
// What every Channel must do, as tests. A transport joins by saying how to make
// channels and how to break one:
//
//   class MyWorld : public ChannelWorld { ... };
//   INSTANTIATE_TEST_SUITE_P(My, ChannelConformance, testing::Values(
//       ChannelKind{"mine", [](int ranks) {
//         return std::make_unique<MyWorld>(ranks);
//       }}), KindName);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "transport/channel.h"

namespace axon {

// The channels among some ranks. One thread makes it; then each half of each
// channel may have a thread of its own.
class ChannelWorld {
 public:
  virtual ~ChannelWorld() = default;
  // Of rank `me`, to and from `peer`.
  virtual Channel& channel(int me, int peer) = 0;
  // Makes the transport fail so that `me` cannot receive from `peer`. Called
  // before the first message.
  virtual void Break(int me, int peer) = 0;
};

struct ChannelKind {
  std::string name;
  std::function<std::unique_ptr<ChannelWorld>(int ranks)> make;
};

inline void PrintTo(const ChannelKind& kind, std::ostream* out) {
  *out << kind.name;
}

class ChannelConformance : public testing::TestWithParam<ChannelKind> {};

inline std::string KindName(const testing::TestParamInfo<ChannelKind>& info) {
  return info.param.name;
}

// Message number `index` of a stream of messages: its size, at most `most`, and
// its bytes follow from (stream, index).
size_t SizeOfMessage(uint64_t stream, uint64_t index, size_t most);
// Polls until it is sent; false if the channel failed or nobody takes it.
bool SendMessage(Channel& channel, uint64_t stream, uint64_t index,
                 size_t size);
// Polls until it is there; "" or what is wrong with it.
std::string ReceiveMessage(Channel& channel, uint64_t stream, uint64_t index,
                           size_t size);

}  // namespace axon
