/* SPDX-License-Identifier: BSD-3-Clause */
/* Explains why a schedule cannot finish; see stuck.h. */
#include "stuck.h"

#include "base/array.h"
#include "sim/goal/operations.h"
#include "sim/goal/replay.h"

#include <inttypes.h>
#include <stdlib.h>

enum { LISTED = 8 };
/* The search for reasons ends after it has looked at so many operations. */
#define PATIENCE (UINT64_C(1) << 30)
#define NOWHERE UINT64_MAX

struct stuck {
    const struct goal *g;
    struct goal *places; /* the same schedule, opened to look up labels and lines */
    const struct sim_output *out;
    FILE *to;
    uint64_t *first;  /* by rank: index of its first operation among all operations */
    uint8_t *fate;    /* by operation */
    uint32_t *walked; /* by operation: number of the walk that has visited it; 0: none has */
    int64_t unfinished;
    uint64_t looked_at;
};

/* ---- Which operations are unfinished ---- */

static int find_fates(struct stuck *s)
{
    uint64_t first = 0;
    for (uint32_t rank = 0; rank < s->g->ranks; rank++) {
        s->first[rank] = first;
        first += goal_rank(s->g, rank).node_count;
    }
    for (size_t i = 0; i < s->out->left_count; i++) {
        const struct sim_left *l = &s->out->left[i];
        if (l->kind != SIM_LEFT_MESSAGE) {
            s->fate[s->first[l->rank] + l->node] = l->kind == SIM_LEFT_RECV   ? GOAL_LEFT_RECV
                                                   : l->kind == SIM_LEFT_TEST ? GOAL_LEFT_TEST
                                                                              : GOAL_LEFT_SEND;
        }
    }
    s->unfinished = goal_replay(s->g, s->fate);
    return s->unfinished < 0 ? -1 : 0;
}

/* ---- Output ---- */

static void print_rank_or_any(FILE *to, const char *word, uint32_t rank)
{
    if (rank == GOAL_ANY) {
        fprintf(to, " %s any rank", word);
    } else {
        fprintf(to, " %s rank %" PRIu32, word, rank);
    }
}

void stuck_print_operation(struct goal *g, uint32_t rank, uint32_t op, FILE *to)
{
    struct goal_rank r = goal_rank(g, rank);
    const struct goal_node *n = &r.nodes[op];
    struct goal_place place;
    fprintf(to, "rank %" PRIu32 ", operation %" PRIu32, rank, op);
    if (goal_locate(g, rank, op, &place)) {
        fprintf(to, " (%.*s", (int)place.label_length, place.label);
        if (place.line > 0) {
            fprintf(to, "%sline %" PRIu64 " of %s", place.label_length > 0 ? ", " : "", place.line,
                    place.file);
        }
        fputc(')', to);
    }
    const struct goal_kind *kind = goal_kind_of(n->type);
    if ((kind->has & GOAL_HAS_COUNTER) != 0) {
        fprintf(to, ": %s %" PRIu32 " %s %" PRIu64, kind->word, n->tag,
                n->type == GOAL_TEST ? "for" : "by", n->size);
        return;
    }
    fprintf(to, ": %s of %" PRIu64, kind->word, n->size);
    if (n->type == GOAL_CALC) {
        return;
    }
    fprintf(to, " bytes");
    print_rank_or_any(to, kind->between, n->peer);
    if (n->tag == GOAL_ANY) {
        fprintf(to, ", any tag");
    } else {
        fprintf(to, ", tag %" PRIu32, n->tag);
    }
}

static void print_operation(struct stuck *s, uint32_t rank, uint32_t op)
{
    stuck_print_operation(s->places, rank, op, s->to);
}

/* ---- What an operation waits for ---- */

/* Returns the rank of an operation, given its index among all operations. */
static uint32_t rank_of(const struct stuck *s, uint64_t number)
{
    return (uint32_t)ARRAY_FIRST(i, s->g->ranks, s->first[i] > number) - 1;
}

static bool names(const goal_u32 *list, uint32_t count, uint32_t op)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] == op) {
            return true;
        }
    }
    return false;
}

/* Returns the first unfinished operation of the rank that `op` requires, or NOWHERE. */
static uint64_t before(struct stuck *s, uint32_t rank, uint32_t op)
{
    struct goal_rank r = goal_rank(s->g, rank);
    s->looked_at += r.node_count;
    for (uint32_t i = 0; i < r.node_count; i++) {
        const struct goal_node *n = &r.nodes[i];
        enum goal_fate fate = s->fate[s->first[rank] + i];
        if ((fate != GOAL_DONE && names(goal_done(&r, n), n->done_count, op)) ||
            (fate == GOAL_NEVER_READY && names(goal_start(&r, n), n->start_count, op))) {
            return s->first[rank] + i;
        }
    }
    return NOWHERE;
}

static bool fit(uint32_t a, uint32_t b)
{
    return a == b || a == GOAL_ANY || b == GOAL_ANY;
}

/* Returns an operation of rank `at` that would match `n` of rank `rank`, but has never become
 * ready; or NOWHERE. */
static uint64_t partner_at(struct stuck *s, uint32_t at, uint32_t rank, const struct goal_node *n)
{
    struct goal_rank r = goal_rank(s->g, at);
    s->looked_at += r.node_count;
    enum goal_type type = n->type == GOAL_RECV ? GOAL_SEND : GOAL_RECV;
    for (uint32_t i = 0; i < r.node_count; i++) {
        const struct goal_node *p = &r.nodes[i];
        if (s->fate[s->first[at] + i] == GOAL_NEVER_READY && p->type == type &&
            fit(p->peer, rank) && fit(p->tag, n->tag)) {
            return s->first[at] + i;
        }
    }
    return NOWHERE;
}

