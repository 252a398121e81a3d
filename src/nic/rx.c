/* SPDX-License-Identifier: BSD-3-Clause */
/* The object of a message at its receiver (rx.h): made with its channel, and used for one message
 * after the other. */
#include "nic/rx.h"

#include "nic/spin_calls.h"

#include <stdlib.h>

struct fabric_rx *rx_new(struct nic_peer *peer, enum fabric_class class)
{
    struct rx *rx = calloc(1, sizeof(*rx));
    if (rx == NULL) {
        return NULL;
    }
    rx->peer = peer;
    rx->class = class;
    rx->m = (struct message *)rx->f.header;
    list_init(&rx->acks_due);
    struct rx **at = &peer->rx[class];
    while (*at != NULL) {
        at = &(*at)->beside;
    }
    *at = rx;
    return &rx->f;
}

void rx_free(struct nic_peer *peer, struct fabric_rx *f)
{
    struct rx *rx = (struct rx *)f;
    struct rx **at = &peer->rx[rx->class];
    while (*at != rx) {
        at = &(*at)->beside;
    }
    *at = rx->beside;
    list_remove(&rx->acks_due);
    handlers_free(rx);
    if (rx->stored != NULL) {
        detach_stored(rx, FABRIC_UNDELIVERABLE);
    }
    free(rx->before);
    free(rx);
}

void rx_abandon(struct rx *rx)
{
    handlers_cancel(rx);
    rx->at.ni = NULL;
    rx->at.le = NULL;
    rx->at.unexpected = NULL;
    rx->at.fail = PTL_NI_DROPPED;
    rx->f.sink = RX_DISCARD;
    if (rx->reply.vector != NULL) {
        rx->reply.fault = FABRIC_SEGV; /* the list of parts is freed with its entry */
    }
}

void rx_reset(struct rx *rx)
{
    if (rx->at.ni != NULL) {
        rx->at.ni->in_flight--;
    }
    if (unlikely(rx->header_begun && rx->run->block != NULL)) {
        block_give(rx->run);
    }
    rx->at = (struct target){.ni = NULL};
    rx->done = 0;
    rx->wait_end = 0;
    rx->cookie = 0;
}
