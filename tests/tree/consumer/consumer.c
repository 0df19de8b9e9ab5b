/* SPDX-License-Identifier: Apache-2.0 */
/* A C99 program: one rank alone sums its own numbers. */
#include <axon/axon.h>
#include <stdio.h>

static int failed(const char* what, axonResult_t result) {
  if (result == axonSuccess) return 0;
  fprintf(stderr, "%s: %s: %s\n", what, axonGetErrorString(result),
          axonGetLastError(NULL));
  return 1;
}

int main(void) {
  int version = 0;
  if (failed("version", axonGetVersion(&version))) return 1;
  if (version != AXON_VERSION_CODE) {
    fprintf(stderr, "header %d, library %d\n", AXON_VERSION_CODE, version);
    return 1;
  }
  axonUniqueId id;
  axonComm_t comm;
  if (failed("id", axonGetUniqueId(&id))) return 1;
  if (failed("init", axonCommInitRank(&comm, 1, id, 0))) return 1;
  const float in[3] = {1, 2, 3};
  float out[3] = {0, 0, 0};
  if (failed("all-reduce",
             axonAllReduce(in, out, 3, axonFloat32, axonSum, comm, NULL))) {
    return 1;
  }
  if (out[0] != 1 || out[1] != 2 || out[2] != 3) {
    fprintf(stderr, "got %g %g %g\n", out[0], out[1], out[2]);
    return 1;
  }
  if (failed("destroy", axonCommDestroy(comm))) return 1;
  printf("axon %d works from C\n", version);
  return 0;
}
