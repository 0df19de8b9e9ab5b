// SPDX-License-Identifier: Apache-2.0
// One rank of a perf program: its communicator, its stream and what the ranks
// tell each other about times and errors. Owned and used by the rank's thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "axon/axon.h"
#include "perf/launch.h"
#include "perf/options.h"

namespace axon::perf {

class Rank {
 public:
  // The rank of the `thread`-th thread of this process.
  Rank(const Options& options, const World& world, int thread);
  // Destroys the communicator; aborts it while an exception passes, so that the
  // peers do not wait for this rank.
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  axonComm_t comm() const { return comm_; }
  axonStream_t stream() const { return stream_; }

  void Require(axonResult_t result, const std::string& what) const;
  void Barrier();
  // Waits for the stream, if there is one.
  void Wait();
  // Makes of each value the average over the ranks.
  void Combine(Options::Average average, std::vector<double>* values);
  int64_t Sum(int64_t value);
  // `text` of every rank, cut to 128 bytes.
  std::vector<std::string> Gather(const std::string& text);

 private:
  axonComm_t comm_ = nullptr;
  axonStream_t stream_ = nullptr;  // NULL: calls run in this thread
  int rank_ = 0;
  int size_ = 1;
  const int exceptions_;
};

// Memory for one buffer of calls of `rank`, freed at the end of its life.
class Buffer {
 public:
  Buffer(const Options& options, const Rank& rank, size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  const Rank& rank_;
  const bool mapped_;
  void* data_ = nullptr;
  void* handle_ = nullptr;  // of the registration
};

}  // namespace axon::perf
