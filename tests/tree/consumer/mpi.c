/* SPDX-License-Identifier: Apache-2.0 */
/* An MPI program: a communicator of MPI_COMM_WORLD sums the ranks. */
#include <axon/mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, ranks, right = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  axonComm_t comm;
  if (axonCommInitMpi(&comm, MPI_COMM_WORLD, NULL) == axonSuccess) {
    int64_t sum = rank;
    right = axonAllReduce(&sum, &sum, 1, axonInt64, axonSum, comm, NULL) ==
                axonSuccess &&
            sum == (int64_t)ranks * (ranks - 1) / 2 &&
            axonCommDestroy(comm) == axonSuccess;
  } else {
    fprintf(stderr, "rank %d: %s\n", rank, axonMpiGetLastError());
  }
  MPI_Finalize();
  if (right) printf("rank %d of %d is right\n", rank, ranks);
  return right ? 0 : 1;
}
