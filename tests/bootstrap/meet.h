// SPDX-License-Identifier: Apache-2.0
// What tests of meetings share: options, and a rank's usual exchange as text.
#pragma once

#include <string>

#include "bootstrap/bootstrap.h"
#include "bootstrap/rendezvous.h"

namespace axon {

BootstrapOptions MeetOptions(int64_t timeout_ms = 20000,
                             Rendezvous* rendezvous = nullptr);

// Joins, exchanges texts of unequal length twice, meets at a barrier; returns
// what was gathered (Exchanged()) or the error.
std::string Exchange(const UniqueId& id, int rank, int nranks,
                     const BootstrapOptions& options);
std::string Exchanged(int nranks);

}  // namespace axon
