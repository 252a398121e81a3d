/* SPDX-License-Identifier: BSD-3-Clause */
/* The common part of the works of bench_crew: eight ranks, their ids and memory, and the entries of
 * a turn. crew.c has collectives, redundant.c one with redundancy, storage.c servers. */
#ifndef BENCH_SPIN_RANKS_H
#define BENCH_SPIN_RANKS_H

#include "harness/crew.h"
#include "jobs.h"

#include "tree.h"

enum {
    RANKS_MOST = 1 << 20, /* bytes of a message */
    BITS_DATA = 1,
    BITS_RESULT,
    BITS_PARITY,
    BITS_DONE,
    BITS_OVER
};

struct ranks {
    bool by_cpu;
    ptl_process_t id[TURN_RANKS];
    struct tree_group group;
    uint8_t *from, *to, *aside; /* RANKS_MOST bytes, `aside` that many for each rank */
    ptl_handle_md_t md, to_md;  /* over `from`, `to` */
    struct link_count arrived, result;
    ptl_handle_me_t entries[4];
    int entry_count;
    struct crew_time time;
};
extern struct ranks crew;

/* crew_append() appends an entry of a turn; crew_finish() takes all of them out, settles both
 * counters and says what an iteration took. crew_put() puts the first bytes of an MD. */
int crew_append(unsigned index, ptl_match_bits_t bits, void *start, ptl_size_t length,
                const struct link_count *count, const ptl_handlers_t *handlers);
int crew_finish(const struct turn_work *work, struct turn_result *result);
int crew_put(ptl_handle_md_t md, uint64_t length, ptl_process_t to, unsigned index,
             ptl_match_bits_t bits, uint64_t offset, uint64_t hdr_data);

/* crew_fits() tells whether a work is one of eight ranks whose size is possible. */
bool crew_fits(const struct turn_work *work);

extern const struct turn_duty storage_duties[], redundant_duties[];
extern const int storage_duty_count, redundant_duty_count;

#endif
