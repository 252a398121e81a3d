/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bracket of a turn: some 100 us of raw ping-pong between the two cores, by a
 * pair of threads of the conductor. Between brackets they sleep.
 */
#ifndef BENCH_BRACKET_H
#define BENCH_BRACKET_H

/* bracket_open() binds the calling thread to the first core and starts its partner
 * on the second: 0 or -errno. */
int bracket_open(const int core[2]);

/* bracket_measure() gives the half round trip in ns: the median of some short runs. */
double bracket_measure(void);

void bracket_close(void);

#endif
