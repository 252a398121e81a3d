/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of this folder share: random numbers, and calls that must succeed. */
#ifndef SOAK_KIT_H
#define SOAK_KIT_H

#include "../splitmix.h"

/* fail() is the program's own. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != PTL_OK) {                                                                     \
            fail("%s gives %d (line %d)", #call, code_, __LINE__);                                 \
        }                                                                                          \
    } while (0)

#endif
