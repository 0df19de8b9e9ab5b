/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded, stands before the library's axonAllReduce and spoils one element
 * of every result that is no single value, as those that add up the errors are.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "axon/axon.h"

axonResult_t axonAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           axonDataType_t datatype, axonRedOp_t op,
                           axonComm_t comm, axonStream_t stream) {
  axonResult_t (*next)(const void*, void*, size_t, axonDataType_t, axonRedOp_t,
                       axonComm_t, axonStream_t);
  *(void**)&next = dlsym(RTLD_NEXT, "axonAllReduce");
  const axonResult_t result =
      next(sendbuff, recvbuff, count, datatype, op, comm, stream);
  if (count > 1) ((unsigned char*)recvbuff)[0] ^= 1;
  return result;
}
