// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temp_dir.h"

#include <sys/mount.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace axon {

TempDir::TempDir(size_t tmpfs_size)
    : path_(std::filesystem::temp_directory_path() / "axon-test-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) std::abort();
  mounted_ =
      tmpfs_size > 0 && mount("axon-test", path_.c_str(), "tmpfs", 0,
                              absl::StrCat("size=", tmpfs_size).c_str()) == 0;
}

TempDir::~TempDir() {
  std::error_code ignored;
  if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  std::filesystem::remove_all(path_, ignored);
}

bool TempDir::empty() const { return std::filesystem::is_empty(path_); }

}  // namespace axon
