/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the library for the limits of interfaces of each of the four kinds. */
#ifndef PINWHEEL_NI_LIMITS_H
#define PINWHEEL_NI_LIMITS_H

#include <stdint.h>

enum { LIMITS_KINDS = 4, LIMITS_MAX = 16 };

struct ni_limits {
    char error[160]; /* why the limits are unknown; "": they are known */
    int kinds, count;
    const char *kind_names[LIMITS_KINDS];
    const char *names[LIMITS_MAX]; /* the names that ptl_ni_limits_t has */
    uint64_t values[LIMITS_KINDS][LIMITS_MAX];
};

/* ni_limits_read() opens one interface of each kind, reads its limits and closes it. */
void ni_limits_read(struct ni_limits *limits);

#endif
