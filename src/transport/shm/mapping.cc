// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/mapping.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "base/status.h"

namespace axon {
namespace {

// Some kernels undo a reservation that a signal interrupts: a process with a
// timer (a profiler's) would never get a large one in one piece.
constexpr size_t kReservedAtOnce = 2 << 20;

}  // namespace

Mapping::~Mapping() {
  if (base_ != nullptr) munmap(base_, size_);
}

absl::StatusOr<Mapping> Mapping::Map(const Fd& fd, size_t size) {
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (p == MAP_FAILED) {
    const int error = errno;
    return ErrnoError(
        absl::StrFormat("cannot map %u MiB of address space for shared memory "
                        "(lower AXON_ARENA_SIZE or raise 'ulimit -v')",
                        size >> 20),
        error);
  }
  madvise(p, size, MADV_DONTDUMP);
  Mapping mapping;
  mapping.base_ = static_cast<std::byte*>(p);
  mapping.size_ = size;
  return mapping;
}

void Mapping::MakePrivate(const Fd& fd) {
  // Where it fails the range is left without a mapping, or shared as it was.
  (void)mmap(base_, size_, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd.get(), 0);
  madvise(base_, size_, MADV_DONTDUMP);
}

namespace {

// Beyond the process's limit the kernel would kill it by SIGXFSZ.
absl::Status CheckFileSizeLimit(size_t size) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      size <= limit.rlim_cur) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "a memory file of %u bytes is larger than this process may make any file "
      "(%u bytes): raise 'ulimit -f' or lower AXON_ARENA_SIZE",
      size, limit.rlim_cur));
}

absl::StatusOr<SharedFile> CreateMemfd(size_t size) {
  SharedFile file{Fd(memfd_create("axon", MFD_CLOEXEC | MFD_ALLOW_SEALING)),
                  ""};
  if (!file.fd.valid()) return ErrnoError("memfd_create");
  if (ftruncate(file.fd.get(), static_cast<off_t>(size)) != 0) {
    return ErrnoError(absl::StrFormat("set a memory file to %u bytes", size));
  }
  // A peer that maps it need not fear that it shrinks under its feet.
  fcntl(file.fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return file;
}

// A file that has no name, or where the file system cannot do that, had one for
// a moment.
Fd OpenNameless(const std::string& dir) {
  constexpr mode_t kOwnOnly = S_IRUSR | S_IWUSR;
  Fd fd(open(dir.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, kOwnOnly));
  if (fd.valid() || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  uint64_t random = 0;
  if (getrandom(&random, sizeof(random), 0) != sizeof(random)) return fd;
  const std::string path =
      absl::StrFormat("%s/axon-%d-%016x", dir, getpid(), random);
  fd = Fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kOwnOnly));
  if (fd.valid()) unlink(path.c_str());
  return fd;
}

absl::StatusOr<SharedFile> CreateFile(const std::string& dir, size_t size) {
  SharedFile file{OpenNameless(dir), dir};
  if (!file.fd.valid()) {
    const int error = errno;
    return ErrnoError(
        absl::StrFormat("create a shared-memory file in %s as user %u (set "
                        "AXON_SHM_DIR to a writable directory in memory, or "
                        "AXON_SHM=memfd)",
                        dir, geteuid()),
        error);
  }
  if (ftruncate(file.fd.get(), static_cast<off_t>(size)) != 0) {
    const int error = errno;
    return ErrnoError(
        absl::StrFormat("set a shared-memory file in %s to %u bytes", dir,
                        size),
        error);
  }
  return file;
}

}  // namespace

absl::StatusOr<SharedFile> CreateSharedFile(ShmKind kind,
                                            const std::string& dir,
                                            size_t size) {
  RETURN_IF_ERROR(CheckFileSizeLimit(size));
  return kind == ShmKind::kMemfd ? CreateMemfd(size) : CreateFile(dir, size);
}

absl::Status ReserveRange(const Fd& fd, size_t offset, size_t size,
                          const std::string& directory) {
  int error = 0;
  for (size_t done = 0; done < size && error == 0;) {
    const size_t n = std::min(size - done, kReservedAtOnce);
    if (fallocate(fd.get(), 0, static_cast<off_t>(offset + done),
                  static_cast<off_t>(n)) == 0) {
      done += n;
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (error == 0) return absl::OkStatus();
  struct statfs fs {};
  const bool known = fstatfs(fd.get(), &fs) == 0 && fs.f_blocks != 0;
  const std::string free =
      known ? absl::StrFormat("%u KiB of %u KiB are free",
                              static_cast<uint64_t>(fs.f_bavail) *
                                  static_cast<uint64_t>(fs.f_bsize) / 1024,
                              static_cast<uint64_t>(fs.f_blocks) *
                                  static_cast<uint64_t>(fs.f_bsize) / 1024)
            : "the free memory is not known";
  return ErrnoError(
      absl::StrFormat(
          "reserve %u KiB of shared memory in %s (%s; %s, or lower "
          "AXON_OUTBOX_SIZE)",
          size >> 10, directory.empty() ? "a memory file" : directory, free,
          directory.empty() ? "raise the memory limit of the container "
                              "or job"
                            : "give the container a larger --shm-size, "
                              "or set AXON_SHM=memfd"),
      error);
}

bool ReleaseRange(const Fd& fd, size_t offset, size_t size) {
  int result = 0;
  do {
    result = fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                       static_cast<off_t>(offset), static_cast<off_t>(size));
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace axon
