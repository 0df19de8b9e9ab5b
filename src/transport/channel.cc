// SPDX-License-Identifier: Apache-2.0
#include "transport/channel.h"

#include <cstring>

namespace axon {

Poll TrySend(Channel& channel, Bytes message) {
  std::byte* place = nullptr;
  const Poll poll = channel.Reserve(message.size(), &place);
  if (poll != Poll::kReady) return poll;
  if (!message.empty()) std::memcpy(place, message.data(), message.size());
  channel.Commit();
  return Poll::kReady;
}

Poll TryRecv(Channel& channel, MutableBytes to) {
  Bytes message;
  const Poll poll = channel.TryPeek(&message);
  if (poll != Poll::kReady) return poll;
  if (message.size() != to.size()) return Poll::kFailed;
  if (!to.empty()) std::memcpy(to.data(), message.data(), to.size());
  channel.Pop();
  return Poll::kReady;
}

}  // namespace axon
