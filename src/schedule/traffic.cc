// SPDX-License-Identifier: Apache-2.0
#include "schedule/traffic.h"

#include <algorithm>
#include <utility>

namespace axon {
namespace {

void Merge(const Clock& from, Clock* into) {
  for (size_t i = 0; i < into->size(); ++i) {
    (*into)[i] = std::max((*into)[i], from[i]);
  }
}

}  // namespace

Traffic::Traffic(int ranks, int calls, const CheckOptions& options)
    : options_(options), ranks_(ranks), wire_(ranks) {
  for (Rank& rank : ranks_) {
    rank.clock.assign(ranks, 0);
    rank.sent.resize(calls);
    rank.entries.resize(calls);
  }
}

void Traffic::Enter(int rank, int call) {
  Advance(rank);
  ranks_[rank].entries[call] = ranks_[rank].clock;
}

int Traffic::RunBefore(int call) const {
  if (options_.sending != Sending::kCopied || options_.slots == 0) return -1;
  return std::max(-1, call - options_.slots);
}

int Traffic::AwaitedEntry(int call) const {
  const int before = RunBefore(call);
  return before < 0 ? -1 : std::max(-1, before + 1 - options_.early);
}

bool Traffic::CanSend(int rank, int call,
                      absl::Span<const int16_t> peers) const {
  for (int peer : peers) {
    if (options_.credits > 0 &&
        wire_.InFlight(rank, peer) >= static_cast<size_t>(options_.credits)) {
      return false;
    }
  }
  const int awaited = AwaitedEntry(call);
  if (HasSent(rank, call) || awaited < 0) return true;
  for (int id : ranks_[rank].sent[RunBefore(call)]) {
    for (const Reader& reader : messages_[id].readers) {
      if (!ranks_[reader.rank].entries[awaited]) return false;
    }
  }
  return true;
}

int Traffic::TakeSlot(int rank, int call) {
  const int before = RunBefore(call);
  if (before < 0) return -1;
  const int awaited = AwaitedEntry(call);
  Rank& me = ranks_[rank];
  if (awaited >= 0) {
    for (int id : me.sent[before]) {
      for (const Reader& reader : messages_[id].readers) {
        Merge(*ranks_[reader.rank].entries[awaited], &me.clock);
      }
    }
  }
  return MayStillReadOf(rank, before);
}

int Traffic::Send(int rank, int call, absl::Span<const int16_t> peers,
                  std::vector<Expressions::Id> values) {
  Advance(rank);
  const int id = static_cast<int>(messages_.size());
  Message message{call, std::move(values), ranks_[rank].clock, {}};
  for (int peer : peers) {
    wire_.Push(rank, peer, {id, static_cast<int>(message.readers.size())});
    message.readers.push_back({peer});
  }
  messages_.push_back(std::move(message));
  ranks_[rank].sent[call].push_back(id);
  return id;
}

bool Traffic::CanReceive(int rank, absl::Span<const int16_t> peers) const {
  return std::all_of(peers.begin(), peers.end(),
                     [&](int peer) { return wire_.InFlight(peer, rank) > 0; });
}

const Message& Traffic::Receive(int rank, int peer) {
  const Delivery delivery = wire_.Front(peer, rank);
  wire_.Pop(peer, rank);
  Message& message = messages_[delivery.message];
  message.readers[delivery.reader].event = ranks_[rank].clock[rank];
  Merge(message.clock, &ranks_[rank].clock);
  return message;
}

int Traffic::MayStillRead(int rank, int message) const {
  for (const Reader& reader : messages_[message].readers) {
    if (reader.event == 0 || reader.event > ranks_[rank].clock[reader.rank]) {
      return reader.rank;
    }
  }
  return -1;
}

int Traffic::MayStillReadOf(int rank, int call) const {
  for (int id : ranks_[rank].sent[call]) {
    if (const int reader = MayStillRead(rank, id); reader >= 0) return reader;
  }
  return -1;
}

bool Traffic::Flush(int rank, int call) {
  Rank& me = ranks_[rank];
  for (int id : me.sent[call]) {
    for (const Reader& reader : messages_[id].readers) {
      if (reader.event == 0) return false;
      me.clock[reader.rank] = std::max(me.clock[reader.rank], reader.event);
    }
  }
  return true;
}

int Traffic::MayBeMissing(int rank, int call) const {
  for (size_t q = 0; q < ranks_.size(); ++q) {
    const std::optional<Clock>& entry = ranks_[q].entries[call];
    if (!entry || (*entry)[q] > ranks_[rank].clock[q]) {
      return static_cast<int>(q);
    }
  }
  return -1;
}

std::optional<std::pair<int, int>> Traffic::Unread() const {
  const int n = static_cast<int>(ranks_.size());
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (wire_.InFlight(from, to) > 0) return std::pair(from, to);
    }
  }
  return std::nullopt;
}

}  // namespace axon
