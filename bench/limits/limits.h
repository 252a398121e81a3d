/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The physical limits, each a subject of its own: what the machine gives without
 * any library.
 */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include "harness/turn.h"

struct limit {
    const char *name;  /* the program's argument */
    int (*open)(void); /* may be NULL; 0, or -1 after turn_fail() */
    const struct turn_duty *duties;
    int count;
};

extern const struct limit limit_raw, limit_memcpy, limit_futex, limit_vm, limit_udp;

#endif
