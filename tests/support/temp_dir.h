// SPDX-License-Identifier: Apache-2.0
// An empty directory for a test, gone with all that is in it when the test is
// over; if asked, a file system of its own in memory, as small as it takes to
// fill it.
#pragma once

#include <cstddef>
#include <string>

namespace axon {

class TempDir {
 public:
  // `tmpfs_size`: bytes of the file system; 0: a plain directory.
  explicit TempDir(size_t tmpfs_size = 0);
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // False where mounting takes a more privileged user.
  bool mounted() const { return mounted_; }
  bool empty() const;

 private:
  std::string path_;
  bool mounted_ = false;
};

}  // namespace axon
