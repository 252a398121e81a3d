/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pinwheel.h: how the processes of one parallel job find each other.
 *
 * Portals needs no launcher: a process can send to any process whose physical id it knows. This
 * library adds the services of a launcher: the rank of this process, the number of ranks, a small
 * key-value space, a barrier, and, made from these, the map from ranks to physical ids that
 * PtlSetMap needs.
 *
 *     struct pinwheel_job *job;
 *     ptl_handle_ni_t ni;
 *     ...
 *     if (pinwheel_job_init(&job) != 0) {
 *         fprintf(stderr, "%s\n", pinwheel_job_error(NULL));
 *         ...
 *     }
 *     PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL, &ni);
 *     if (pinwheel_job_set_map(job, ni) != 0) ...       now ranks are addresses
 *     ... append entries, then pinwheel_job_barrier(job), then send ...
 *     pinwheel_job_barrier(job);                        nobody leaves early
 *     PtlNIFini(ni);
 *     pinwheel_job_finalize(job);
 *
 * Launchers. The first of these variables that is set decides:
 *     PMI_FD          PMI-1: `pinwheel run`, MPICH's mpiexec (Hydra)
 *     PMIX_NAMESPACE  PMIx: Open MPI's mpirun, prterun, Slurm's --mpi=pmix
 *     none            a job of one rank, in which everything works
 *   A launcher that is named but cannot be joined is an error, never a job of
 *   one rank. docs/boot.md shows each.
 * Errors. Functions that return int return 0 or a negative errno value;
 *   pinwheel_job_error() then has one line of text. After -EPIPE or -EPROTO the connection cannot
 *   be used any more. No function aborts or exits.
 * Ownership. Strings and maps passed in are copied. The job belongs to the
 *   caller until pinwheel_job_finalize().
 * Threads. One thread at a time may use a job. A process has one connection to
 *   its launcher, hence one job at a time; a forked child must not use its
 *   parent's.
 * Blocking. Every call that is said to ask the launcher waits for its answer;
 *   pinwheel_job_barrier(), _map() and _set_map() wait for all other ranks. They
 *   make no Portals progress themselves (a thread of libportals does).
 * Collective. Calls so marked must be made by all ranks, in the same order.
 */
#ifndef PINWHEEL_H
#define PINWHEEL_H

#include <stddef.h>

#include "portals4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The functions are exported from libpinwheel also if it is compiled with -fvisibility=hidden. */
#if defined(__GNUC__)
#define PINWHEEL_EXPORT __attribute__((visibility("default")))
#else
#define PINWHEEL_EXPORT
#endif

struct pinwheel_job;

/* pinwheel_job_init() joins the job that this process was started in, or makes
 * a job of one rank if it was started by no launcher. It does not need PtlInit.
 * If the launcher has ranks on several hosts the call is collective: they agree on
 * the job's key, and PtlSetJobKey gets it, so call this before PtlNIInit.
 * On failure *job is NULL and pinwheel_job_error(NULL) has the text.
 *   -EINVAL     of PMI_FD, PMI_RANK and PMI_SIZE, or of PMIX_NAMESPACE and
 *               PMIX_RANK, one is missing or no such number; or
 *               PINWHEEL_JOB_KEY has fewer than 32 or more than 1024 characters
 *   -EBADF      PMI_FD names no open connection
 *   -ECONNREFUSED  no PMIx server answers for PMIX_NAMESPACE
 *   -EBUSY      this process has a job already
 *   -EALREADY   this process had a job and finalized it; one joins once
 *   -EOPNOTSUPP the launcher offers PMI_PORT instead of PMI_FD; or PMIx, but its
 *               library is not there, or this one was built without it
 *   -EPROTO     PINWHEEL_JOB_KEY differs between ranks;
 *               the launcher does not speak PMI-1, or PMIx does not make sense
 *   -EPIPE      the launcher went away
 *   -ENOMEM */
PINWHEEL_EXPORT int pinwheel_job_init(struct pinwheel_job **job);

/* pinwheel_job_finalize() leaves the job and frees it; NULL is legal. The connection to the
 * launcher is closed, so an MPI library that shares it must be finalized before (PMIx counts its
 * users: there the order is free). -EPIPE or -EPROTO: the launcher was lost, but the job is
 * freed nevertheless. */
