/* SPDX-License-Identifier: BSD-3-Clause */
/* What the handlers of hello_capitals.c and the program of hello_handler.c have in common. */
#ifndef EXAMPLES_HELLO_CAPITALS_H
#define EXAMPLES_HELLO_CAPITALS_H

#include <spin.h>
#include <spin_handler.h>

/* HPU memory: what the handlers of an entry share. The program and the cores read it alike, so its
 * types are of fixed width. */
struct hello_state {
    uint64_t lines;
};

int capitals(const ptl_payload_t p, void *state);
int finish(ptl_size_t dropped_bytes, bool flow_control_triggered, void *state);

#endif
