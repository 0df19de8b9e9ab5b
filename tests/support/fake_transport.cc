// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_transport.h"

#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <random>

#include "absl/strings/str_format.h"

namespace axon {
namespace {

constexpr int kRubbish = 0xDB;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

// One direction between two ranks. All members are for any thread.
class FakeLink {
 public:
  FakeLink(const FakeTransport::Options& options, uint64_t seed)
      : options_(options), random_(seed), reserved_(NewMessage()) {}

  Poll Reserve(size_t size, std::byte** place) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (Failed()) return Poll::kFailed;
    if (size > options_.max_message) {
      status_ = absl::InternalError(
          absl::StrFormat("a message of %u bytes is larger than %u", size,
                          options_.max_message));
      return Poll::kFailed;
    }
    if (Unreturned() >= options_.credits) return Poll::kPending;
    reserved_.size = size;
    *place = reserved_.memory.get();
    return Poll::kReady;
  }

  void Commit() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return;
    reserved_.polls = SomePolls();
    messages_.push_back(std::move(reserved_));
    reserved_ = NewMessage();
  }

  Poll TryPeek(Bytes* message) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (Failed()) return Poll::kFailed;
    if (messages_.empty()) return Poll::kPending;
    Message& next = messages_.front();
    if (next.polls > 0) {
      --next.polls;
      return Poll::kPending;
    }
    *message = Bytes(next.memory.get(), next.size);
    return Poll::kReady;
  }

  void Pop() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return;
    // Kept until the credit is back, so that a late read finds rubbish.
    Message& read = messages_.front();
    std::memset(read.memory.get(), kRubbish, options_.max_message);
    read.polls = SomePolls();
    returning_.push_back(std::move(read));
    messages_.pop_front();
  }

  Poll Flush() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (Failed()) return Poll::kFailed;
    return Unreturned() == 0 ? Poll::kReady : Poll::kPending;
  }

  absl::Status status() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }
  void FailAfter(int64_t calls, const absl::Status& why) {
    std::lock_guard<std::mutex> lock(mutex_);
    calls_left_ = calls;
    why_ = why;
    if (calls == 0) Failed();
  }
  int unread() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int>(messages_.size());
  }

 private:
  struct Message {
    std::unique_ptr<std::byte[]> memory;
    size_t size = 0;
    int polls = 0;  // until it, or its credit, is seen
  };

  Message NewMessage() {
    Message message{std::make_unique<std::byte[]>(options_.max_message)};
    std::memset(message.memory.get(), kRubbish, options_.max_message);
    return message;
  }
  int SomePolls() {
    return std::uniform_int_distribution<int>(0, options_.most_polls)(random_);
  }
  // Counts a call; whether the link has failed.
  bool Failed() {
    if (calls_left_ != kNever && calls_left_-- <= 0 && status_.ok()) {
      status_ = why_;
    }
    return !status_.ok();
  }
  // Messages whose credits the sender does not have back. One poll.
  int Unreturned() {
    if (!returning_.empty() && returning_.front().polls-- <= 0) {
      returning_.pop_front();
    }
    return static_cast<int>(messages_.size() + returning_.size());
  }

  const FakeTransport::Options options_;
  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  Message reserved_;
  std::deque<Message> messages_, returning_;
  absl::Status status_;
  int64_t calls_left_ = kNever;
  absl::Status why_;
};

namespace {

class FakeChannel final : public Channel {
 public:
  FakeChannel(FakeLink& to, FakeLink& from, size_t max_message)
      : to_(to), from_(from), max_message_(max_message) {}

  size_t max_message() const override { return max_message_; }
  Poll Reserve(size_t size, std::byte** message) override {
    return to_.Reserve(size, message);
  }
  void Commit() override { to_.Commit(); }
  Poll TryPeek(Bytes* message) override { return from_.TryPeek(message); }
  void Pop() override { from_.Pop(); }
  Poll Flush() override { return to_.Flush(); }
  absl::Status status() const override {
    const absl::Status status = to_.status();
    return status.ok() ? from_.status() : status;
  }

 private:
  FakeLink& to_;
  FakeLink& from_;
  const size_t max_message_;
};

}  // namespace

FakeTransport::FakeTransport(int ranks, const Options& options)
    : ranks_(ranks) {
  for (int i = 0; i < ranks * ranks; ++i) {
    links_.push_back(std::make_unique<FakeLink>(
        options, options.seed * 1'000'003 + static_cast<uint64_t>(i)));
  }
  for (int me = 0; me < ranks; ++me) {
    for (int peer = 0; peer < ranks; ++peer) {
      channels_.push_back(std::make_unique<FakeChannel>(
          *links_[At(me, peer)], *links_[At(peer, me)], options.max_message));
    }
  }
}

FakeTransport::~FakeTransport() = default;

std::vector<Channel*> FakeTransport::channels(int me) {
  std::vector<Channel*> result;
  for (int peer = 0; peer < ranks_; ++peer) {
    result.push_back(peer == me ? nullptr : &channel(me, peer));
  }
  return result;
}

void FakeTransport::FailAfter(int a, int b, int64_t calls,
                              const absl::Status& why) {
  links_[At(a, b)]->FailAfter(calls, why);
  links_[At(b, a)]->FailAfter(calls, why);
}

void FakeTransport::FailAll(const absl::Status& why) {
  for (const auto& link : links_) link->FailAfter(0, why);
}

int FakeTransport::unread() const {
  int total = 0;
  for (const auto& link : links_) total += link->unread();
  return total;
}

}  // namespace axon