static uint64_t partner(struct stuck *s, uint32_t rank, const struct goal_node *n)
{
    if (n->type != GOAL_SEND && n->type != GOAL_RECV) {
        return NOWHERE;
    }
    if (n->peer != GOAL_ANY) {
        return partner_at(s, n->peer, rank, n);
    }
    uint64_t found = NOWHERE;
    for (uint32_t at = 0; at < s->g->ranks && found == NOWHERE; at++) {
        found = partner_at(s, at, rank, n);
    }
    return found;
}

static uint64_t waits_for(struct stuck *s, uint64_t number)
{
    uint32_t rank = rank_of(s, number), op = (uint32_t)(number - s->first[rank]);
    struct goal_rank r = goal_rank(s->g, rank);
    return s->fate[number] == GOAL_NEVER_READY ? before(s, rank, op)
                                               : partner(s, rank, &r.nodes[op]);
}

/* ---- Walks ---- */

static void print_number(struct stuck *s, uint64_t number)
{
    uint32_t rank = rank_of(s, number);
    print_operation(s, rank, (uint32_t)(number - s->first[rank]));
}

static void print_cycle(struct stuck *s, uint64_t start)
{
    uint64_t at = start;
    int steps = 0;
    fprintf(s->to, "a cycle: each waits for the next, the last for the first\n");
    do {
        if (++steps <= 4 * LISTED) {
            fprintf(s->to, "  ");
            print_number(s, at);
            fprintf(s->to, "%s\n",
                    s->fate[at] == GOAL_NEVER_READY ? "" : ", started, waits for its partner");
        }
        at = waits_for(s, at);
    } while (at != start);
    if (steps > 4 * LISTED) {
        fprintf(s->to, "  and %d more\n", steps - 4 * LISTED);
    }
}

static void print_dead_end(struct stuck *s, uint64_t number)
{
    bool test = s->fate[number] == GOAL_LEFT_TEST;
    fprintf(s->to, test ? "waits for ever: " : "without a partner: ");
    print_number(s, number);
    fprintf(s->to, test                                ? "; nothing is left that counts there\n"
                   : s->fate[number] == GOAL_LEFT_RECV ? "; no send that fits is left\n"
                                                       : "; no recv that fits is left\n");
}

/* Walks from an operation to the one that it waits for, and on, until it comes to an operation that
 * a walk has visited or that waits for nothing. Prints the first cycle, and the first operations
 * without a partner. */
static void walk(struct stuck *s, uint64_t from, uint32_t number, int *cycles, int *dead_ends)
{
    uint64_t at = from;
    while (at != NOWHERE && s->walked[at] == 0 && s->looked_at < PATIENCE) {
        s->walked[at] = number;
        uint64_t next = waits_for(s, at);
        if (next == NOWHERE && (*dead_ends)++ < LISTED) {
            print_dead_end(s, at);
        }
        at = next;
    }
    if (at != NOWHERE && s->walked[at] == number && s->looked_at < PATIENCE && (*cycles)++ == 0) {
        print_cycle(s, at);
    }
}

static void print_messages(struct stuck *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->out->left_count; i++) {
        const struct sim_left *l = &s->out->left[i];
        if (l->kind == SIM_LEFT_MESSAGE && count++ < LISTED) {
            fprintf(s->to, "never received: ");
            print_operation(s, l->rank, l->node);
            bool send = goal_rank(s->g, l->rank).nodes[l->node].type == GOAL_SEND;
            fprintf(s->to, "; no %s that fits took it\n", send ? "recv" : "append");
        }
    }
    if (count > LISTED) {
        fprintf(s->to, "and %zu more messages that were never received\n", count - LISTED);
    }
}

static void explain(struct stuck *s)
{
    uint64_t ops = s->g->nodes;
    int cycles = 0, dead_ends = 0;
    uint32_t walks = 0;
    if (s->unfinished > 0) {
        fprintf(s->to, "the schedule cannot finish: %" PRId64 " of %" PRIu64 " operations wait\n",
                s->unfinished, ops - s->g->parts);
    } else {
        fprintf(s->to, "all operations end, but messages are left\n");
    }
    for (int started = 1; started >= 0; started--) {
        for (uint64_t i = 0; i < ops && s->looked_at < PATIENCE; i++) {
            bool is_started = s->fate[i] > GOAL_DONE;
            if (s->fate[i] != GOAL_DONE && is_started == started && s->walked[i] == 0) {
                walk(s, i, ++walks, &cycles, &dead_ends);
            }
        }
    }
    if (s->looked_at >= PATIENCE) {
        fprintf(s->to, "the schedule is too large to look for all reasons\n");
    }
    if (dead_ends > LISTED) {
        fprintf(s->to, "and %d more without a partner\n", dead_ends - LISTED);
    }
    print_messages(s);
}

static int open_stuck(struct stuck *s)
{
    s->first = calloc(s->g->ranks, sizeof(*s->first));
    s->fate = calloc(s->g->nodes + 1, sizeof(*s->fate));
    s->walked = calloc(s->g->nodes + 1, sizeof(*s->walked));
    return s->first != NULL && s->fate != NULL && s->walked != NULL ? find_fates(s) : -1;
}

static void close_stuck(struct stuck *s)
{
    free(s->first);
    free(s->fate);
    free(s->walked);
}

int stuck_explain(struct goal *g, const struct sim_output *out, FILE *to)
{
    struct stuck s = {.g = g, .places = g, .out = out, .to = to};
    int status = open_stuck(&s);
    if (status == 0) {
        explain(&s);
    }
    close_stuck(&s);
    return status;
}
