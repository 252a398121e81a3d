/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of interfaces of each of the four kinds, by asking the library. */
#ifndef PINWHEEL_NI_LIMITS_H
#define PINWHEEL_NI_LIMITS_H

#include <stdint.h>

enum { LIMITS_KINDS = 4, LIMITS_MAX = 16 };

struct ni_limits {
    char error[160]; /* "" or why they are unknown */
    int kinds, count;
    const char *kind_names[LIMITS_KINDS];
    const char *names[LIMITS_MAX]; /* as in ptl_ni_limits_t */
    uint64_t values[LIMITS_KINDS][LIMITS_MAX];
};

/* ni_limits_read() opens and closes one interface of each kind. */
void ni_limits_read(struct ni_limits *limits);

#endif
