/* SPDX-License-Identifier: BSD-3-Clause */
/* What processes that are there to be looked at have in common. */
#ifndef SUBJECT_H
#define SUBJECT_H

#include "portals4.h"

#include <stdio.h>

/* In main(): a call that must give PTL_OK. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != PTL_OK) {                                                                    \
            fprintf(stderr, "subject: %s failed\n", #call);                                        \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

#endif
