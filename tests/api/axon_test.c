/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of axon.h once, from strict C99: one rank, so that a result is its
 * own input. */
#include "axon/axon.h"

#include <stdio.h>
#include <string.h>

static int failures = 0;

static void Check(int ok, const char* what, int line) {
  if (ok) return;
  ++failures;
  fprintf(stderr, "line %d: %s: %s\n", line, what, axonGetLastError(NULL));
}
#define CHECK(condition) Check((condition), #condition, __LINE__)
#define OK(call) Check((call) == axonSuccess, #call, __LINE__)

static int called = 0;

static void Callback(axonResult_t result, void* arg) {
  if (result == axonSuccess) *(int*)arg = 1;
}

static axonComm_t Create(void) {
  axonComm_t comms[3] = {NULL, NULL, NULL};
  axonUniqueId id;
  axonConfig_t config = AXON_CONFIG_INITIALIZER;
  int number = -1;
  config.commName = "c99";
  OK(axonGetUniqueId(&id));
  OK(axonCommInitRank(&comms[0], 1, id, 0));
  OK(axonGetUniqueId(&id));
  OK(axonCommInitRankConfig(&comms[1], 1, id, 0, &config));
  OK(axonCommInitAll(&comms[2], 1, NULL));
  OK(axonCommCount(comms[1], &number));
  CHECK(number == 1);
  OK(axonCommUserRank(comms[1], &number));
  CHECK(number == 0);
  OK(axonCommAbort(comms[0]));
  OK(axonCommDestroy(comms[2]));
  /* Without a launcher it says so; under one it works. */
  if (axonCommInitEnv(&comms[0], NULL) == axonSuccess) {
    OK(axonCommDestroy(comms[0]));
  }
  return comms[1];
}

static void Collectives(axonComm_t comm, axonStream_t stream) {
  const float in[4] = {1, 2, 3, 4};
  float out[4];
  const int64_t count = 4, displ = 0;
#define CALL(call)                               \
  memset(out, 0, sizeof(out));                   \
  OK(call);                                      \
  if (stream) OK(axonStreamSynchronize(stream)); \
  CHECK(memcmp(in, out, sizeof(in)) == 0)
  CALL(axonAllReduce(in, out, 4, axonFloat, axonSum, comm, stream));
  CALL(axonBroadcast(in, out, 4, axonFloat, 0, comm, stream));
  CALL(axonReduce(in, out, 4, axonFloat, axonMax, 0, comm, stream));
  CALL(axonAllGather(in, out, 4, axonFloat, comm, stream));
  CALL(axonReduceScatter(in, out, 4, axonFloat, axonMin, comm, stream));
  CALL(axonAlltoAll(in, out, 4, axonFloat, comm, stream));
  CALL(axonGather(in, out, 4, axonFloat, 0, comm, stream));
  CALL(axonScatter(in, out, 4, axonFloat, 0, comm, stream));
  CALL(axonAllGatherV(in, out, &count, &displ, axonFloat, comm, stream));
  CALL(axonReduceScatterV(in, out, &count, &displ, axonFloat, axonAvg, comm,
                          stream));
  CALL(axonAlltoAllV(in, &count, &displ, out, &count, &displ, axonFloat, comm,
                     stream));
#undef CALL
  OK(axonBcast(out, 4, axonFloat, 0, comm, stream));
  OK(axonBarrier(comm, stream));
  OK(axonGroupStart());
  OK(axonSend(in, 4, axonFloat, 0, comm, stream));
  OK(axonRecv(out, 4, axonFloat, 0, comm, stream));
  OK(axonGroupEnd());
  /* The buffers are the library's until then. */
  if (stream) OK(axonStreamSynchronize(stream));
  CHECK(memcmp(in, out, sizeof(in)) == 0);
}

static void Operators(axonComm_t comm) {
  float scalar = 3, value = 2;
  axonRedOp_t op = axonSum;
  OK(axonRedOpCreatePreMulSum(&op, &scalar, axonFloat, axonScalarDevice, comm));
  scalar = 4; /* read when the call runs */
  OK(axonAllReduce(&value, &value, 1, axonFloat, op, comm, NULL));
  CHECK(value == 8);
  OK(axonRedOpDestroy(op, comm));
}

static void Memory(axonComm_t comm) {
  void *memory = NULL, *handle = NULL;
  OK(axonMemAlloc(&memory, 100));
  OK(axonCommRegister(comm, memory, 100, &handle));
  OK(axonCommDeregister(comm, handle));
  OK(axonMemFree(memory));
}

static void Streams(axonComm_t comm) {
  axonStream_t stream = NULL, other = NULL;
  axonEvent_t event = NULL;
  OK(axonStreamCreate(&stream));
  OK(axonStreamCreate(&other));
  OK(axonEventCreate(&event));
  Collectives(comm, stream);
  OK(axonEventRecord(event, stream));
  OK(axonStreamWaitEvent(other, event));
  OK(axonStreamAddCallback(other, Callback, &called));
  OK(axonEventSynchronize(event));
  OK(axonEventQuery(event));
  OK(axonStreamSynchronize(other));
  OK(axonStreamQuery(other));
  OK(axonEventDestroy(event));
  OK(axonStreamDestroy(stream));
  OK(axonStreamDestroy(other));
}

static void Queries(axonComm_t comm) {
  char text[512];
  size_t needed = 0;
  int version = 0;
  axonResult_t state = axonInternalError;
  axonComm_t split = NULL;
  OK(axonGetVersion(&version));
  CHECK(version == AXON_VERSION_CODE);
  CHECK(strcmp(axonGetErrorString(axonSuccess), "no error") == 0);
  OK(axonCommDump(comm, text, sizeof(text), &needed));
  CHECK(strstr(text, "c99") != NULL && needed > 1);
  OK(axonCommSetTimeout(comm, 60000));
  OK(axonSetCallTimeout(30000));
  OK(axonCommSplit(comm, 0, 0, &split, NULL));
  OK(axonCommDestroy(split));
  OK(axonCommFinalize(comm));
  OK(axonCommGetAsyncError(comm, &state));
  CHECK(state == axonSuccess);
}

int main(void) {
  axonComm_t comm = Create();
  Collectives(comm, NULL);
  Operators(comm);
  Memory(comm);
  Streams(comm);
  Queries(comm);
  OK(axonCommDestroy(comm));
  return failures == 0 ? 0 : 1;
}
