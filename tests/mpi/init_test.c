/* SPDX-License-Identifier: Apache-2.0 */
/* axonCommInitMpi as a C99 program uses it; run by mpirun with any number of
 * ranks. Ends with 1 on the first rank that finds something wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axon/mpi.h"

#define EXPECT(condition)                                               \
  do {                                                                  \
    if (!(condition)) {                                                 \
      fprintf(stderr, "%s:%d: rank %d: not true: %s; %s\n", __FILE__,   \
              __LINE__, world_rank, #condition, axonMpiGetLastError()); \
      exit(1); /* which ends the others, too */                         \
    }                                                                   \
  } while (0)

enum { kCount = 1000 };
static int world_rank = -1;

static axonComm_t Create(MPI_Comm mpi) {
  axonConfig_t config = AXON_CONFIG_INITIALIZER;
  axonComm_t comm = NULL;
  int rank = -1, size = -1, mpi_rank, mpi_size;
  config.timeoutMs = 60000;
  EXPECT(axonCommInitMpi(&comm, mpi, &config) == axonSuccess);
  MPI_Comm_rank(mpi, &mpi_rank);
  MPI_Comm_size(mpi, &mpi_size);
  EXPECT(axonCommUserRank(comm, &rank) == axonSuccess && rank == mpi_rank);
  EXPECT(axonCommCount(comm, &size) == axonSuccess && size == mpi_size);
  return comm;
}

/* The same sums and gathered values from Axon and from MPI. */
static void TestCollectives(MPI_Comm mpi) {
  axonComm_t comm = Create(mpi);
  int rank, size;
  int64_t in[kCount], sum[kCount], want_sum[kCount];
  int64_t *all, *want_all;
  MPI_Comm_rank(mpi, &rank);
  MPI_Comm_size(mpi, &size);
  all = malloc(sizeof(in) * size);
  want_all = malloc(sizeof(in) * size);
  for (int i = 0; i < kCount; ++i) in[i] = 1000003 * rank + 7 * i;

  MPI_Allreduce(in, want_sum, kCount, MPI_INT64_T, MPI_SUM, mpi);
  EXPECT(axonAllReduce(in, sum, kCount, axonInt64, axonSum, comm, NULL) ==
         axonSuccess);
  EXPECT(memcmp(sum, want_sum, sizeof(sum)) == 0);

  MPI_Allgather(in, kCount, MPI_INT64_T, want_all, kCount, MPI_INT64_T, mpi);
  EXPECT(axonAllGather(in, all, kCount, axonInt64, comm, NULL) == axonSuccess);
  EXPECT(memcmp(all, want_all, sizeof(in) * size) == 0);

  EXPECT(axonCommDestroy(comm) == axonSuccess);
  free(all);
  free(want_all);
}

/* Ranks in the opposite order, in groups of two colors. */
static void TestSplitCommunicator(void) {
  MPI_Comm part;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &part);
  TestCollectives(part);
  MPI_Comm_free(&part);
}

static void TestRefusals(void) {
  axonComm_t comm = NULL;
  EXPECT(axonCommInitMpi(&comm, MPI_COMM_NULL, NULL) == axonInvalidArgument);
  EXPECT(strstr(axonMpiGetLastError(), "MPI_COMM_NULL") != NULL);
  EXPECT(axonCommInitMpi(NULL, MPI_COMM_WORLD, NULL) == axonInvalidArgument);
  EXPECT(strstr(axonMpiGetLastError(), "comm") != NULL);
}

/* Needs two ranks: one on each side. */
static void TestIntercommunicatorIsRefused(void) {
  MPI_Comm half, inter;
  axonComm_t comm = NULL;
  const int side = world_rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, side, world_rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 1, &inter);
  EXPECT(axonCommInitMpi(&comm, inter, NULL) == axonInvalidArgument);
  EXPECT(strstr(axonMpiGetLastError(), "two groups") != NULL);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

static void TestErrorHandlerIsKept(void) {
  MPI_Errhandler handler;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  EXPECT(handler == MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
}

int main(int argc, char** argv) {
  axonComm_t comm = NULL;
  int size;
  EXPECT(axonCommInitMpi(&comm, MPI_COMM_WORLD, NULL) == axonInvalidUsage);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  TestRefusals();
  TestCollectives(MPI_COMM_WORLD);
  TestSplitCommunicator();
  if (size > 1) TestIntercommunicatorIsRefused();
  TestErrorHandlerIsKept();
  MPI_Finalize();
  EXPECT(axonCommInitMpi(&comm, MPI_COMM_WORLD, NULL) == axonInvalidUsage);
  return 0;
}
