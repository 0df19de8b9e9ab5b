/* SPDX-License-Identifier: Apache-2.0 */
/* Axon: collective communication for host memory.
 *
 * The names, argument orders and enum values are NCCL's (2.30) with the prefix
 * `axon` wherever they have a meaning for host memory; what NCCL does not have
 * stands in sections marked "Axon's own".
 *
 * Conventions, valid for every call unless its comment says otherwise:
 *
 * - Buffers are ordinary host memory and belong to the caller. Counts are
 *   elements, never bytes. A buffer may be NULL when its count is 0.
 * - With a NULL stream a call is done when it returns: buffers may be read,
 *   rewritten or freed. With a stream it is queued; the buffers belong to the
 *   library until the stream has reached the end of the call
 *   (axonStreamSynchronize, an event, a callback).
 * - Every rank of a communicator makes the same collective calls with the same
 *   count, type, operator and root in the same order. A difference is an error
 *   on every rank, found before a result is wrong, that names both calls.
 *   A root or sender that had already returned learns of it at its next call.
 * - One communicator is used by one thread at a time; different communicators
 *   are independent. axonCommAbort, axonCommGetAsyncError and axonCommDump may
 *   be called from any thread at any time.
 * - axonInvalidArgument means that nothing happened and the communicator stays
 *   usable; so does axonInvalidUsage where a call breaks the rules of groups.
 *   Any other error is kept: every later call on the communicator returns it,
 *   on every rank, and only axonCommAbort, axonCommDestroy and queries are
 *   useful then. axonGetLastError has the text.
 * - Buffers of one call must not overlap, except in place as each call states.
 * - A child of fork() may not use communicators of its parent
 *   (axonInvalidUsage); the parent is not disturbed.
 */
#ifndef AXON_AXON_H_
#define AXON_AXON_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define AXON_MAJOR 0
#define AXON_MINOR 1
#define AXON_PATCH 0
/* major * 10000 + minor * 100 + patch, as NCCL counts. */
#define AXON_VERSION_CODE (AXON_MAJOR * 10000 + AXON_MINOR * 100 + AXON_PATCH)

