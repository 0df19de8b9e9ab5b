// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/launch_env.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"

namespace axon {
namespace {

// The variables of a launcher. It is taken to be the one if `proof` is set.
struct Launcher {
  const char* name;
  const char* proof;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};

// The inner launcher comes first: torchrun under srun or mpirun numbers the
// processes itself, mpirun inside a Slurm allocation sees Slurm's variables.
constexpr Launcher kLaunchers[] = {
    {"torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK",
     "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS"},
    {"PMIx under Slurm", "PMIX_RANK", "PMIX_RANK", "SLURM_NTASKS",
     "SLURM_LOCALID", ""},
    {"Slurm", "SLURM_PROCID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID",
     ""},
    {"RANK and WORLD_SIZE", "RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK",
     "LOCAL_WORLD_SIZE"},
};

std::string Value(const Lookup& lookup, const char* name) {
  const char* value = *name ? lookup(name) : nullptr;
  return value ? value : "";
}

absl::StatusOr<int> Number(const Lookup& lookup, const Launcher& launcher,
                           const char* name) {
  const std::string text = Value(lookup, name);
  int number = 0;
  if (text.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s is set but %s is not (%s); set both, or AXON_RANK and AXON_SIZE",
        launcher.proof, name, launcher.name));
  }
  if (!absl::SimpleAtoi(text, &number)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s='%s' is not a number", name, text));
  }
  return number;
}

// A hint: absent or ill-formed means unknown.
int Hint(const Lookup& lookup, const char* name) {
  int number = -1;
  return absl::SimpleAtoi(Value(lookup, name), &number) ? number : -1;
}

absl::Status ReadNumbers(const Settings& settings, const Lookup& lookup,
                         Launch* launch) {
  if ((settings.rank >= 0) != (settings.size >= 0)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s is set but %s is not; set both, or neither where a launcher says "
        "them",
        settings.rank >= 0 ? "AXON_RANK" : "AXON_SIZE",
        settings.rank >= 0 ? "AXON_SIZE" : "AXON_RANK"));
  }
  if (settings.rank >= 0) {
    launch->rank = static_cast<int>(settings.rank);
    launch->size = static_cast<int>(settings.size);
    launch->source = "AXON_RANK and AXON_SIZE";
    return absl::OkStatus();
  }
  for (const Launcher& launcher : kLaunchers) {
    if (Value(lookup, launcher.proof).empty()) continue;
    ASSIGN_OR_RETURN(launch->rank, Number(lookup, launcher, launcher.rank));
    ASSIGN_OR_RETURN(launch->size, Number(lookup, launcher, launcher.size));
    launch->local_rank = Hint(lookup, launcher.local_rank);
    launch->local_size = Hint(lookup, launcher.local_size);
    launch->source = launcher.name;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "nothing says which rank this process is: set AXON_RANK and AXON_SIZE, "
      "or start it with mpirun, srun or torchrun");
}

absl::StatusOr<std::string> ReadPlace(const Settings& settings,
                                      const Lookup& lookup,
                                      const Launch& launch) {
  if (!settings.comm_id.empty()) return settings.comm_id;
  const std::string host = Value(lookup, "MASTER_ADDR");
  const std::string port_text = Value(lookup, "MASTER_PORT");
  if (host.empty() || port_text.empty()) {
    if (launch.size == 1) return std::string();
    const char* problem =
        host.empty() == port_text.empty()
            ? "neither AXON_COMM_ID nor MASTER_ADDR is set"
            : (host.empty() ? "MASTER_PORT is set but MASTER_ADDR is not"
                            : "MASTER_ADDR is set but MASTER_PORT is not");
    return absl::InvalidArgumentError(absl::StrFormat(
        "nothing says where the %d ranks meet: %s; set AXON_COMM_ID=host:port "
        "to an address of rank 0's machine and a free port there",
        launch.size, problem));
  }
  int port = 0;
  if (!absl::SimpleAtoi(port_text, &port) || port < 1 || port > 65534) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "MASTER_PORT='%s' is not a port whose successor is one (1 to 65534); "
        "set AXON_COMM_ID=host:port",
        port_text));
  }
  const bool bare_v6 = absl::StrContains(host, ':') && host[0] != '[';
  return bare_v6 ? absl::StrFormat("[%s]:%d", host, port + 1)
                 : absl::StrFormat("%s:%d", host, port + 1);
}

}  // namespace

absl::StatusOr<Launch> ReadLaunch(const Settings& settings,
                                  const Lookup& lookup) {
  Launch launch;
  RETURN_IF_ERROR(ReadNumbers(settings, lookup, &launch));
  if (launch.size < 1 || launch.rank < 0 || launch.rank >= launch.size) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: rank %d of %d is contradictory; ranks count from 0 to the number "
        "of ranks less one",
        launch.source, launch.rank, launch.size));
  }
  ASSIGN_OR_RETURN(launch.place, ReadPlace(settings, lookup, launch));
  return launch;
}

}  // namespace axon
