// SPDX-License-Identifier: Apache-2.0
#include "engine/outbox.h"

#include <algorithm>

#include "base/bytes.h"

namespace axon {

Outbox::Lease Outbox::Take(size_t total, uint32_t call, uint32_t before) {
  const uint64_t zone = size_ / kZones;
  const uint64_t bytes = std::min(total, size_);
  if (cursor_ % size_ + bytes > size_) cursor_ = RoundUp(cursor_, size_);
  const uint64_t begin = cursor_, end = begin + bytes;
  Lease lease{begin % size_, before};
  // Zones that were stepped over at the outbox's end are claimed unread.
  claimed_ = std::max(claimed_, begin / zone * zone);
  for (; claimed_ < end; claimed_ += zone) {
    const size_t z = claimed_ / zone % kZones;
    if (written_[z]) lease.after = LaterCall(lease.after, last_writer_[z]);
  }
  for (uint64_t at = begin / zone * zone; at < end; at += zone) {
    last_writer_[at / zone % kZones] = call;
    written_[at / zone % kZones] = true;
  }
  cursor_ = end;
  return lease;
}

}  // namespace axon
