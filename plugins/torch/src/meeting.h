// SPDX-License-Identifier: Apache-2.0
// How the ranks of a new group find each other through torch's store. Used once
// by each process group's constructor, on its thread.
#pragma once

#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "axon/axon.h"
#include "errors.h"

namespace torch_axon {

// Waits until all ranks of the group have come, within the limit of `origin`,
// and returns the id that rank 0 has made for them. Throws, on every rank, with
// the ranks that are missing.
axonUniqueId Meet(c10d::Store& store, const Origin& origin);

// All ranks have used the id: takes this rank's keys out of the store, so that
// a later group may use the same names.
void Part(c10d::Store& store, const Origin& origin);

}  // namespace torch_axon
