// SPDX-License-Identifier: Apache-2.0
// A Schedule is what one rank does, in order, for one collective: a flat list
// of 16-byte operations over symbolic buffers. It knows no bytes, addresses,
// element types or transports; binding supplies those. A plain value.
//
// Buffers are cut into equal pieces. `in` and `out` consist of blocks (one for
// all_reduce, broadcast and reduce; one a rank where a collective gathers or
// scatters) and every block is cut into `cuts` pieces, so piece b * cuts + i is
// the i-th part of block b. Scratch has pieces of the same size.
//
// Messages between two ranks are ordered: the n-th operation of a that sends to
// b meets the n-th operation of b that receives from a, and both name spans of
// the same number of pieces. A sent span may be read in place by the receiver
// until the receiving operation is done: it must not be overwritten before (the
// checker proves that).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace axon {

enum class Buffer : uint8_t { kIn, kOut, kScratch };

// A run of `count` pieces of one buffer.
struct Span {
  Buffer buffer = Buffer::kOut;
  uint16_t first = 0;
  uint16_t count = 0;

  friend bool operator==(const Span&, const Span&) = default;
};

// The i-th of n equal parts of a span; i is taken modulo n.
inline Span Part(Span span, int n, int i) {
  const int size = span.count / n;
  i = ((i % n) + n) % n;
  return {span.buffer, static_cast<uint16_t>(span.first + i * size),
          static_cast<uint16_t>(size)};
}

enum class OpKind : uint8_t {
  kSend,        // source -> next message to peer
  kPublish,     // source -> next message to every peer of the list: one write
  kRecv,        // next message from peer -> destination
  kRecvReduce,  // destination = source (+) next message from peer
  kReduceAll,   // destination = reduction, in rank order, of source (mine) and
                // the next message of every peer of the list
  kCopy,        // source -> destination
  kReduce,      // destination = destination (+) source
};
constexpr bool Sends(OpKind kind) {
  return kind == OpKind::kSend || kind == OpKind::kPublish;
}
constexpr bool Receives(OpKind kind) {
  return kind == OpKind::kRecv || kind == OpKind::kRecvReduce ||
         kind == OpKind::kReduceAll;
}

struct Op {
  OpKind kind;
  // The destination holds contributions of all ranks after this operation: the
  // place where an average is divided. Reductions and copies only.
  bool completes = false;
  int16_t peer = -1;  // a rank; for kPublish and kReduceAll the list's number
  Span source;
  Span destination;

  friend bool operator==(const Op&, const Op&) = default;
};
static_assert(sizeof(Op) == 16);

struct Schedule {
  std::vector<Op> ops;
  uint16_t cuts = 1;  // pieces of one block
  uint16_t scratch_pieces = 0;
  std::vector<std::vector<int16_t>> lists;  // of peers, ascending, without me

  void Send(int peer, Span source);
  void Publish(absl::Span<const int> peers, Span source);
  void Recv(int peer, Span destination);
  void RecvReduce(int peer, Span source, Span destination,
                  bool completes = false);
  void ReduceAll(absl::Span<const int> peers, Span source, Span destination,
                 bool completes = true);
  void Copy(Span source, Span destination, bool completes = false);
  void Reduce(Span source, Span destination, bool completes = false);

  // The peers of an operation: one, a list, or none.
  absl::Span<const int16_t> Peers(const Op& op) const;

  friend bool operator==(const Schedule&, const Schedule&) = default;

 private:
  int16_t ListOf(absl::Span<const int> peers);
};

}  // namespace axon
