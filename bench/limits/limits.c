/* SPDX-License-Identifier: BSD-3-Clause */
/* The program of the limits: brings up the one that its argument names. */
#include "limits.h"

#include <stdio.h>
#include <string.h>

static const struct limit *const limits[] = {&limit_raw, &limit_memcpy, &limit_futex, &limit_vm,
                                             &limit_udp};

int main(int argc, char **argv)
{
    const struct limit *limit = NULL;
    for (size_t i = 0; argc == 2 && i < sizeof(limits) / sizeof(limits[0]); i++) {
        limit = strcmp(limits[i]->name, argv[1]) == 0 ? limits[i] : limit;
    }
    if (limit == NULL) {
        fprintf(stderr, "usage: %s raw|memcpy|futex|process_vm|udp, under `pinwheel bench`\n",
                argv[0]);
        return 2;
    }
    if (turn_join(-1) < 0 || (limit->open != NULL && limit->open() != 0)) {
        return 1;
    }
    return turn_serve(limit->duties, limit->count) == 0 ? 0 : 1;
}
