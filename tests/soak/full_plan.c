/* SPDX-License-Identifier: BSD-3-Clause */
/* What the processes do in one round: a function of seed and round. */
#include "full.h"

#include <string.h>

const char *act_name(unsigned act)
{
    static const char *const names[] = {"put", "get", "atomic", "fetch", "swap"};
    return names[act];
}

bool message_succeeds(const struct message *m)
{
    return m->lane != LANE_NOBODY && m->lane != LANE_FORBIDDEN;
}

/* Log-uniform from 0 to `most`. */
static uint32_t random_length(uint64_t *r, size_t most)
{
    unsigned bits = 0;
    while (((size_t)2 << bits) <= most) {
        bits++;
    }
    unsigned b = (unsigned)splitmix_below(r, bits + 2);
    size_t length = b == 0 ? splitmix_below(r, 2)
                           : ((size_t)1 << (b - 1)) + splitmix_below(r, (size_t)1 << (b - 1));
    return (uint32_t)(length < most ? length : most);
}

/* Space that earlier messages of the round have taken. */
struct space {
    size_t puts[PROCESSES][FACES], flow[PROCESSES][FACES];
    bool owned[PROCESSES][PROCESSES][FACES];
    unsigned tickets[PROCESSES][FACES], matched[PROCESSES][FACES];
};

/* A place that no other message of the round uses; short ones when that gets scarce. */
static uint64_t take(size_t *used, size_t room, struct message *m)
{
    if (*used + m->length + 8 * MESSAGES_MAX > room) {
        m->length %= 8;
    }
    uint64_t at = *used;
    *used += m->length;
    return at;
}

/* An atomic on the elements that `from` owns at `to`. */
static void plan_owned(struct message *m, struct space *s, uint64_t *r)
{
    m->sub = SUB_OWNED;
    m->act = (uint8_t)(ACT_ATOMIC + splitmix_below(r, 3));
    do {
        m->op = (uint8_t)splitmix_below(r, PTL_OP_LAST);
        m->type = (uint8_t)splitmix_below(r, TYPES);
    } while (!op_is_legal(m->act, m->op, m->type));
    size_t size = type_size(m->type), first = splitmix_below(r, ELEMENTS);
    size_t n = op_has_operand(m->op) ? 1 : splitmix_below(r, ELEMENTS - first) + 1;
    m->length = (uint32_t)(n * size);
    m->at = m->from * OWNED_BYTES + (size_t)m->type * ELEMENTS * ELEMENT_MAX + first * size;
    s->owned[m->from][m->to][m->face] = true;
}

static void plan_window(struct message *m, unsigned i, struct space *s, uint64_t *r)
{
    unsigned dice = (unsigned)splitmix_below(r, 20);
    if (dice < 7) {
        m->length = random_length(r, splitmix_below(r, 8) == 0 ? 1 << 20 : 1 << 17);
        m->at = AT_PUTS + take(&s->puts[m->to][m->face], PUTS_BYTES, m);
    } else if (dice < 11) {
        m->act = ACT_GET;
        m->at = AT_GETS + 8 * (size_t)i; /* which tells the target who it is */
        m->length =
            random_length(r, splitmix_below(r, 8) == 0 ? GETS_BYTES - 8 * MESSAGES_MAX : 1 << 16);
    } else if (dice < 16) {
        plan_owned(m, s, r);
    } else if (dice < 19 || s->tickets[m->to][m->face] >= 64) {
        m->sub = SUB_SUM;
        m->act = ACT_ATOMIC;
        m->op = PTL_SUM;
        m->type = (uint8_t)splitmix_below(r, TYPES);
        m->length = (uint32_t)type_size(m->type);
        m->at = AT_SUMS + (size_t)m->type * ELEMENT_MAX;
    } else {
        m->sub = SUB_TICKET;
        m->act = ACT_FETCH;
        m->op = PTL_SUM;
        m->type = PTL_UINT64_T;
        m->length = 8;
        m->at = AT_TICKET;
        s->tickets[m->to][m->face]++;
    }
}

/* A put, or an atomic that does the same to memory that was all zero. */
static void plan_like_put(struct message *m, uint64_t *r, size_t most, bool gets)
{
    static const uint8_t acts[] = {ACT_PUT, ACT_PUT, ACT_PUT, ACT_ATOMIC, ACT_FETCH, ACT_GET};
    m->act = acts[splitmix_below(r, gets ? 6 : 5)];
    m->op = PTL_SUM;
    m->type = PTL_UINT8_T;
    m->length = random_length(r, m->act == ACT_PUT || m->act == ACT_GET ? most : ATOMIC_MAX);
}

