/* SPDX-License-Identifier: BSD-3-Clause */
/* What the handlers of a schedule do, as handlers: for schedule.c. */
#ifndef TESTS_SIMNIC_SCHEDULE_DEEDS_H
#define TESTS_SIMNIC_SCHEDULE_DEEDS_H

#include "portals4.h"
#include "sim/goal/goal.h"
#include "spin.h"

enum { DEEDS = 8, HANDLERS = 3, OWN = 4096 };

/* What the handlers of an entry do. */
struct deeds {
    uint32_t count[HANDLERS];
    struct {
        uint8_t type;
        uint32_t peer, tag;
        uint64_t size;
        ptl_handle_ct_t counter;
    } deed[HANDLERS][DEEDS];
};

/* deeds_of() sets the handlers of append `node`, and what they do; `counter` gives the counter of a
 * number. False: it has none. */
bool deeds_of(const struct goal_rank *my, uint32_t node, ptl_handlers_t *h, struct deeds *d,
              ptl_handle_ct_t (*counter)(void *arg, uint32_t number), void *arg);

#endif
