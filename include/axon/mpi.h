/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators of Axon for programs that run under MPI.
 *
 * In libaxon_mpi_openmpi or libaxon_mpi_mpich: link the one that belongs to the
 * program's own MPI, whose binary interfaces differ. Nothing else of Axon needs
 * MPI, and MPI is used in these calls only.
 */
#ifndef AXON_MPI_H_
#define AXON_MPI_H_

#include <mpi.h>

#include "axon/axon.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a communicator of the ranks of `mpi`, with the same numbers;
 * collective over `mpi`, an intracommunicator, of which nothing is kept. MPI
 * must be initialised; the caller's thread must be one that may call MPI.
 * `config` may be NULL.
 *
 * An error of MPI is axonSystemError, whatever error handler `mpi` has; a
 * communicator that is null or has two groups is axonInvalidArgument; MPI not
 * initialised, or finalised, is axonInvalidUsage. If rank 0 cannot make a
 * unique id, all ranks return its error. axonMpiGetLastError has the text. */
AXON_API axonResult_t axonCommInitMpi(axonComm_t* comm, MPI_Comm mpi,
                                      axonConfig_t* config) AXON_NOEXCEPT;

/* Text of this thread's last failed axonCommInitMpi. Valid until its next one;
 * never NULL. */
AXON_API const char* axonMpiGetLastError(void) AXON_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* AXON_MPI_H_ */
