// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/arena.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "absl/strings/str_format.h"
#include "base/bytes.h"
#include "base/status.h"

namespace axon {
namespace {

constexpr size_t kPage = 4096;
constexpr uint32_t kVersion = 1;

}  // namespace

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(ShmKind kind,
                                                     const std::string& dir,
                                                     size_t size,
                                                     const char uid[16]) {
  ASSIGN_OR_RETURN(SharedFile file, CreateSharedFile(kind, dir, size));
  ASSIGN_OR_RETURN(Mapping mapping, Mapping::Map(file.fd, size));
  RETURN_IF_ERROR(ReserveRange(file.fd, 0, kPage, file.directory));
  auto* header = new (mapping.base()) ArenaHeader();
  header->version = kVersion;
  header->header_size = sizeof(ArenaHeader);
  header->arena_size = size;
  std::memcpy(header->uid, uid, sizeof(header->uid));
  header->magic = ArenaHeader::kMagic;
  return std::unique_ptr<Arena>(new Arena(std::move(file), std::move(mapping)));
}

Arena::Arena(SharedFile file, Mapping mapping)
    : file_(std::move(file)), mapping_(std::move(mapping)) {
  free_[kPage] = mapping_.size() - kPage;
}

absl::StatusOr<Mapping> Arena::MapPeer(const Fd& fd, size_t size,
                                       const char uid[16]) {
  // Reading behind a file's end would kill this process.
  struct stat file {};
  if (fstat(fd.get(), &file) != 0) {
    return ErrnoError("look at the memory file of a peer");
  }
  if (static_cast<uint64_t>(file.st_size) != size) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the shared memory handed over by a peer has %u bytes, not the %u that "
        "it said",
        file.st_size, size));
  }
  ASSIGN_OR_RETURN(Mapping mapping, Mapping::Map(fd, size));
  const auto& header = *reinterpret_cast<const ArenaHeader*>(mapping.base());
  if (header.magic != ArenaHeader::kMagic || header.version != kVersion ||
      header.header_size != sizeof(ArenaHeader) || header.arena_size != size ||
      std::memcmp(header.uid, uid, sizeof(header.uid)) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the shared memory handed over by a peer is not its arena (magic %x, "
        "version %u, size %u; expected %x, %u, %u)",
        header.magic, header.version, header.arena_size, ArenaHeader::kMagic,
        kVersion, size));
  }
  return mapping;
}

absl::StatusOr<std::byte*> Arena::Allocate(size_t bytes) {
  const size_t size = RoundUp(std::max<size_t>(bytes, 1), kPage);
  if (size < bytes) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%u bytes are more than any machine has", bytes));
  }
  size_t offset = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto fit = free_.begin();
    while (fit != free_.end() && fit->second < size) ++fit;
    if (fit == free_.end()) {
      return absl::ResourceExhaustedError(absl::StrFormat(
          "no %u KiB left in the shared-memory arena of %u MiB (raise "
          "AXON_ARENA_SIZE)",
          size >> 10, mapping_.size() >> 20));
    }
    offset = fit->first;
    if (fit->second > size) free_[offset + size] = fit->second - size;
    free_.erase(offset);
    used_[offset] = size;
  }
  const absl::Status reserved =
      ReserveRange(file_.fd, offset, size, file_.directory);
  if (!reserved.ok()) {
    (void)ReleaseRange(file_.fd, offset, size);
    std::lock_guard<std::mutex> lock(mutex_);
    GiveBack(offset);
    return reserved;
  }
  return base() + offset;
}

bool Arena::Free(std::byte* p) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto used = used_.find(OffsetOf(p));
  if (p < base() || used == used_.end()) return false;
  const auto [offset, size] = *used;
  if (!ReleaseRange(file_.fd, offset, size)) std::memset(p, 0, size);
  GiveBack(offset);
  return true;
}

void Arena::GiveBack(size_t at) {
  const auto used = used_.find(at);
  const auto [offset, size] = *used;
  used_.erase(used);
  auto range = free_.emplace(offset, size).first;
  const auto next = std::next(range);
  if (next != free_.end() && offset + size == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range != free_.begin()) {
    const auto before = std::prev(range);
    if (before->first + before->second == range->first) {
      before->second += range->second;
      free_.erase(range);
    }
  }
}

size_t Arena::allocated_bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t total = 0;
  for (const auto& [offset, size] : used_) total += size;
  return total;
}

}  // namespace axon