#ifdef __cplusplus
#define AXON_NOEXCEPT noexcept
extern "C" {
#else
#define AXON_NOEXCEPT
#endif

#if defined(__GNUC__)
#define AXON_API __attribute__((visibility("default")))
#else
#define AXON_API
#endif

/* --- Results --- */

typedef enum {
  axonSuccess = 0,
  axonUnhandledCudaError = 1, /* never returned; keeps NCCL's numbering */
  axonSystemError = 2,        /* the operating system refused something */
  axonInternalError = 3,      /* a bug in Axon */
  axonInvalidArgument = 4,    /* the call did nothing; see above */
  axonInvalidUsage = 5, /* ranks disagree, or a forbidden order of calls */
  axonRemoteError = 6,  /* a peer died, aborted or failed */
  axonInProgress = 7,   /* queued work is not done yet */
  axonTimeout = 8,      /* a peer did not take part in time */
  axonNumResults = 9
} axonResult_t;

/* AXON_VERSION_CODE of the library in use. */
AXON_API axonResult_t axonGetVersion(int* version) AXON_NOEXCEPT;

/* A fixed phrase for a result; never NULL, owned by the library. */
AXON_API const char* axonGetErrorString(axonResult_t result) AXON_NOEXCEPT;

/* --- Data types --- */

typedef enum {
  axonInt8 = 0,
  axonChar = 0,
  axonUint8 = 1,
  axonInt32 = 2,
  axonInt = 2,
  axonUint32 = 3,
  axonInt64 = 4,
  axonUint64 = 5,
  axonFloat16 = 6,
  axonHalf = 6,
  axonFloat32 = 7,
  axonFloat = 7,
  axonFloat64 = 8,
  axonDouble = 8,
  axonBfloat16 = 9,
  axonFloat8e4m3 = 10, /* the "fn" form: no infinities, NaN is 0x7f and 0xff */
  axonFloat8e5m2 = 11, /* IEEE-like: infinities and NaNs */
  axonNumTypes = 12
} axonDataType_t;

/* Operators. The rules below hold on every rank, for every size and algorithm,
 * and every rank gets the same bits.
 *
 * - Integers wrap on overflow. Avg of integers is the wrapped sum divided by
 *   the number of ranks, rounded toward zero.
 * - float16, bfloat16 and both float8 types are widened to float32, combined in
 *   rank order and rounded once, to nearest even. A float8e4m3 result beyond
 *   its range saturates to +-448; float8e5m2 overflows to infinity.
 * - float32 and float64 are combined in an order that depends on the number of
 *   ranks, the count and the algorithm, never on timing. Avg divides the sum.
 * - Max and Min give NaN if any rank's element is NaN. Of +0 and -0, Max gives
 *   +0 and Min gives -0.
 * - BitAnd, BitOr and BitXor act on the bits; they are refused for floating
 *   types.
 * - Booleans are bytes of 0 or 1 as axonUint8: Max is "or", Min is "and". */
typedef enum {
  axonSum = 0,
  axonProd = 1,
  axonMax = 2,
  axonMin = 3,
  axonAvg = 4,
  axonNumOps = 5, /* NCCL's own operators; ours follow */
  axonBitAnd = 5, /* Axon's own */
  axonBitOr = 6,
  axonBitXor = 7,
  /* Handles of axonRedOpCreatePreMulSum lie above. */
  axonMaxRedOp = 0x7fffffff
} axonRedOp_t;

/* --- Communicators --- */

typedef struct axonComm* axonComm_t;
typedef struct axonStream* axonStream_t;
typedef struct axonEvent* axonEvent_t;

#define AXON_COMM_NULL NULL
#define AXON_UNIQUE_ID_BYTES 128
#define AXON_SPLIT_NOCOLOR (-1)

/* Names one communicator to be. Made by one rank, carried to the others by the
 * caller (MPI, a file, a store, the command line as bytes). Good for one
 * communicator. Holds addresses, a port and a secret. */
typedef struct {
  char internal[AXON_UNIQUE_ID_BYTES];
} axonUniqueId;

#define AXON_CONFIG_MAGIC 0xcafebeefU
#define AXON_CONFIG_UNDEF_INT INT_MIN

/* Size, magic and version let a program built with another version of this
 * header run: fields that its version did not have keep their defaults. */
typedef struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;         /* must be 1 or undefined: creation blocks */
  int timeoutMs;        /* of creation and of every call; 0 = none; default
                           AXON_INIT_TIMEOUT and AXON_TIMEOUT */
  int splitShare;       /* accepted: processes always share their segments */
  const char* commName; /* for texts and dumps; copied; NULL = a number */
} axonConfig_t;

#define AXON_CONFIG_INITIALIZER                                              \
  {                                                                          \
    sizeof(axonConfig_t), AXON_CONFIG_MAGIC, AXON_VERSION_CODE,              \
        AXON_CONFIG_UNDEF_INT, AXON_CONFIG_UNDEF_INT, AXON_CONFIG_UNDEF_INT, \
        NULL                                                                 \
  }

/* Opens a port for the rendezvous of one communicator and describes it in *id.
 * If AXON_COMM_ID is set ("host:port"), the id names that place and rank 0 will
 * listen there. The port is served by a thread of this process until all ranks
 * have met or the process ends. */
AXON_API axonResult_t axonGetUniqueId(axonUniqueId* id) AXON_NOEXCEPT;

/* Creates a communicator of `nranks` ranks, at most 256; collective over all of
 * them, each with its own `rank` in [0, nranks). Blocks until all have arrived
 * or the timeout has passed (axonTimeout names the missing ranks). Two ranks
 * with one number, different values of nranks and an id used twice are
 * axonInvalidUsage. Thread-safe; several ranks may live in one process. */
