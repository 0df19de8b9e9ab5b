// SPDX-License-Identifier: Apache-2.0
// Lets go of Python's lock around a call that may wait, if this thread holds
// it: torch's bindings have released it already on most ways in, not on all.
// Lives on the caller's stack. The calls under way are counted: a thread that
// comes back while the interpreter goes ends the process, so the exit waits for
// them.
#pragma once

#include <torch/csrc/python_headers.h>

#include <atomic>

namespace torch_axon {

class ReleaseGil {
 public:
  ReleaseGil()
      : state_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread()
                                                        : nullptr) {
    under_way_.fetch_add(1, std::memory_order_relaxed);
  }
  ~ReleaseGil() {
    under_way_.fetch_sub(1, std::memory_order_relaxed);
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

  static int UnderWay() { return under_way_.load(std::memory_order_relaxed); }

 private:
  // Writers: all callers. Reader: the hook at exit. Relaxed: only the number is
  // of interest, and the reader looks again and again.
  static inline std::atomic<int> under_way_{0};

  PyThreadState* const state_;
};

}  // namespace torch_axon
