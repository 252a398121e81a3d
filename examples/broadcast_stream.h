/* SPDX-License-Identifier: BSD-3-Clause */
/* What the handler of broadcast_stream.c and the program of broadcast.c have in common. */
#ifndef EXAMPLES_BROADCAST_STREAM_H
#define EXAMPLES_BROADCAST_STREAM_H

#include <spin.h>
#include <spin_handler.h>

#include "tree.h"

/* HPU memory of the entry: to whom it is sent on. */
struct stream_state {
    ptl_process_t child[TREE_CHILDREN];
    uint64_t bits;
    uint32_t children, pt_index;
};

int broadcast_stream_packet(const ptl_payload_t p, void *state);

#endif