AXON_API axonResult_t axonCommInitRank(axonComm_t* comm, int nranks,
                                       axonUniqueId id, int rank) AXON_NOEXCEPT;
AXON_API axonResult_t
axonCommInitRankConfig(axonComm_t* comm, int nranks, axonUniqueId id, int rank,
                       axonConfig_t* config) AXON_NOEXCEPT;

/* Creates all `ndev` ranks of a communicator in this process: comms[i] is rank
 * i, each to be used from its own thread, or all from one thread between
 * axonGroupStart and axonGroupEnd. `devlist` is accepted and ignored. */
AXON_API axonResult_t axonCommInitAll(axonComm_t* comms, int ndev,
                                      const int* devlist) AXON_NOEXCEPT;

/* Axon's own. Creates a communicator from the environment: rank and size from
 * AXON_RANK and AXON_SIZE, else from Open MPI, PMI, Slurm or torchrun; the
 * place to meet from AXON_COMM_ID ("host:port"), else MASTER_ADDR with
 * MASTER_PORT + 1. AXON_COMM_SECRET, where set, must be the same on all ranks.
 * `config` may be NULL. */
AXON_API axonResult_t axonCommInitEnv(axonComm_t* comm,
                                      axonConfig_t* config) AXON_NOEXCEPT;

/* Splits `comm`; collective over it. Ranks that pass the same color >= 0 form a
 * new communicator, ordered by key, then by rank in `comm`. With
 * AXON_SPLIT_NOCOLOR *newcomm becomes NULL. config NULL inherits. In a group,
 * which is how one thread splits several ranks, it is done by GroupEnd, and
 * *newcomm is NULL before. */
AXON_API axonResult_t axonCommSplit(axonComm_t comm, int color, int key,
                                    axonComm_t* newcomm,
                                    axonConfig_t* config) AXON_NOEXCEPT;

/* Waits for all queued calls of this rank; local. */
AXON_API axonResult_t axonCommFinalize(axonComm_t comm) AXON_NOEXCEPT;

/* Finalizes if needed and frees; local, never waits for peers that have taken
 * part in every call. Communicators may be destroyed in any order. */
AXON_API axonResult_t axonCommDestroy(axonComm_t comm) AXON_NOEXCEPT;

/* Stops everything on this communicator and frees it. May be called from any
 * thread while another one is inside a call: that call returns
 * axonInvalidUsage ("aborted") and the caller must not use `comm` again.
 * Returns within a second whatever the peers do; they get axonRemoteError.
 * Queued calls, and those of this thread's open group, are dropped. If another
 * thread has calls on it in an open group, or does not leave in time, it is
 * stopped but kept, with axonInvalidUsage: abort it again after that. */
AXON_API axonResult_t axonCommAbort(axonComm_t comm) AXON_NOEXCEPT;

/* *asyncError: axonSuccess, axonInProgress while queued calls are not done, or
 * the first error of the communicator. Looks for dead peers. */
AXON_API axonResult_t
axonCommGetAsyncError(axonComm_t comm, axonResult_t* asyncError) AXON_NOEXCEPT;

/* Text of the last error: of `comm`, or with NULL, or where another thread has
 * ended `comm`, of the calling thread. Valid until the thread's next Axon call;
 * never NULL. */
AXON_API const char* axonGetLastError(axonComm_t comm) AXON_NOEXCEPT;

AXON_API axonResult_t axonCommCount(axonComm_t comm, int* count) AXON_NOEXCEPT;
AXON_API axonResult_t axonCommUserRank(axonComm_t comm,
                                       int* rank) AXON_NOEXCEPT;

/* Axon's own. What every rank is doing, as text: one line a rank with host,
 * pid, last call, state and age. Writes at most `size` bytes with the final
 * NUL; *needed (may be NULL) is the size that holds all. */
AXON_API axonResult_t axonCommDump(axonComm_t comm, char* text, size_t size,
                                   size_t* needed) AXON_NOEXCEPT;

