// SPDX-License-Identifier: Apache-2.0
// Lets go of Python's lock around a wait, if this thread holds it. Torch's
// bindings have released it already on most ways in, not on all.
#pragma once

#include <torch/csrc/python_headers.h>

namespace torch_axon {

class ReleaseGil {
 public:
  ReleaseGil()
      : state_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread()
                                                        : nullptr) {}
  ~ReleaseGil() {
    if (state_ != nullptr) PyEval_RestoreThread(state_);
  }
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace torch_axon
