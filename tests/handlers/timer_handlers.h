/* SPDX-License-Identifier: BSD-3-Clause */
/* The handlers of timer.c, and what they share with their host. */
#ifndef TIMER_HANDLERS_H
#define TIMER_HANDLERS_H

#include "spin_handler.h"

#include "spin.h"

/* What hdr_data asks of the header handler, besides to be counted. */
enum { TIMER_COUNT, TIMER_FAIL, TIMER_STAY, TIMER_BUSY, TIMER_SET_UP };

struct timer_state {
    uint64_t ticks, puts; /* header handlers, by type */
    uint64_t completions;
    uint64_t wrong;    /* of them with something else than a tick has */
    uint64_t ready;    /* set up by TIMER_SET_UP */
    uint64_t unready;  /* puts that came before */
    uint64_t go;       /* lets TIMER_BUSY return */
    uint32_t ct, rank; /* counts ticks */
};

/* The header handler counts, the completion handler writes the number of ticks to the host. */
extern const ptl_handlers_t timer_counting;

#endif
