/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether every message has its receive. A channel is a sender, a receiver and a tag;
 * messages of one are received in their order, so of a channel with more on one side
 * the last ones lack their other half. A receive that names no source (of a trace of
 * liballprof) makes one channel of all senders.
 */
#include "goal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct channel {
    uint64_t sent, received;
    uint64_t sent_now, received_now; /* while the schedule is written */
    uint32_t from, to, tag;
    bool taken;
};

struct mpi_channels {
    struct channel *at;
    uint64_t count;
    uint64_t mask; /* slots - 1 */
};

struct mpi_channels *mpi_channels_make(void)
{
    struct mpi_channels *c = calloc(1, sizeof(*c));
    if (c != NULL) {
        c->mask = 1023;
        c->at = calloc(c->mask + 1, sizeof(*c->at));
    }
    if (c != NULL && c->at == NULL) {
        free(c);
        return NULL;
    }
    return c;
}

void mpi_channels_free(struct mpi_channels *c)
{
    if (c != NULL) {
        free(c->at);
        free(c);
    }
}

static struct channel *slot(const struct mpi_channels *c, uint32_t from, uint32_t to, uint32_t tag)
{
    uint64_t hash = (from * 0x9e3779b97f4a7c15u) ^ (to * 0xbf58476d1ce4e5b9u);
    hash = (hash ^ (hash >> 29) ^ tag) * 0x94d049bb133111ebu;
    for (uint64_t i = hash >> 24;; i++) {
        struct channel *s = &c->at[i & c->mask];
        if (!s->taken || (s->from == from && s->to == to && s->tag == tag)) {
            return s;
        }
    }
}

static bool make_room(struct mpi_channels *c)
{
    struct mpi_channels more = {.mask = 2 * c->mask + 1};
    if (2 * c->count <= c->mask) {
        return true;
    }
    more.at = calloc(more.mask + 1, sizeof(*more.at));
    if (more.at == NULL) {
        return false;
    }
    for (uint64_t i = 0; i <= c->mask; i++) {
        if (c->at[i].taken) {
            *slot(&more, c->at[i].from, c->at[i].to, c->at[i].tag) = c->at[i];
        }
    }
    free(c->at);
    c->at = more.at;
    c->mask = more.mask;
    return true;
}

static struct channel *channel(struct mpi_channels *c, uint32_t from, uint32_t to, uint32_t tag)
{
    if (!make_room(c)) {
        return NULL;
    }
    struct channel *s = slot(c, from, to, tag);
    if (!s->taken) {
        *s = (struct channel){.from = from, .to = to, .tag = tag, .taken = true};
        c->count++;
    }
    return s;
}

int mpi_count_rank(struct mpi_channels *c, uint32_t rank, const struct goal_builder *b,
                   struct goal_error *error)
{
    for (uint64_t i = 0; i < b->count; i++) {
        const struct goal_node *n = &b->nodes[i];
        if (n->type == GOAL_CALC) {
            continue;
        }
        struct channel *s = n->type == GOAL_SEND ? channel(c, rank, n->peer, n->tag)
                                                 : channel(c, n->peer, rank, n->tag);
        if (s == NULL) {
            return goal_fail(error, "no memory");
        }
        s->sent += n->type == GOAL_SEND;
        s->received += n->type == GOAL_RECV;
    }
    return 0;
}

/* Senders whose messages are received without a name join those receives. */
static void join_senders(struct mpi_channels *c)
{
    for (uint64_t i = 0; i <= c->mask; i++) {
        struct channel *s = &c->at[i];
        if (!s->taken || s->from == GOAL_ANY) {
            continue;
        }
        struct channel *any = slot(c, GOAL_ANY, s->to, s->tag);
        if (any->taken) {
            any->sent += s->sent;
            any->received += s->received;
            s->received = s->sent = 0;
        }
    }
}

int mpi_channels_check(struct mpi_channels *c, struct goal_error *error)
{
    join_senders(c);
    for (uint64_t i = 0; i <= c->mask; i++) {
        const struct channel *s = &c->at[i];
        if (!s->taken || s->sent == s->received) {
            continue;
        }
        char from[32] = "any rank";
        if (s->from != GOAL_ANY) {
            snprintf(from, sizeof(from), "rank %u", s->from);
        }
        return goal_fail(error,
                         "from %s to rank %u, tag %u of the schedule: %" PRIu64
                         " messages are sent and %" PRIu64
                         " received; --partial leaves out what lacks its other half",
                         from, s->to, s->tag, s->sent, s->received);
    }
    return 0;
}

uint64_t mpi_cut_rank(struct mpi_channels *c, uint32_t rank, struct goal_builder *b)
{
    uint64_t cut = 0;
    for (uint64_t i = 0; i < b->count; i++) {
        struct goal_node *n = &b->nodes[i];
        if (n->type == GOAL_CALC) {
            continue;
        }
        bool sends = n->type == GOAL_SEND;
        struct channel *s = sends ? slot(c, rank, n->peer, n->tag) : slot(c, n->peer, rank, n->tag);
        uint64_t both = s->sent < s->received ? s->sent : s->received;
        uint64_t *now = sends ? &s->sent_now : &s->received_now;
        if ((*now)++ >= both) {
            n->type = GOAL_CALC;
            n->peer = n->tag = 0;
            n->size = 0;
            n->nic = 0;
            cut++;
        }
    }
    return cut;
}
