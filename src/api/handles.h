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
  // Calls that the thread which uses the communicator is inside of; written by
  // it, Abort waits for 0.
  std::atomic<int> inside{0};
  // Operators by their handle; of the thread that makes calls.
  std::map<int, axonScalarOp> ops;
  int next_op = 0;

  void SetLastError(const std::string& text) {
    std::lock_guard<std::mutex> lock(mutex);
    failure_told = comm->failed();
    last_error = text;
  }
  // What no call has returned, since a stream met it, counts as well.
  std::string LastError() {
    std::lock_guard<std::mutex> lock(mutex);
    if (!failure_told && comm->failed()) {
      failure_told = true;
      last_error = std::string(comm->status().message());
    }
    return last_error;
  }

 private:
  std::mutex mutex;  // guards what follows
  std::string last_error;
  bool failure_told = false;  // it came before last_error, or is it
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
// Set in the child by fork's handler, read by every call; relaxed: the child
// has one thread.
extern constinit std::atomic<bool> forked;
// True in a child of fork of a process that has used the library.
inline bool InForkedChild() { return forked.load(std::memory_order_relaxed); }

absl::Status CheckHandle(const axonComm* comm);
// As long as this lives the communicator does: for what may be called while
// another thread ends it. Not for the calls of the thread that uses it.
class Held {
 public:
  explicit Held(axonComm* comm);
  ~Held();
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  // Not OK: there is no such communicator, and nothing is held.
  const absl::Status& status() const { return status_; }
  // The communicator is refused from now on, and freed when nobody holds it.
  void End();

 private:
  axonComm* const comm_;
  absl::Status status_;
};
// Makes a handle that can be Held.
axonComm* NewHandle(std::unique_ptr<Communicator> comm);
absl::Status CheckHandle(const axonStream* stream);
absl::Status CheckHandle(const axonEvent* event);

// The calling thread is inside a communicator for as long as this lives. No
// locked instruction and no fence: Abort orders its own store (failed) against
// this one by HeavyFence, so that either it sees the thread inside or the
// thread sees the failure.
class Inside {
 public:
  explicit Inside(axonComm& comm) : comm_(comm) {
    Add(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  // release: all that was done inside comes before.
  ~Inside() { Add(-1, std::memory_order_release); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  void Add(int more, std::memory_order order) {
    comm_.inside.store(comm_.inside.load(std::memory_order_relaxed) + more,
                       order);
  }

  axonComm& comm_;
};

}  // namespace axon
