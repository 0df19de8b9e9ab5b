// SPDX-License-Identifier: Apache-2.0
#include "comm/message_batch.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace axon {

void MessageBatch::Add(const MessageArgs& message) {
  parts_.push_back(
      {MessageRun(comm_.channel(message.peer, message.lane), message),
       comm_.messages(message.peer, message.lane, message.send).Take()});
  ++left_;
}

Turnstile& MessageBatch::TurnstileOf(const Part& part) {
  return comm_.messages(part.run.peer(), part.run.lane(), part.run.sends());
}

Poll MessageBatch::Step(absl::Status* status) {
  for (Part& part : parts_) {
    if (part.done || !StepPart(part, status)) continue;
    part.done = took_step_ = true;
    --left_;
    comm_.Done(TurnstileOf(part));
  }
  if (left_ > 0) return Poll::kPending;
  return status->ok() ? Poll::kReady : Poll::kFailed;
}

bool MessageBatch::StepPart(Part& part, absl::Status* status) {
  if (!TurnstileOf(part).MyTurn(part.ticket)) return false;
  const Poll poll = comm_.failed() ? Poll::kPending : part.run.Step();
  const bool moved = part.run.TookStep();
  took_step_ = moved || took_step_;
  part.waits = !moved;
  if (poll == Poll::kReady) return true;
  if (poll == Poll::kFailed && part.run.mismatch()) {
    const Board& board = comm_.board();
    comm_.board().Fail(absl::FailedPreconditionError(absl::StrFormat(
        "message sizes differ: %s sends %u bytes to %s, which expects %u",
        board.Describe(part.run.peer()), part.run.sent_bytes(),
        board.Describe(board.me()), part.run.bytes())));
  } else if (poll == Poll::kFailed) {
    comm_.board().Fail(part.run.status());
  }
  if (!comm_.failed()) return false;
  *status = comm_.status();
  return true;
}

template <typename Matters>
std::vector<int> MessageBatch::PeersOf(Matters matters) const {
  std::vector<int> peers;
  for (const Part& part : parts_) {
    if (matters(part)) peers.push_back(part.run.peer());
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

std::vector<int> MessageBatch::UndonePeers() const {
  return PeersOf([](const Part& part) { return !part.done; });
}

std::vector<int> MessageBatch::AwaitedPeers() const {
  return PeersOf([](const Part& part) { return !part.done && part.waits; });
}

std::string MessageBatch::Describe(const Part& part) const {
  return absl::StrFormat("%s of %u bytes %s %s",
                         part.run.sends() ? "a send" : "a receive",
                         part.run.bytes(), part.run.sends() ? "to" : "from",
                         comm_.board().Describe(part.run.peer()));
}

std::string MessageBatch::DescribeUndone() const {
  const auto first = std::find_if(parts_.begin(), parts_.end(),
                                  [](const Part& p) { return !p.done; });
  if (first == parts_.end()) return "messages";
  if (left_ == 1) return Describe(*first);
  return absl::StrFormat("%s and %d more message%s", Describe(*first),
                         left_ - 1, left_ == 2 ? "" : "s");
}

std::string MessageBatch::DescribePeers() const {
  std::vector<std::string> texts;
  for (int peer : UndonePeers()) texts.push_back(comm_.DescribePeer(peer));
  return absl::StrJoin(texts, "; ");
}

void MessageBatch::AskToWake() {
  // Also of those whose turn has not come: it may, and they are not asked then.
  for (int peer : UndonePeers()) comm_.board().AskToWake(peer);
}

}  // namespace axon
