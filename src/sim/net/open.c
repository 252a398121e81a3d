/* SPDX-License-Identifier: BSD-3-Clause */
/* The begin and the end of a network, and queries about it; see net.h. */
#include "state.h"

#include <stdlib.h>

struct net *net_open(const struct net_graph *g, const struct net_config *c,
                     const struct net_hooks *hooks)
{
    struct net *n = calloc(1, sizeof(*n));
    if (n == NULL) {
        return NULL;
    }
    n->g = g;
    n->c = *c;
    n->hooks = *hooks;
    n->vcs = net_vcs(g, c->routing);
    n->full_busy = charges_product(c->packet, c->byte);
    n->full_tail = charges_product(c->packet - 1, c->byte);
    n->channels = calloc(g->channels, sizeof(*n->channels));
    n->vc = calloc((size_t)g->channels * n->vcs, sizeof(*n->vc));
    uint64_t near =
        /* four times their sum; each is halved first, so that nothing wraps */
        n->full_busy / 2 + c->hop / 2 + c->cable / 2;
    near = near < LOGGOPS_LAST / 4 ? 4 * near : LOGGOPS_LAST;
    if (n->channels == NULL || n->vc == NULL ||
        net_events_init(&n->events, near, g->channels) != 0) {
        net_close(n);
        return NULL;
    }
    for (uint32_t i = 0; i < g->channels; i++) {
        n->channels[i].look = NET_NEVER;
        for (uint32_t k = 0; k < n->vcs; k++) {
            net_vc(n, i, k)->free = c->buffer;
        }
    }
    return n;
}

void net_close(struct net *n)
{
    if (n == NULL) {
        return;
    }
    for (size_t i = 0; n->vc != NULL && i < (size_t)n->g->channels * n->vcs; i++) {
        free(n->vc[i].heap);
    }
    net_events_free(&n->events);
    free(n->channels);
    free(n->vc);
    free(n->packets);
    free(n->transfers);
    free(n->credits);
    free(n->pairs);
    free(n);
}

uint64_t net_up_at(const struct net *n, uint32_t channel)
{
    uint64_t up = n->now, before;
    do { /* times may overlap */
        before = up;
        for (size_t i = 0; i < n->c.downs; i++) {
            const struct net_down *d = &n->c.down[i];
            up = d->channel == channel && d->from <= up && up < d->until ? d->until : up;
        }
    } while (up != before);
    return up;
}

bool net_overflow(const struct net *n)
{
    return n->overflow;
}

uint32_t net_culprit(const struct net *n)
{
    return n->transfers[n->at].m.ref;
}

const struct net_counts *net_counts(const struct net *n)
{
    return &n->counts;
}

uint64_t net_busy(const struct net *n, uint32_t channel)
{
    return n->channels[channel].busy;
}