/* Axon's own. The time limit in milliseconds for later calls on `comm`; 0 means
 * none. Local: each rank obeys its own. */
AXON_API axonResult_t axonCommSetTimeout(axonComm_t comm,
                                         int milliseconds) AXON_NOEXCEPT;

/* Axon's own. The time limit of the next communication call that this thread
 * makes, instead of its communicator's; 0 means none. A group counts as one
 * call. */
AXON_API axonResult_t axonSetCallTimeout(int milliseconds) AXON_NOEXCEPT;

/* --- Memory --- */

/* Memory that peers on this machine can read where it lies, so that large calls
 * move nothing twice. Page aligned and zeroed. Shared memory is reserved at
 * once: axonSystemError tells what is short. A child of fork may use what it
 * inherited, as long as the parent does not free it; its writes are its own. */
AXON_API axonResult_t axonMemAlloc(void** ptr, size_t size) AXON_NOEXCEPT;
AXON_API axonResult_t axonMemFree(void* ptr) AXON_NOEXCEPT;

/* Registers a buffer; local. Memory of axonMemAlloc is always registered, and
 * ordinary memory cannot be mapped afterwards: accepted, changes nothing. */
AXON_API axonResult_t axonCommRegister(axonComm_t comm, void* buff, size_t size,
                                       void** handle) AXON_NOEXCEPT;
AXON_API axonResult_t axonCommDeregister(axonComm_t comm,
                                         void* handle) AXON_NOEXCEPT;

/* --- Collectives --- */

/* recvbuff = op over all ranks' sendbuff. In place: sendbuff == recvbuff. */
AXON_API axonResult_t axonAllReduce(const void* sendbuff, void* recvbuff,
                                    size_t count, axonDataType_t datatype,
                                    axonRedOp_t op, axonComm_t comm,
                                    axonStream_t stream) AXON_NOEXCEPT;

/* Root's sendbuff to every rank's recvbuff. sendbuff is used at the root only.
 * In place at the root: sendbuff == recvbuff. */
AXON_API axonResult_t axonBroadcast(const void* sendbuff, void* recvbuff,
                                    size_t count, axonDataType_t datatype,
                                    int root, axonComm_t comm,
                                    axonStream_t stream) AXON_NOEXCEPT;

/* The in-place form of axonBroadcast. */
AXON_API axonResult_t axonBcast(void* buff, size_t count,
                                axonDataType_t datatype, int root,
                                axonComm_t comm,
                                axonStream_t stream) AXON_NOEXCEPT;

/* As axonAllReduce, to the root only; recvbuff is used at the root only. */
AXON_API axonResult_t axonReduce(const void* sendbuff, void* recvbuff,
                                 size_t count, axonDataType_t datatype,
                                 axonRedOp_t op, int root, axonComm_t comm,
                                 axonStream_t stream) AXON_NOEXCEPT;

/* recvbuff holds nranks * sendcount elements, in rank order.
 * In place: sendbuff == recvbuff + rank * sendcount. */
AXON_API axonResult_t axonAllGather(const void* sendbuff, void* recvbuff,
                                    size_t sendcount, axonDataType_t datatype,
                                    axonComm_t comm,
                                    axonStream_t stream) AXON_NOEXCEPT;

/* sendbuff holds nranks * recvcount elements; rank r gets the reduced r-th
 * part. In place: recvbuff == sendbuff + rank * recvcount. */
AXON_API axonResult_t axonReduceScatter(const void* sendbuff, void* recvbuff,
                                        size_t recvcount,
                                        axonDataType_t datatype, axonRedOp_t op,
                                        axonComm_t comm,
                                        axonStream_t stream) AXON_NOEXCEPT;

/* Both buffers hold nranks * count elements: the r-th part of sendbuff goes to
 * rank r. In place is refused. */
AXON_API axonResult_t axonAlltoAll(const void* sendbuff, void* recvbuff,
                                   size_t count, axonDataType_t datatype,
                                   axonComm_t comm,
                                   axonStream_t stream) AXON_NOEXCEPT;

