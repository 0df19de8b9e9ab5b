// SPDX-License-Identifier: Apache-2.0
#include "comm/create.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace axon {

absl::StatusOr<UniqueId> NewUniqueId(Process& process) {
  const Settings& s = process.settings();
  if (!s.comm_id.empty()) return FixedUniqueId(s.comm_id, s.comm_secret);
  return process.rendezvous().Open({s.socket_ifname, s.port_range});
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(
    Process& process, const UniqueId& id, int rank, int ranks,
    CommConfig config) {
  // The same on all ranks, and not like that of another communicator.
  if (config.name.empty()) {
    config.name = absl::BytesToHexString(id.secret.substr(0, 4));
  }
  ASSIGN_OR_RETURN(
      Membership membership,
      Join(process, id, rank, ranks, config.name, config.init_timeout_ms));
  return Communicator::Create(process, std::move(membership),
                              std::move(config));
}

absl::StatusOr<LaunchPlace> PlaceFromEnvironment(Process& process,
                                                 const Lookup& lookup) {
  ASSIGN_OR_RETURN(const Launch launch, ReadLaunch(process.settings(), lookup));
  LaunchPlace place;
  place.rank = launch.rank;
  place.size = launch.size;
  if (launch.place.empty()) {
    // A single rank needs no place that others know.
    ASSIGN_OR_RETURN(place.id, NewUniqueId(process));
  } else {
    ASSIGN_OR_RETURN(
        place.id, FixedUniqueId(launch.place, process.settings().comm_secret));
  }
  return place;
}

}  // namespace axon
