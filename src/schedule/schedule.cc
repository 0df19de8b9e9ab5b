// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

#include <algorithm>

namespace axon {

void Schedule::Send(int peer, Span source) {
  ops.push_back({.kind = OpKind::kSend,
                 .peer = static_cast<int16_t>(peer),
                 .source = source,
                 .destination = {}});
}

void Schedule::Publish(absl::Span<const int> peers, Span source) {
  ops.push_back({.kind = OpKind::kPublish,
                 .peer = ListOf(peers),
                 .source = source,
                 .destination = {}});
}

void Schedule::Recv(int peer, Span destination) {
  ops.push_back({.kind = OpKind::kRecv,
                 .peer = static_cast<int16_t>(peer),
                 .source = {},
                 .destination = destination});
}

void Schedule::RecvReduce(int peer, Span source, Span destination,
                          bool completes) {
  ops.push_back({.kind = OpKind::kRecvReduce,
                 .completes = completes,
                 .peer = static_cast<int16_t>(peer),
                 .source = source,
                 .destination = destination});
}

void Schedule::ReduceAll(absl::Span<const int> peers, Span source,
                         Span destination, bool completes) {
  ops.push_back({.kind = OpKind::kReduceAll,
                 .completes = completes,
                 .peer = ListOf(peers),
                 .source = source,
                 .destination = destination});
}

void Schedule::Copy(Span source, Span destination, bool completes) {
  ops.push_back({.kind = OpKind::kCopy,
                 .completes = completes,
                 .peer = -1,
                 .source = source,
                 .destination = destination});
}

void Schedule::Reduce(Span source, Span destination, bool completes) {
  ops.push_back({.kind = OpKind::kReduce,
                 .completes = completes,
                 .peer = -1,
                 .source = source,
                 .destination = destination});
}

absl::Span<const int16_t> Schedule::Peers(const Op& op) const {
  switch (op.kind) {
    case OpKind::kPublish:
    case OpKind::kReduceAll:
      return lists[op.peer];
    case OpKind::kSend:
    case OpKind::kRecv:
    case OpKind::kRecvReduce:
      return absl::MakeConstSpan(&op.peer, 1);
    case OpKind::kCopy:
    case OpKind::kReduce:
      break;
  }
  return {};
}

int16_t Schedule::ListOf(absl::Span<const int> peers) {
  std::vector<int16_t> list(peers.begin(), peers.end());
  std::sort(list.begin(), list.end());
  auto found = std::find(lists.begin(), lists.end(), list);
  if (found == lists.end()) {
    lists.push_back(std::move(list));
    found = lists.end() - 1;
  }
  return static_cast<int16_t>(found - lists.begin());
}

}  // namespace axon
