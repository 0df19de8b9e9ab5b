// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "axon/mpi.h"

namespace {

// Valid until the thread's next call; the thread is writer and only reader.
thread_local char last_error[1024];

axonResult_t Fail(axonResult_t result, const char* object, const char* text) {
  std::snprintf(last_error, sizeof(last_error), "axonCommInitMpi: %s: %s",
                object, text);
  return result;
}

axonResult_t MpiFailure(const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) {
    std::snprintf(text, sizeof(text), "MPI error %d", code);
  }
  return Fail(axonSystemError, call, text);
}

// Makes `mpi` return its errors for the life of this object.
class ReturnErrors {
 public:
  explicit ReturnErrors(MPI_Comm mpi) : mpi_(mpi) {
    MPI_Comm_get_errhandler(mpi_, &before_);
    MPI_Comm_set_errhandler(mpi_, MPI_ERRORS_RETURN);
  }
  ~ReturnErrors() {
    MPI_Comm_set_errhandler(mpi_, before_);
    MPI_Errhandler_free(&before_);
  }
  ReturnErrors(const ReturnErrors&) = delete;
  ReturnErrors& operator=(const ReturnErrors&) = delete;

 private:
  const MPI_Comm mpi_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

axonResult_t CheckArguments(axonComm_t* comm, MPI_Comm mpi) {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (!initialized || finalized) {
    return Fail(axonInvalidUsage, "MPI",
                initialized ? "is finalised" : "call MPI_Init first");
  }
  if (comm == nullptr) return Fail(axonInvalidArgument, "comm", "is NULL");
  if (mpi == MPI_COMM_NULL) {
    return Fail(axonInvalidArgument, "mpi", "is MPI_COMM_NULL");
  }
  return axonSuccess;
}

// What rank 0 tells the others: its error, or the id.
struct Invitation {
  int result;
  axonUniqueId id;
  char error[512];
};

Invitation Invite() {
  Invitation invitation{};
  invitation.result = axonGetUniqueId(&invitation.id);
  if (invitation.result != axonSuccess) {
    std::snprintf(invitation.error, sizeof(invitation.error), "%s",
                  axonGetLastError(nullptr));
  }
  return invitation;
}

}  // namespace

axonResult_t axonCommInitMpi(axonComm_t* comm, MPI_Comm mpi,
                             axonConfig_t* config) noexcept {
  axonResult_t result = CheckArguments(comm, mpi);
  if (result != axonSuccess) return result;
  *comm = nullptr;
  const ReturnErrors scope(mpi);
  int inter = 0;
  int rank = 0;
  int size = 0;
  int code = MPI_Comm_test_inter(mpi, &inter);
  if (code != MPI_SUCCESS) return MpiFailure("MPI_Comm_test_inter", code);
  if (inter) {
    return Fail(axonInvalidArgument, "mpi",
                "has two groups; MPI_Intercomm_merge makes one of them");
  }
  code = MPI_Comm_rank(mpi, &rank);
  if (code != MPI_SUCCESS) return MpiFailure("MPI_Comm_rank", code);
  code = MPI_Comm_size(mpi, &size);
  if (code != MPI_SUCCESS) return MpiFailure("MPI_Comm_size", code);

  Invitation invitation = rank == 0 ? Invite() : Invitation{};
  code = MPI_Bcast(&invitation, sizeof(invitation), MPI_BYTE, 0, mpi);
  if (code != MPI_SUCCESS) return MpiFailure("MPI_Bcast", code);
  if (invitation.result != axonSuccess) {
    return Fail(static_cast<axonResult_t>(invitation.result),
                "axonGetUniqueId on rank 0", invitation.error);
  }
  axonConfig_t defaults = AXON_CONFIG_INITIALIZER;
  result = axonCommInitRankConfig(comm, size, invitation.id, rank,
                                  config != nullptr ? config : &defaults);
  if (result != axonSuccess) {
    return Fail(result, "axonCommInitRankConfig", axonGetLastError(nullptr));
  }
  return axonSuccess;
}

const char* axonMpiGetLastError(void) noexcept { return last_error; }
