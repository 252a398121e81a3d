/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of `pinwheel hpu profile`, as a tree of calls, and its picture. */
#ifndef PINWHEEL_HPU_PROFILE_H
#define PINWHEEL_HPU_PROFILE_H

#include "commands.h"

struct hpu_frame {
    const char *name; /* of the function */
    struct hpu_frame *parent, *child, *next;
    uint64_t cycles; /* without those of its children */
};

/* hpu_flame_draw() draws the tree, `root` not among it, as a flame graph: a bar a call, as
 * wide as its cycles, on that of its caller. -1 after saying on stderr what went wrong. */
int hpu_flame_draw(const struct hpu_frame *root, const char *path, const char *function);

#endif
