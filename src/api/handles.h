// SPDX-License-Identifier: Apache-2.0
// What the opaque handles of axon.h point to, and the process behind them.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "axon/axon.h"
#include "comm/communicator.h"

// A premultiplied sum that the user made.
struct axonScalarOp {
  axon::DataType type;
  double factor;
  const void* factor_at;  // read when the call runs; null: `factor` is it
};

struct axonComm {
  static constexpr uint64_t kMagic = 0x41786f6e436f6d6d;  // "AxonComm"

  uint64_t magic = kMagic;
  std::unique_ptr<axon::Communicator> comm;
  // Threads inside a call; Abort waits for them.
  std::atomic<int> inside{0};
  // Operators by their handle; of the thread that makes calls.
  std::map<int, axonScalarOp> ops;
  int next_op = 0;

  void SetLastError(const std::string& text) {
    std::lock_guard<std::mutex> lock(mutex);
    last_error = text;
  }
  std::string LastError() {
    std::lock_guard<std::mutex> lock(mutex);
    return last_error;
  }

 private:
  std::mutex mutex;
  std::string last_error;
};

struct axonStream {
  static constexpr uint64_t kMagic = 0x41786f6e5374726d;  // "AxonStrm"
  uint64_t magic = kMagic;
  axon::Stream* stream = nullptr;
};

struct axonEvent {
  static constexpr uint64_t kMagic = 0x41786f6e4576656e;  // "AxonEven"
  uint64_t magic = kMagic;
  axon::Event* event = nullptr;
};

namespace axon {

template <typename T>
bool IsHandle(const T* handle) {
  return handle != nullptr && handle->magic == T::kMagic;
}

// The process, made at first use; every later failure is the first one again.
// In a child of fork it is refused.
absl::StatusOr<Process*> TheProcess();
// True in a child of fork of a process that has used the library.
bool InForkedChild();

absl::Status CheckHandle(const axonComm* comm);
absl::Status CheckHandle(const axonStream* stream);
absl::Status CheckHandle(const axonEvent* event);

// Counts a thread inside a communicator for as long as it lives.
class Inside {
 public:
  explicit Inside(axonComm& comm) : comm_(comm) {
    comm_.inside.fetch_add(1, std::memory_order_acq_rel);
  }
  ~Inside() { comm_.inside.fetch_sub(1, std::memory_order_acq_rel); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  axonComm& comm_;
};

}  // namespace axon
