// SPDX-License-Identifier: Apache-2.0
// A mapped shared-memory file, and how one is made. Owns the mapping; not
// thread-safe, but the memory may be used by any thread.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/fd.h"

namespace axon {

class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping();

  // Maps `size` bytes of `fd`, shared, readable and writable. Address space
  // only: no memory is reserved by mapping. Left out of core dumps.
  static absl::StatusOr<Mapping> Map(const Fd& fd, size_t size);

  // In a child of fork: from now on what this process writes is its own. What
  // it has not written shows the file, as before. Safe between fork and exec.
  void MakePrivate(const Fd& fd);

  std::byte* base() const { return base_; }
  size_t size() const { return size_; }

 private:
  std::byte* base_ = nullptr;
  size_t size_ = 0;
};

// How shared memory is had: an anonymous memory file, or a file without a name
// in a directory. Both are handed over by descriptor, so that nothing is left
// when the processes have ended, however they did.
enum class ShmKind { kMemfd, kFile };

struct SharedFile {
  Fd fd;
  std::string directory;  // kFile: for texts
};

// A sparse file of `size` bytes that cannot shrink (kMemfd) and belongs to this
// user only. `dir` is used by kFile.
absl::StatusOr<SharedFile> CreateSharedFile(ShmKind kind,
                                            const std::string& dir,
                                            size_t size);

// Reserves [offset, offset + size) of the file, or says how much is short and
// what to do.
absl::Status ReserveRange(const Fd& fd, size_t offset, size_t size,
                          const std::string& directory);
// Gives the memory of the range back; it reads as zeros afterwards. False: the
// file system cannot, and it is as it was.
bool ReleaseRange(const Fd& fd, size_t offset, size_t size);

}  // namespace axon
