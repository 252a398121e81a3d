/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that do what a schedule says; see schedule_deeds.h. */
#include "schedule_deeds.h"

#include "spin_handler.h"

#include <stdio.h>
#include <stdlib.h>

/* Handler number `which`, whose packet, if it has one, is the bytes at `packet`. */
static __attribute__((always_inline)) inline void act(const struct deeds *d, int which,
                                                      void *packet, uint64_t bytes)
{
    static uint8_t own[OWN];
    for (uint32_t i = 0; i < d->count[which]; i++) {
        ptl_process_t to = {.rank = d->deed[which][i].peer};
        uint64_t size = d->deed[which][i].size;
        bool whole = packet != NULL && size == 0;
        void *from = whole ? packet : own;
        size = whole ? bytes : size;
        switch (d->deed[which][i].type) {
        case GOAL_DOES_PUT:
            PtlHandlerPutFromDevice(from, size, PTL_NO_ACK_REQ, to, d->deed[which][i].tag, 0, NULL,
                                    0);
            break;
        case GOAL_DOES_HOST_PUT:
            PtlHandlerPutFromHost(0, size, PTL_NO_ACK_REQ, to, d->deed[which][i].tag, 0, NULL, 0);
            break;
        case GOAL_DOES_WRITE:
            PtlHandlerDMAToHostB(from, 0, size, PTL_ME_HOST_MEM);
            break;
        default:
            PtlHandlerCTInc(d->deed[which][i].counter, (ptl_ct_event_t){d->deed[which][i].size, 0});
        }
    }
}

__handler static int schedule_header(const ptl_header_t h, void *state)
{
    act(state, 0, NULL, 0);
    return PROCESS_DATA;
}
PTL_HANDLER(schedule_header);

__handler static int schedule_payload(const ptl_payload_t p, void *state)
{
    act(state, 1, p.base, p.length);
    return SUCCESS;
}
PTL_HANDLER(schedule_payload);

__handler static int schedule_completion(ptl_size_t dropped_bytes, bool flow_control_triggered,
                                         void *state)
{
    act(state, 2, NULL, 0);
    return SUCCESS;
}
PTL_HANDLER(schedule_completion);

bool deeds_of(const struct goal_rank *my, uint32_t node, ptl_handlers_t *h, struct deeds *d,
              ptl_handle_ct_t (*counter)(void *arg, uint32_t number), void *arg)
{
    const struct goal_node *n = &my->nodes[node];
    int which = -1;
    for (uint32_t i = 1; i <= goal_part_count(my, node); i++) {
        if (n[i].type >= GOAL_HEADER_HANDLER && n[i].type <= GOAL_COMPLETION_HANDLER) {
            which = n[i].type - GOAL_HEADER_HANDLER;
            h->header_handler = which == 0 ? schedule_header : h->header_handler;
            h->payload_handler = which == 1 ? schedule_payload : h->payload_handler;
            h->completion_handler = which == 2 ? schedule_completion : h->completion_handler;
        } else if (n[i].type >= GOAL_DOES_PUT && n[i].type <= GOAL_DOES_COUNT) {
            uint32_t k = d->count[which]++;
            if (k == DEEDS) {
                fprintf(stderr, "a handler does %d things at most\n", DEEDS);
                exit(1);
            }
            d->deed[which][k].type = n[i].type;
            d->deed[which][k].peer = n[i].peer;
            d->deed[which][k].tag = n[i].tag;
            d->deed[which][k].size = n[i].size;
            d->deed[which][k].counter =
                n[i].type == GOAL_DOES_COUNT ? counter(arg, n[i].tag) : PTL_CT_NONE;
        }
    }
    return which >= 0;
}
