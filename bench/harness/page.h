/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page that the conductor shares with the ranks of one subject; only the
 * conductor and turn.c look inside.
 *
 *   command ── what, for whom ──► number++, futex_wake ──►  ranks sleep on `number`
 *   conductor sleeps on rank[r].done  ◄── done = number, futex_wake ◄── result
 *
 * The conductor writes `what` and `work` only while no turn is under way; a rank
 * writes only its own struct page_rank, and the lines if it likes. The page is a
 * memfd: its path, /proc/CONDUCTOR/fd/N, ends with the conductor.
 */
#ifndef BENCH_PAGE_H
#define BENCH_PAGE_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "turn.h"

#define PAGE_MAGIC 0x70772d62656e6368u /* "pw-bench" */

enum page_command {
    PAGE_TURN, /* do the work */
    PAGE_ASK,  /* extra = 1 if the work is one that the subject can do */
    PAGE_END   /* the plan is done */
};

struct page_rank {
    _Alignas(64) _Atomic uint32_t done; /* number of the last turn that is over; futex */
    _Atomic uint32_t ready;             /* turn_serve() was called */
    pid_t pid;
    struct turn_result result;
    _Alignas(64) _Atomic uint32_t posted, taken; /* turn_exchange(): its calls so far */
    _Atomic uint32_t shown, seen;                /* turn_gather(): likewise */
    uint64_t length;
    uint8_t bytes[TURN_EXCHANGE_MAX];
    uint8_t gathered[TURN_EXCHANGE_MAX];
};

struct page {
    uint64_t magic;
    pid_t conductor;
    uint32_t ranks;                       /* of the subject, 2 to TURN_RANKS */
    int core[2];                          /* of the even ranks, of the odd ones */
    _Alignas(64) _Atomic uint32_t number; /* of the turn; futex */
    uint32_t what;                        /* enum page_command */
    struct turn_work work;
    struct page_rank rank[TURN_RANKS];
    _Alignas(64) struct {
        _Alignas(64) volatile uint64_t word;
    } line[8];
};

/* page_sleep() sleeps while *word is `seen`, at most `ms`. */
static inline void page_sleep(_Atomic uint32_t *word, uint32_t seen, long ms)
{
    struct timespec limit = {ms / 1000, ms % 1000 * 1000000};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

static inline void page_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

#endif
