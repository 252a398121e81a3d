/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frame of a row: two NICs, A and B, of one process and of one thread, so that who receives
 * looks only when the message is there and no look is in vain unless the row means it. README.md
 * says what makes the counts repeat.
 *
 *   count_shm ROW, count_udp ROW   warms up, then runs the row's work between callgrind's two
 *                                  marks; prints how many operations that were
 */
#ifndef BENCH_COUNT_H
#define BENCH_COUNT_H

#include "portals4.h"
#include "spin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    COUNT_WARM = 2048,   /* operations before the counted ones: sixteen laps of a ring */
    COUNT_ROUNDS = 1024, /* operations that are counted */
    COUNT_BYTES = 65536  /* memory that messages come from and go to, each */
};

/* One NIC. Entries are over `in`, MDs over `out`. */
struct count_nic {
    ptl_handle_ni_t ni;
    ptl_process_t id;
    ptl_handle_eq_t sent, received; /* of MDs, of the second index */
    ptl_pt_index_t counted, full;   /* index without events, index whose events go to `received` */
    uint8_t *in, *out;
};
extern struct count_nic count_a, count_b;

/* A counter and how far it must have come. */
struct count_mark {
    ptl_handle_ct_t ct;
    ptl_size_t reached;
};

struct count_row {
    const char *name;
    const char *hpu; /* value of PINWHEEL_HPU: runs the handlers of the row */
    unsigned each;   /* operations of one call of `run` */
    void (*open)(void);
    void (*arm)(void); /* runs before each run, and is not counted; NULL: nothing */
    void (*run)(void);
    void (*verify)(unsigned operations); /* that all of them happened */
};

/* count_main() opens the NICs and serves the row that is named; it does not return on an error. */
int count_main(int argc, char **argv, const char *fabric, const struct count_row *rows);

/* count_ok() ends the program unless the code is PTL_OK; `what` names the call. */
void count_fail(const char *what, int code);
static inline void count_ok(int code, const char *what)
{
    if (__builtin_expect(code != PTL_OK, 0)) {
        count_fail(what, code);
    }
}

/* count_mark() makes a counter; count_reached() waits in PtlCTWait for so many more. */
struct count_mark count_mark(const struct count_nic *n);
static inline void count_reached(struct count_mark *m, ptl_size_t more)
{
    ptl_ct_event_t event;
    m->reached += more;
    count_ok(PtlCTWait(m->ct, m->reached, &event), "PtlCTWait");
}
/* and count_is() fails unless the counter has come just so far, without failures. */
void count_is(const struct count_mark *m, ptl_size_t success);

/* count_entry() appends an entry over all of `in`, with match bits of its own, that counts its
 * messages; `handlers` may be NULL. count_md() binds all of `out`. */
struct count_mark count_entry(const struct count_nic *n, ptl_match_bits_t bits, unsigned options,
                              const ptl_handlers_t *handlers);
ptl_handle_md_t count_md(const struct count_nic *n, unsigned options, ptl_handle_eq_t eq,
                         ptl_handle_ct_t ct);

#endif
