/* SPDX-License-Identifier: BSD-3-Clause */
/* Labelled points of the protocols, for the kill tests; see killpoint.h. */
#include "base/killpoint.h"

#ifdef PINWHEEL_KILL_POINTS

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void kill_point(const char *label)
{
    static _Atomic int passed;
    const char *wanted = getenv("PINWHEEL_KILL_POINT");
    size_t length = strlen(label);
    if (wanted == NULL || strncmp(wanted, label, length) != 0 || wanted[length] != ':') {
        return;
    }
    if (atomic_fetch_add(&passed, 1) + 1 == atoi(wanted + length + 1)) {
        raise(SIGKILL);
    }
}

#endif