/* `count` elements of every rank to the root's recvbuff (nranks * count), which
 * is used at the root only. In place at the root:
 * sendbuff == recvbuff + root * count. */
AXON_API axonResult_t axonGather(const void* sendbuff, void* recvbuff,
                                 size_t count, axonDataType_t datatype,
                                 int root, axonComm_t comm,
                                 axonStream_t stream) AXON_NOEXCEPT;

/* The r-th part of the root's sendbuff (nranks * count, used at the root only)
 * to rank r. In place at the root: recvbuff == sendbuff + root * count. */
AXON_API axonResult_t axonScatter(const void* sendbuff, void* recvbuff,
                                  size_t count, axonDataType_t datatype,
                                  int root, axonComm_t comm,
                                  axonStream_t stream) AXON_NOEXCEPT;

/* Axon's own. Returns when every rank has called. */
AXON_API axonResult_t axonBarrier(axonComm_t comm,
                                  axonStream_t stream) AXON_NOEXCEPT;

/* Axon's own: parts of unequal size. `counts` and `displs` have nranks entries
 * in elements (64 bits), are read before the call returns, and `counts` is the
 * same on all ranks. displs NULL packs the parts in rank order.
 *
 * AllGatherV: rank r contributes counts[r] elements, which arrive at
 * recvbuff + displs[r]. In place: sendbuff == recvbuff + displs[rank]. */
AXON_API axonResult_t axonAllGatherV(const void* sendbuff, void* recvbuff,
                                     const int64_t* counts,
                                     const int64_t* displs,
                                     axonDataType_t datatype, axonComm_t comm,
                                     axonStream_t stream) AXON_NOEXCEPT;

/* Rank r gets counts[r] reduced elements that lie at sendbuff + displs[r] on
 * every rank. In place: recvbuff == sendbuff + displs[rank]. */
AXON_API axonResult_t axonReduceScatterV(const void* sendbuff, void* recvbuff,
                                         const int64_t* counts,
                                         const int64_t* displs,
                                         axonDataType_t datatype,
                                         axonRedOp_t op, axonComm_t comm,
                                         axonStream_t stream) AXON_NOEXCEPT;

/* sendcounts[r] elements at sendbuff + sdispls[r] to rank r, recvcounts[r] from
 * rank r to recvbuff + rdispls[r]. What one rank sends and the other expects
 * must agree; a difference is an error on both. In place is refused. */
AXON_API axonResult_t axonAlltoAllV(const void* sendbuff,
                                    const int64_t* sendcounts,
                                    const int64_t* sdispls, void* recvbuff,
                                    const int64_t* recvcounts,
                                    const int64_t* rdispls,
                                    axonDataType_t datatype, axonComm_t comm,
                                    axonStream_t stream) AXON_NOEXCEPT;

/* --- Point to point --- */

/* A message to `peer`, matched with its receives in order. Both sides must give
 * the same size; a difference is axonInvalidUsage on both. A send may return
 * before it is received if it is small enough to be buffered; do not rely on
 * it. Sends and receives are ordered only against those with the same peer and
 * direction, not against collectives. peer == own rank is allowed inside a
 * group. Zero counts keep their place in the order. */
AXON_API axonResult_t axonSend(const void* sendbuff, size_t count,
                               axonDataType_t datatype, int peer,
                               axonComm_t comm,
                               axonStream_t stream) AXON_NOEXCEPT;
AXON_API axonResult_t axonRecv(void* recvbuff, size_t count,
                               axonDataType_t datatype, int peer,
                               axonComm_t comm,
                               axonStream_t stream) AXON_NOEXCEPT;

/* --- Groups --- */

/* Calls between Start and End are collected and launched together by the
 * outermost End: sends and receives progress together, several communicators
 * may be driven by one thread, and creation of several ranks by one thread
 * works. Thread-local; nests. Arguments are checked when the call is made (its
 * axonInvalidArgument drops that call only); other errors are returned by End.
 * With NULL streams End returns when all is done. Calls on one stream keep its
 * order: ranks of one communicator that one thread drives need a stream each.
 */
