/* SPDX-License-Identifier: BSD-3-Clause */
/* The handler of share.c, which sends what it is told, and what it shares with its host. */
#ifndef SHARE_HANDLERS_H
#define SHARE_HANDLERS_H

#include "spin_handler.h"

#include "spin.h"

enum { SHARE_RANKS = 4, SHARE_BYTES = 128 };

/* What is sent: hdr_data of an order is SHARE_ORDER(what, to, times, ack). */
enum share_what { SHARE_PUT, SHARE_ATOMIC, SHARE_HOST_PUT };
#define SHARE_ORDER(what, to, times, ack)                                                          \
    ((uint64_t)(what) | (uint64_t)(to) << 8 | (uint64_t)(ack) << 16 | (uint64_t)(times) << 32)

/* HPU memory: `sent` is what each rank was sent, and a message has its number for its target. */
struct share_state {
    ptl_process_t rank[SHARE_RANKS];
    uint64_t sent[SHARE_RANKS];
    uint64_t landing; /* match bits of what is sent */
    uint64_t mark;    /* added to the numbers */
    uint64_t data[SHARE_BYTES / 8];
};

/* handler_host_mem: orders that have ended, and how the last one did. */
struct share_notes {
    uint64_t ended;
    uint64_t begun; /* payload handlers */
    uint64_t sent;  /* messages of all orders for that rank */
    int64_t code;   /* of the last call */
};

/* share_flood sends a line of each packet to SHARE_STOPPED, and waits for a place. */
enum { SHARE_STOPPED = 2 };
extern const ptl_handlers_t share_handlers, share_flood;

#endif
