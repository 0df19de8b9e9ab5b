// SPDX-License-Identifier: Apache-2.0
#include "engine/outbox.h"

#include <algorithm>

#include "base/bytes.h"

namespace axon {

Outbox::Lease Outbox::Take(size_t total, uint64_t call, uint64_t before) {
  const uint64_t zone = size_ / kZones;
  const uint64_t bytes = std::min(total, size_);
  if (cursor_ % size_ + bytes > size_) cursor_ = RoundUp(cursor_, size_);
  const uint64_t begin = cursor_, end = begin + bytes;
  Lease lease{begin % size_, before};
  // Zones that were stepped over at the outbox's end are claimed unread.
  claimed_ = std::max(claimed_, begin / zone * zone);
  for (; claimed_ < end; claimed_ += zone) {
    lease.after = std::max(lease.after, last_writer_[claimed_ / zone % kZones]);
  }
  for (uint64_t at = begin / zone * zone; at < end; at += zone) {
    last_writer_[at / zone % kZones] = call;
  }
  cursor_ = end;
  return lease;
}

}  // namespace axon
