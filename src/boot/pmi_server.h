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
 * The server knows no sockets: its owner feeds it what a rank sent and sends
 * what it queued for a rank. One thread at a time may use a job.
 *
 * A rank's connection is in one of these states:
 *
 *     NEW --init--> READY --finalize--> FINALIZED --init--> READY
 *     READY --barrier_in--> BARRIER --the last rank's barrier_in--> READY
 *     any --line that is no PMI line, reply not read, abort--> CLOSED
 *     any --pmi_rank_gone()--> CLOSED
 *
 * After pmi_keep_going() the ranks that are not CLOSED make a barrier among them.
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
    PMI_NAME_MAX = 256, /* of a key-value space; these three count the final NUL */
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

/* pmi_feed() takes bytes that `rank` sent, cut anywhere. Replies are queued,
 * for all ranks if this completes a barrier. Bytes from a rank whose connection
 * is CLOSED are ignored. */
void pmi_feed(struct pmi_job *job, int rank, const void *bytes, size_t length);

/* pmi_keep_going() says that the job goes on without ranks that are gone. What these have put
 * stays. */
void pmi_keep_going(struct pmi_job *job);

/* pmi_rank_gone() says that nothing more will come from `rank`: its process or
 * its connection ended. */
void pmi_rank_gone(struct pmi_job *job, int rank);

/* pmi_output() returns the replies queued for `rank` and their length; the
 * bytes are valid until the next call with this job. */
const char *pmi_output(const struct pmi_job *job, int rank, size_t *length);

/* pmi_output_sent() removes the first `length` bytes that pmi_output() gave. */
void pmi_output_sent(struct pmi_job *job, int rank, size_t length);

enum pmi_state pmi_state(const struct pmi_job *job, int rank);

/* pmi_error() returns why the server closed the connection of `rank`, or NULL
 * if it did not. */
const char *pmi_error(const struct pmi_job *job, int rank);

/* pmi_torn() tells whether the connection of `rank` ended unannounced, by neither finalize nor
 * abort nor the server: then its process has ended, or is about to, or has hung up. */
bool pmi_torn(const struct pmi_job *job, int rank);

/* pmi_aborted() tells whether a rank asked for the job's end, and then which
 * one was the first and with which exit code. */
bool pmi_aborted(const struct pmi_job *job, int *rank, int *code);

/* pmi_stuck() tells whether a rank waits in a barrier that another can no
 * longer enter; *gone is then the first such other one, *waiting the first that
 * waits. */
bool pmi_stuck(const struct pmi_job *job, int *gone, int *waiting);

#endif