PINWHEEL_EXPORT int pinwheel_job_finalize(struct pinwheel_job *job);

/* pinwheel_job_abort() asks the launcher to end all ranks of the job, this one included, with exit
 * status `code`, 1 to 255. It returns when the request was sent, so the caller should exit(code)
 * next; with the job it may only call pinwheel_job_finalize(). Without a launcher it does nothing
 * and returns 0.
 *   -EINVAL  another code
 *   -EPIPE   the launcher went away */
PINWHEEL_EXPORT int pinwheel_job_abort(struct pinwheel_job *job, int code);

/* pinwheel_job_rank() returns this process's rank, 0 to size - 1. */
PINWHEEL_EXPORT int pinwheel_job_rank(const struct pinwheel_job *job);

/* pinwheel_job_size() returns the number of ranks. */
PINWHEEL_EXPORT int pinwheel_job_size(const struct pinwheel_job *job);

/* pinwheel_job_key() returns the secret that the job's processes share: the 32 to 1024
 * characters of PINWHEEL_JOB_KEY, or, with ranks on several hosts, the key that they have agreed
 * on. NULL if there is none. */
PINWHEEL_EXPORT const char *pinwheel_job_key(const struct pinwheel_job *job);

/* pinwheel_job_put() publishes `value` under `key`. Other ranks see it after the
 * next barrier. A key is put once in a job's life; names that begin with "pw-"
 * are the library's own. Asks the launcher.
 *   -EINVAL       the key is empty, or key or value holds a blank, a control
 *                 character or a byte beyond ASCII (PMI-1 cannot carry them;
 *                 the key no '=' either)
 *   -ENAMETOOLONG the key or the value is longer than the launcher takes (63
 *                 and 1023 bytes for `pinwheel run` and PMIx)
 *   -EEXIST       refused, as a rule because the key was put before (Hydra does
 *                 not notice that, PMIx only within a rank)
 *   -ENOSPC, -ENOMEM  (PMIx) more than 65536 keys, or no memory for one; other
 *                 launchers refuse */
PINWHEEL_EXPORT int pinwheel_job_put(struct pinwheel_job *job, const char *key, const char *value);

/* pinwheel_job_get() copies the value of `key`, with its final NUL, into `buf`
 * of `size` bytes. Asks the launcher.
 *   -ENOENT  no rank put that key
 *   -ERANGE  the value does not fit; buf is untouched
 *   -EINVAL  as in pinwheel_job_put() */
PINWHEEL_EXPORT int pinwheel_job_get(struct pinwheel_job *job, const char *key, char *buf,
                                     size_t size);

/* pinwheel_job_barrier() returns when all ranks have called it. Collective. */
PINWHEEL_EXPORT int pinwheel_job_barrier(struct pinwheel_job *job);

/* pinwheel_job_map() collects the physical ids that all ranks have on `ni`, an
 * interface of this process: map[r] is rank r's, and `map` has room for
 * pinwheel_job_size() entries. May be called for several interfaces. Collective.
 *   -EINVAL  PtlGetPhysId refused `ni`
 *   -ENXIO   it did so in another rank, which the text names
 *   -EADDRNOTAVAIL  ranks are on several hosts, and one is at a loopback address */
PINWHEEL_EXPORT int pinwheel_job_map(struct pinwheel_job *job, ptl_handle_ni_t ni,
                                     ptl_process_t *map);

/* pinwheel_job_set_map() does as pinwheel_job_map() and gives the map to PtlSetMap, so that ranks
 * are the process ids of `ni`, which must be a logical interface. An interface that has the same
 * map already is left as it is. Collective.
 *   -EINVAL  PtlGetPhysId or PtlSetMap refused `ni`
 *   -ENXIO   PtlGetPhysId did so in another rank
 *   -EEXIST  `ni` has another map already
 *   -ENOMEM */
PINWHEEL_EXPORT int pinwheel_job_set_map(struct pinwheel_job *job, ptl_handle_ni_t ni);

/* pinwheel_job_error() returns one line about the last call with `job` that failed, or, for NULL,
 * about the last pinwheel_job_init() or pinwheel_job_finalize() of this thread that failed; "" if
 * there is none. The text is valid until the next call. */
PINWHEEL_EXPORT const char *pinwheel_job_error(const struct pinwheel_job *job);

#ifdef __cplusplus
}
#endif

#endif
