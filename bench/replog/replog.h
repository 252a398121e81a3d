/* SPDX-License-Identifier: BSD-3-Clause */
/* A replicated log that handlers keep: what they share with their hosts (replog.c). */
#ifndef BENCH_REPLOG_H
#define BENCH_REPLOG_H

#include "spin.h"
#include "spin_handler.h"

enum {
    REPLOG_RANKS = 3,     /* the leader is rank 0 */
    REPLOG_RECORD = 64,   /* bytes */
    REPLOG_KEPT = 1 << 17 /* records that a log holds: record i is at i % REPLOG_KEPT */
};

/* Match bits of the entries: where the leader takes records and is told what is held, and where
 * followers take them. */
enum replog_bits { REPLOG_APPEND = 1, REPLOG_HELD, REPLOG_FOLLOW };

/* HPU memory of both entries of the leader, and of that of a follower. Records count from 1. */
struct replog_state {
    ptl_process_t rank[REPLOG_RANKS];
    uint32_t me;
    uint32_t nowait;             /* PTL_HANDLER_NOWAIT, or 0 */
    uint64_t appended;           /* at a follower: the last record that it has */
    uint64_t sent[REPLOG_RANKS]; /* the last record that a follower was sent, by who is `sending` */
    uint64_t sending[REPLOG_RANKS];
};

/* handler_host_mem: what its host hears, and the log. */
struct replog {
    uint64_t held[REPLOG_RANKS]; /* the last record that each has */
    uint64_t refused;            /* puts that were, at the leader */
    uint64_t disorder;           /* records that came out of turn, at a follower */
    uint64_t unused[3];
    uint8_t record[REPLOG_KEPT][REPLOG_RECORD];
};

extern const ptl_handlers_t replog_append, replog_held, replog_follow;

#endif
