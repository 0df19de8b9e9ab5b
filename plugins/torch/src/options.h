// SPDX-License-Identifier: Apache-2.0
// What a user may set when making a process group: torch's own fields. Owned by
// torch; read once by the process group's constructor, by that thread.
#pragma once

#include <string>
#include <utility>

#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace torch_axon {

struct Options : c10d::Backend::Options {
  explicit Options(std::string backend = "axon",
                   std::chrono::milliseconds timeout = kBackendDefaultTimeout)
      : c10d::Backend::Options(std::move(backend), timeout) {}
};

}  // namespace torch_axon
