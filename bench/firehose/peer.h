/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A second process that has memory which this one reads and writes: the peer of the benches of this
 * folder. The peer pins by mlock(), for a table of Firehose or when it is asked by a message, and
 * polls for messages all the time. Both processes map its memory at the same address.
 */
#ifndef BENCH_FIREHOSE_PEER_H
#define BENCH_FIREHOSE_PEER_H

#include "pinwheel_firehose.h"

#include <stdbool.h>
#include <sys/types.h>

struct peer_ring;

struct peer {
    char *memory; /* all of it resident; at a multiple of 2 MiB */
    size_t size;
    int file; /* the memory as a file */
    pid_t pid;
    struct pw_firehose *table; /* of this process, which is node 0; the peer is node 1 */
    struct peer_ring *there, *here;
    int answer; /* of the last peer_ask() */
    bool answered;
};

#define PEER_LIMITED 1u /* the peer gives up CAP_IPC_LOCK, so that RLIMIT_MEMLOCK holds */
#define PEER_HUGE 2u    /* its memory is huge pages */

/* peer_start() makes memory of `size` bytes and starts the process. `config` has limits and flags
 * of the tables; NULL: there are none, and the process sleeps. A line and -1 if that fails. */
int peer_start(struct peer *peer, size_t size, const struct pw_firehose_config *config,
               unsigned flags);
void peer_stop(struct peer *peer);

/* What peer_ask() asks the peer to do with a range; it returns 0 or a negative errno. */
enum peer_asks { PEER_PIN = 1, PEER_UNPIN, PEER_STATS };
int peer_ask(struct peer *peer, enum peer_asks what, uint64_t addr, uint64_t len);
/* What its table has counted. */
void peer_stats(struct peer *peer, struct pw_firehose_stats *stats);

/* peer_pin() pins a range of the peer and waits until it is pinned. */
int peer_pin(struct peer *peer, uint64_t addr, uint64_t len, struct pw_firehose_request *request);

/* peer_move() pins and unpins by mlock() and munlock(), as a table's function. */
int peer_move(void *client, const struct pw_firehose_region *unpins, size_t unpin_count,
              struct pw_firehose_region *pins, size_t pin_count);

uint64_t nanoseconds(void);
int compare_reals(const void *a, const void *b);

#endif
