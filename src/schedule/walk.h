// SPDX-License-Identifier: Apache-2.0
// Running the lists of all ranks side by side, for those who only think about
// it: the checker and the cost model. Lists run in order and the messages of a
// pair stay in order, so which send meets which receive does not depend on
// timing: one walk stands for all interleavings. One thread.
#pragma once

#include <cstddef>
#include <vector>

namespace axon {

// Calls step(rank) again and again until no rank moves. A step does one
// operation, or returns false if the rank waits or is done.
template <typename Step>
void Walk(int ranks, Step step) {
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < ranks; ++rank) {
      while (step(rank)) moved = true;
    }
  }
}

// Messages in flight, in order for each ordered pair of ranks.
template <typename Message>
class Wire {
 public:
  explicit Wire(int ranks) : ranks_(ranks), queues_(size_t(ranks) * ranks) {}

  size_t InFlight(int from, int to) const {
    const Queue& queue = At(from, to);
    return queue.messages.size() - queue.head;
  }
  void Push(int from, int to, Message message) {
    At(from, to).messages.push_back(message);
  }
  const Message& Front(int from, int to) const {
    const Queue& queue = At(from, to);
    return queue.messages[queue.head];
  }
  void Pop(int from, int to) { ++At(from, to).head; }

 private:
  struct Queue {
    std::vector<Message> messages;
    size_t head = 0;
  };
  Queue& At(int from, int to) { return queues_[size_t(from) * ranks_ + to]; }
  const Queue& At(int from, int to) const {
    return queues_[size_t(from) * ranks_ + to];
  }

  int ranks_;
  std::vector<Queue> queues_;
};

}  // namespace axon
