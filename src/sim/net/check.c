/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the invariants of a network, for tests, and computes the latency of a message that is
 * alone in it. */
#include "state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int broken(char error[NET_ERROR], const char *what, uint32_t channel, uint32_t vc,
                  uint64_t found, uint64_t right)
{
    snprintf(error, NET_ERROR,
             "channel %" PRIu32 ", virtual channel %" PRIu32 ": %s %" PRIu64 " instead of %" PRIu64,
             channel, vc, what, found, right);
    return -1;
}

/* Checks the heaps of packets that wait for a channel's virtual channels, and that the channel's
 * counts of these packets and of their time are right. */
static int check_waiting(const struct net *n, uint32_t channel, char error[NET_ERROR])
{
    const struct net_channel *ch = &n->channels[channel];
    uint64_t queued = 0, waiting = 0;
    for (uint32_t k = 0; k < n->vcs; k++) {
        const struct net_vc *l = net_vc(n, channel, k);
        waiting += l->count;
        for (uint32_t i = 0; i < l->count; i++) {
            if (i > 0 && net_wait_before(&l->heap[i], &l->heap[(i - 1) / 2])) {
                return broken(error, "order of waiting packet", channel, k, i, 0);
            }
            queued +=
                net_from_host(n, channel) ? 0 : net_busy_of(n, n->packets[l->heap[i].ref].bytes);
        }
    }
    if (waiting != ch->waiting) {
        return broken(error, "packets that wait", channel, 0, ch->waiting, waiting);
    }
    if (queued != ch->queued) {
        return broken(error, "their time", channel, 0, ch->queued, queued);
    }
    return 0;
}

/* Returns, by virtual channel, the bytes of the packets that hold space of its buffer; the caller
 * frees it. */
static uint64_t *find_held(const struct net *n)
{
    uint64_t *held = calloc((size_t)n->g->channels * n->vcs, sizeof(*held));
    for (uint32_t i = 0; held != NULL && i < n->packets_used; i++) {
        const struct net_packet *p = &n->packets[i];
        if (p->channel != NET_NONE) {
            held[(size_t)p->channel * n->vcs + p->vc] += p->bytes;
        }
    }
    return held;
}

static int check_credit(const struct net *n, uint32_t channel, uint32_t vc, uint64_t held,
                        char error[NET_ERROR])
{
    const struct net_vc *l = net_vc(n, channel, vc);
    uint64_t sum = l->free + held, before = 0;
    for (uint32_t i = l->first; i != 0; i = n->credits[i - 1].next) {
        sum += n->credits[i - 1].bytes;
        if (n->credits[i - 1].time < before) {
            return broken(error, "credit out of order at", channel, vc, before, 0);
        }
        before = n->credits[i - 1].time;
    }
    if (l->free > n->c.buffer || sum != n->c.buffer) {
        return broken(error, "credit", channel, vc, sum, n->c.buffer);
    }
    return 0;
}

int net_check(const struct net *n, char error[NET_ERROR])
{
    uint64_t *held = find_held(n), live = 0;
    int status = held != NULL ? 0 : -1;
    error[0] = '\0';
    for (uint32_t c = 0; c < n->g->channels && status == 0; c++) {
        status = check_waiting(n, c, error);
        for (uint32_t k = 0; k < n->vcs && status == 0; k++) {
            status = check_credit(n, c, k, held[(size_t)c * n->vcs + k], error);
        }
    }
    free(held);
    for (uint32_t i = 0; i < n->packets_used; i++) {
        live += n->packets[i].channel != NET_NONE;
    }
    if (status == 0 &&
        (live != n->packets_live || n->counts.packets != n->counts.delivered + live)) {
        snprintf(error, NET_ERROR,
                 "%" PRIu64 " packets left a host, %" PRIu64 " came, %" PRIu64 " are on their way",
                 n->counts.packets, n->counts.delivered, live);
        status = -1;
    }
    return status;
}

/* docs/network-model.md derives this formula. */
uint64_t net_zero_load(const struct net_graph *g, const struct net_config *c, uint32_t from,
                       uint32_t to, uint64_t bytes, uint64_t pace)
{
    if (from == to) {
        return charges_product(bytes - 1, pace);
    }
    uint64_t h = net_path_switches(g, from, to);
    uint64_t path = (h + 1) * c->cable + h * c->hop;
    uint64_t slower = pace > c->byte ? pace : c->byte;
    uint64_t last = (bytes - 1) % c->packet; /* bytes of the last packet behind its first byte */
    uint64_t all = path + charges_product(bytes - 1, slower);
    if (!c->store_and_forward) {
        return all;
    }
    uint64_t alone = all + h * charges_product(last, c->byte);
    if (bytes <= c->packet) {
        return alone;
    }
    uint64_t behind = path + charges_product(bytes - 1 - last, slower) -
                      charges_product(1, slower - c->byte) +
                      h * charges_product(c->packet - 1, c->byte) + charges_product(last, c->byte);
    return alone > behind ? alone : behind;
}