AXON_API axonResult_t axonGroupStart(void) AXON_NOEXCEPT;
AXON_API axonResult_t axonGroupEnd(void) AXON_NOEXCEPT;

/* --- Operators with a scalar --- */

typedef enum {
  axonScalarDevice = 0,       /* *scalar is read when the call runs */
  axonScalarHostImmediate = 1 /* *scalar is read now */
} axonScalarResidence_t;

/* An operator that multiplies this rank's input by *scalar (of type `datatype`)
 * and sums, with one rounding for the types narrower than 32 bits. Local; each
 * rank may have its own scalar; usable with `comm` and `datatype` only. */
AXON_API axonResult_t axonRedOpCreatePreMulSum(axonRedOp_t* op, void* scalar,
                                               axonDataType_t datatype,
                                               axonScalarResidence_t residence,
                                               axonComm_t comm) AXON_NOEXCEPT;
/* Calls already made with `op` are not affected. */
AXON_API axonResult_t axonRedOpDestroy(axonRedOp_t op,
                                       axonComm_t comm) AXON_NOEXCEPT;

/* --- Streams and events (Axon's own) --- */

/* A queue of calls, done in order by the process's collective core (a thread
 * that sleeps when there is nothing to do). Calls of one communicator on
 * different streams keep their order; different communicators and sends and
 * receives on different streams progress independently. Cheap: no thread of its
 * own. All of these may be called from any thread. */
AXON_API axonResult_t axonStreamCreate(axonStream_t* stream) AXON_NOEXCEPT;
/* Waits for the stream, then frees it. */
AXON_API axonResult_t axonStreamDestroy(axonStream_t stream) AXON_NOEXCEPT;
/* Waits until everything queued so far is done; returns the first error of the
 * calls on the stream since the last synchronize. */
AXON_API axonResult_t axonStreamSynchronize(axonStream_t stream) AXON_NOEXCEPT;
/* axonSuccess if all is done, axonInProgress, or the first error. */
AXON_API axonResult_t axonStreamQuery(axonStream_t stream) AXON_NOEXCEPT;

/* Calls `callback(result, arg)` when all that was queued on the stream before
 * is done; `result` is the result of the last communication call before it.
 * Callbacks run one at a time on a thread of their own, in the order of
 * completion, and may make Axon calls but not destroy their stream. They may
 * still run when axonStreamSynchronize or axonStreamDestroy has returned: what
 * `arg` points to must live until the callback has been called. */
typedef void (*axonStreamCallback_t)(axonResult_t result, void* arg);
AXON_API axonResult_t axonStreamAddCallback(axonStream_t stream,
                                            axonStreamCallback_t callback,
                                            void* arg) AXON_NOEXCEPT;

AXON_API axonResult_t axonEventCreate(axonEvent_t* event) AXON_NOEXCEPT;
/* Allowed while recorded and waited for: freed when no stream needs it. */
AXON_API axonResult_t axonEventDestroy(axonEvent_t event) AXON_NOEXCEPT;
/* The event is done when all that was queued on `stream` so far is. Recording
 * again replaces the earlier record; waits already queued keep theirs. */
AXON_API axonResult_t axonEventRecord(axonEvent_t event,
                                      axonStream_t stream) AXON_NOEXCEPT;
/* axonSuccess if done or never recorded, else axonInProgress. */
AXON_API axonResult_t axonEventQuery(axonEvent_t event) AXON_NOEXCEPT;
AXON_API axonResult_t axonEventSynchronize(axonEvent_t event) AXON_NOEXCEPT;
/* Later calls on `stream` wait for the event's present record. */
AXON_API axonResult_t axonStreamWaitEvent(axonStream_t stream,
                                          axonEvent_t event) AXON_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* AXON_AXON_H_ */
