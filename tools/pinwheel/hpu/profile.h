/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of calls that `pinwheel hpu profile` makes, and its picture. */
#ifndef PINWHEEL_HPU_PROFILE_H
#define PINWHEEL_HPU_PROFILE_H

#include "commands.h"

struct hpu_frame {
    const char *name; /* name of the function */
    struct hpu_frame *parent, *child, *next;
    uint64_t cycles; /* without the cycles of its children */
};

/* hpu_flame_draw() draws the tree below `root` as a flame graph: a bar for each call, as wide as
 * its cycles, above the bar of its caller. Returns 0, or -1 after it has printed on stderr what
 * went wrong. */
int hpu_flame_draw(const struct hpu_frame *root, const char *path, const char *function);

#endif