static void plan_match(struct message *m, unsigned i, struct space *s, uint64_t *r)
{
    plan_like_put(m, r, MATCH_LENGTH_MAX, is_matching(m->face));
    m->arrival = (uint8_t)splitmix_below(r, 3);
    m->at = is_matching(m->face) ? i : 0; /* entries manage their offset themselves */
    m->room = m->length;
    if (is_matching(m->face) && m->arrival == EARLY && splitmix_below(r, 4) == 0) {
        m->room = (uint32_t)splitmix_below(r, m->length + 1); /* truncates */
    }
    s->matched[m->to][m->face]++;
}

/* How the initiator describes its memory, and what it wants to hear. */
static void plan_side(struct message *m, uint64_t *r)
{
    bool simple = m->lane == LANE_FLOW || !message_succeeds(m);
    m->md = (uint8_t)(simple ? splitmix_below(r, 2) == 0 ? MD_EVENTS : MD_PARTS
                             : splitmix_below(r, MD_KINDS));
    bool counted = m->md == MD_COUNTED || m->md == MD_BYTES;
    m->ack = (uint8_t)(simple    ? PTL_ACK_REQ
                       : counted ? splitmix_below(r, 4)
                                 : splitmix_below(r, 2));
}

static void plan_message(struct message *m, unsigned i, bool flood, struct space *s, uint64_t *r)
{
    memset(m, 0, sizeof(*m));
    m->from = (uint8_t)splitmix_below(r, PROCESSES);
    m->to = (uint8_t)splitmix_below(r, PROCESSES);
    m->face = (uint8_t)splitmix_below(r, FACES);
    unsigned dice = (unsigned)splitmix_below(r, 20);
    bool matchable = s->matched[m->to][m->face] < 40;
    m->lane = dice < (flood ? 2 : 9)                 ? LANE_WINDOW
              : dice < (flood ? 4 : 14) && matchable ? LANE_MATCH
              : dice < 18                            ? LANE_FLOW
              : dice < 19                            ? LANE_FORBIDDEN
                                                     : LANE_NOBODY;
    switch (m->lane) {
    case LANE_WINDOW:
        plan_window(m, i, s, r);
        break;
    case LANE_MATCH:
        plan_match(m, i, s, r);
        break;
    case LANE_FLOW:
        plan_like_put(m, r, (size_t)32 << 10, false);
        m->at = take(&s->flow[m->to][m->face], FLOW_BYTES, m);
        break;
    default:
        plan_like_put(m, r, (size_t)32 << 10, m->lane == LANE_NOBODY);
    }
    if (m->lane != LANE_MATCH) {
        m->room = m->length;
    }
    plan_side(m, r);
}

static void plan_chain(struct chain *c, unsigned f, uint64_t *r)
{
    unsigned at = (unsigned)splitmix_below(r, PROCESSES),
             step = (unsigned)splitmix_below(r, PROCESSES);
    c->hops = 1 + (unsigned)splitmix_below(r, HOPS_MAX);
    c->appended = is_matching(f) && splitmix_below(r, 2) == 0;
    for (unsigned h = 0; h < c->hops; h++) {
        unsigned next = (at + step) % PROCESSES;
        c->hop[h] = (struct hop){(uint8_t)at, (uint8_t)next, (uint8_t)splitmix_below(r, 5),
                                 h > 0 && splitmix_below(r, 3) == 0};
        at = next;
    }
}

void plan_make(void)
{
    static struct space space;
    uint64_t r = seed * 0x2545f4914f6cdd1du + round_number;
    memset(&space, 0, sizeof(space));
    splitmix(&r);
    plan.count = 60 + (unsigned)splitmix_below(&r, 200);
    bool flood = splitmix_below(&r, 4) == 0;
    for (unsigned i = 0; i < plan.count; i++) {
        plan_message(&plan.message[i], i, flood, &space, &r);
    }
    for (unsigned k = 0; k < PROCESSES * PROCESSES * FACES; k++) {
        uint8_t from = (uint8_t)(k / PROCESSES % PROCESSES), to = (uint8_t)(k % PROCESSES);
        uint8_t f = (uint8_t)(k / PROCESSES / PROCESSES);
        if (space.owned[from][to][f]) {
            plan.message[plan.count++] = (struct message){.from = from,
                                                          .to = to,
                                                          .face = f,
                                                          .lane = LANE_WINDOW,
                                                          .act = ACT_GET,
                                                          .sub = SUB_VERIFY,
                                                          .length = OWNED_BYTES,
                                                          .room = OWNED_BYTES,
                                                          .at = from * OWNED_BYTES};
        }
    }
    for (unsigned f = 0; f < FACES; f++) {
        plan_chain(&plan.chain[f], f, &r);
        plan.counts_bytes[f] = splitmix_below(&r, 2) == 0;
    }
}
