/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks that every message has its receive. A channel is a sender, a receiver and a tag. The
 * messages of a channel are received in order, so if it has more sends than receives, or fewer, the
 * last ones have no partner. A receive from any source (in a trace of liballprof) joins the
 * channels of all senders into one.
 */
#include "goal.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct ends {
    uint32_t from, to, tag;
};

struct channel {
    UT_hash_handle hh;
    struct ends ends;
    uint64_t sent, received;
    uint64_t sent_now, received_now; /* the same counts while the schedule is written */
};

struct mpi_channels {
    struct channel *table; /* found by sender, receiver and tag */
};

struct mpi_channels *mpi_channels_make(void)
{
    return calloc(1, sizeof(struct mpi_channels));
}

void mpi_channels_free(struct mpi_channels *c)
{
    struct channel *s, *next;
    if (c == NULL) {
        return;
    }
    HASH_ITER(hh, c->table, s, next)
    {
        HASH_DEL(c->table, s);
        free(s);
    }
    free(c);
}

static struct channel *find(const struct mpi_channels *c, uint32_t from, uint32_t to, uint32_t tag)
{
    struct ends ends = {from, to, tag};
    struct channel *s;
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): all are set */
    HASH_FIND(hh, c->table, &ends, sizeof(ends), s);
    return s;
}

/* Returns the channel, which is made if there was none; NULL if memory is short. */
static struct channel *channel(struct mpi_channels *c, uint32_t from, uint32_t to, uint32_t tag)
{
    struct channel *s = find(c, from, to, tag);
    if (s != NULL || (s = calloc(1, sizeof(*s))) == NULL) {
        return s;
    }
    s->ends = (struct ends){from, to, tag};
    HASH_ADD(hh, c->table, ends, sizeof(s->ends), s);
    if (!hash_added(s)) {
        free(s);
        return NULL;
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

/* Adds the counts of each channel to the channel of receives from any source, if the receiver has
 * one with the same tag. */
static void join_senders(struct mpi_channels *c)
{
    for (struct channel *s = c->table; s != NULL; s = s->hh.next) {
        if (s->ends.from == GOAL_ANY) {
            continue;
        }
        struct channel *any = find(c, GOAL_ANY, s->ends.to, s->ends.tag);
        if (any != NULL) {
            any->sent += s->sent;
            any->received += s->received;
            s->received = s->sent = 0;
        }
    }
}

int mpi_channels_check(struct mpi_channels *c, struct goal_error *error)
{
    join_senders(c);
    for (const struct channel *s = c->table; s != NULL; s = s->hh.next) {
        if (s->sent == s->received) {
            continue;
        }
        char from[32] = "any rank";
        if (s->ends.from != GOAL_ANY) {
            snprintf(from, sizeof(from), "rank %u", s->ends.from);
        }
        return goal_fail(error,
                         "from %s to rank %u, tag %u of the schedule: %" PRIu64
                         " messages are sent and %" PRIu64
                         " received; --partial leaves out what lacks its other half",
                         from, s->ends.to, s->ends.tag, s->sent, s->received);
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
        struct channel *s = sends ? find(c, rank, n->peer, n->tag) : find(c, n->peer, rank, n->tag);
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
