/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machine of the Firehose paper's figures in virtual time, in picoseconds. The paper says what
 * an unpin takes, and which network it is; the other costs are of that network (Myrinet 2000 with
 * GM 2.0: 245 MB/s, round trips of some 30 us), assumed.
 */
#ifndef BENCH_FIREHOSE_FIGURE_H
#define BENCH_FIREHOSE_FIGURE_H

#include <stdint.h>

enum { PAGE = 4096 };
#define US UINT64_C(1000000)
#define COST_UNPIN (6000 * US) /* of a request to unpin, of any number of pages: section 3.2 */
#define COST_PIN (30 * US)     /* of a request to pin, and for each page */
#define COST_PIN_PAGE (2 * US)
#define COST_MESSAGE (15 * US)    /* one way */
#define COST_PUT (2675 * US / 10) /* of 64 KiB */

/* Random numbers, the same for the calculator of what is expected: splitmix64. */
uint64_t figure_random(uint64_t *state);

/* figure_8.c */
int figure_8(unsigned threads, const char *way);

#endif
