/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server of the PMI-1 wire protocol, as a state machine on bytes.
 *
 * PMI-1 is what MPICH's mpiexec speaks with the processes it starts: lines of
 * "name=value" fields over one connection per rank.
 *
 *     rank                                   server
 *     cmd=init pmi_version=1 ...        ->
 *                                       <-   cmd=response_to_init ... rc=0
 *     cmd=put kvsname=K key=k value=v   ->
 *                                       <-   cmd=put_result rc=0 msg=success
 *     cmd=barrier_in                    ->
 *                                       <-   cmd=barrier_out   (when all are in)
 *     cmd=get kvsname=K key=k           ->
 *                                       <-   cmd=get_result rc=0 ... value=v
 *     cmd=finalize                      ->
 *                                       <-   cmd=finalize_ack
 *
 * The server knows no sockets: its owner gives it the bytes that a rank has sent, and sends the
 * bytes that it has queued for a rank. Only one thread at a time may use a job.
 *
 * A rank's connection is in one of these states:
 *
 *     NEW --init--> READY --finalize--> FINALIZED --init--> READY
 *     READY --barrier_in--> BARRIER --the last rank's barrier_in--> READY
 *     any --line that is no PMI line, reply not read, abort--> CLOSED
 *     any --pmi_rank_gone()--> CLOSED
 *
 * After pmi_keep_going() a barrier is complete when all ranks that are not CLOSED are in it.
 *
 * Bounds: a line has at most PMI_LINE_MAX bytes, a job at most KVS_PAIRS_MAX
 * keys, a rank at most PMI_OUTPUT_MAX bytes of replies that it has not read.
 * A request that is well formed but wrong (an unknown command or key, a field
 * that is missing) is answered with rc=-1 and a msg=; bytes that are no lines
 * of fields close the connection of that rank, and of that rank only.
 */
#ifndef BOOT_PMI_SERVER_H
#define BOOT_PMI_SERVER_H

#include <stdbool.h>
#include <stddef.h>

enum {
    PMI_NAME_MAX = 256, /* of a key-value space; this and the next two include the final NUL */
    PMI_KEY_MAX = 64,
    PMI_VALUE_MAX = 1024,
    PMI_LINE_MAX = 2048,
    PMI_OUTPUT_MAX = 262144,
    PMI_RANKS_MAX = 4096,
};

enum pmi_state { PMI_NEW, PMI_READY, PMI_BARRIER, PMI_FINALIZED, PMI_CLOSED };

struct pmi_job;

/* pmi_job_create() makes a job of `size` ranks whose key-value space is called
 * `kvsname`. `hosts` says which ranks share a host, as PMI_process_mapping does:
 * "(vector,(first host,hosts,ranks of each),...)"; NULL: all are on one. It
 * returns 0, -EINVAL for a size outside 1..PMI_RANKS_MAX or a name that does not
 * fit a field, or -ENOMEM. */
int pmi_job_create(struct pmi_job **job, int size, const char *kvsname, const char *hosts);

/* pmi_job_free() frees a job; NULL is legal. */
void pmi_job_free(struct pmi_job *job);

/* pmi_feed() takes bytes that `rank` has sent; they may begin and end anywhere in a line. It queues
 * the replies, for all ranks if the bytes complete a barrier. It ignores bytes of a rank whose
 * connection is CLOSED. */
void pmi_feed(struct pmi_job *job, int rank, const void *bytes, size_t length);

/* pmi_keep_going() lets the job go on without the ranks that are gone. The pairs that these have
 * put stay in the key-value space. */
void pmi_keep_going(struct pmi_job *job);

/* pmi_rank_gone() tells the server that nothing more will come from `rank`, because its process or
 * its connection has ended. */
void pmi_rank_gone(struct pmi_job *job, int rank);

/* pmi_output() returns the replies queued for `rank` and their length. The bytes are valid until
 * the next call with this job. */
const char *pmi_output(const struct pmi_job *job, int rank, size_t *length);

/* pmi_output_sent() removes the first `length` bytes of the queue, which the owner has sent. */
void pmi_output_sent(struct pmi_job *job, int rank, size_t length);

enum pmi_state pmi_state(const struct pmi_job *job, int rank);

/* pmi_error() returns why the server closed the connection of `rank`, or NULL
 * if it did not. */
const char *pmi_error(const struct pmi_job *job, int rank);

/* pmi_torn() is true if the connection of `rank` ended unannounced: the rank sent neither finalize
 * nor abort, and the server did not close it. The rank's process has ended, is about to, or has
 * closed the connection. */
bool pmi_torn(const struct pmi_job *job, int rank);

/* pmi_aborted() is true if a rank has asked for the job's end; *rank is then the first one that
 * did, and *code the exit code that it gave. */
bool pmi_aborted(const struct pmi_job *job, int *rank, int *code);

/* pmi_stuck() is true if a rank waits in a barrier that another rank can no longer enter. *gone is
 * then the first rank that cannot enter, *waiting the first one that waits. */
bool pmi_stuck(const struct pmi_job *job, int *gone, int *waiting);

#endif
