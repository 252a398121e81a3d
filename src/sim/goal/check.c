/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks that a binary schedule is one that the compiler could have written (the invariant of
 * goal.h), in one pass from rank to rank. For each rank it goes through the lists first and counts
 * how often they name each node: that must be the node's `depends`. No read goes beyond the file:
 * the span of a rank lies within it, and the rank's counts must add up to its span before anything
 * else of the rank is read.
 */
#include "operations.h"
#include "read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node of LogGOPSim's sPIN extension has the same 39 bytes first, then 65 bytes of its own. */
enum { PORTALS_NODE = 104, PORTALS_TYPES = 11 };

struct check {
    struct goal *g;
    uint64_t length; /* bytes of the schedule from byte 8 on */
    const char *name;
    struct goal_error *error;
    uint32_t rank;
    uint32_t *named; /* of the rank that is checked: how often its lists name each node */
    uint64_t room;
    uint64_t of_type[GOAL_TYPES];
    uint8_t operation, handler, before; /* types of the node before: what its next part is behind */
    uint32_t highest_cpu, highest_nic;
};

/* A field with an illegal value: its name, its value, and the legal one. */
struct fault {
    const char *field;
    uint64_t value;
    uint64_t expected; /* the legal value, or the highest legal one, as `rule` says */
    const char *rule;
};

static struct goal_rank rank_at(const struct check *c, uint64_t start)
{
    struct goal_span span = {.start = start};
    struct goal view = {.base = c->g->base, .spans = &span};
    return goal_rank(&view, 0);
}

/* True if the rank would be valid with nodes of LogGOPSim's sPIN extension. */
static bool has_portals_nodes(const struct goal_rank *r, uint64_t length)
{
    uint64_t fixed = 8 + 4 * (uint64_t)r->root_count + PORTALS_NODE * (uint64_t)r->node_count;
    uint64_t next = 0;
    if (r->node_count == 0 || fixed > length) {
        return false;
    }
    for (uint32_t i = 0; i < r->node_count; i++) {
        const struct goal_node *n =
            (const struct goal_node *)((const uint8_t *)r->nodes + (uint64_t)PORTALS_NODE * i);
        if (n->type < 1 || n->type > PORTALS_TYPES || n->done_first != next ||
            n->start_first != next + n->done_count) {
            return false;
        }
        next += (uint64_t)n->done_count + n->start_count;
    }
    return fixed + 4 * next == length;
}

static int rank_fault(const struct check *c, const char *what, uint64_t value, const char *relation,
                      uint64_t expected)
{
    const struct goal_span span = c->g->spans[c->rank];
    if (span.end >= span.start + 8 && span.end <= c->length && span.start < c->length) {
        struct goal_rank r = rank_at(c, span.start);
        if (has_portals_nodes(&r, span.end - span.start)) {
            return goal_fail(
                c->error,
                "%s: this is a binary schedule of LogGOPSim's sPIN extension, with nodes "
                "of 104 bytes; compile its text",
                c->name);
        }
    }
    return goal_fail(c->error, "%s: rank %u: %s is %" PRIu64 ", %s %" PRIu64, c->name, c->rank,
                     what, value, relation, expected);
}

static int node_fault(const struct check *c, uint32_t node, const struct fault *f)
{
    char what[64];
    snprintf(what, sizeof(what), "node %u: %s", node, f->field);
    return rank_fault(c, what, f->value, f->rule, f->expected);
}

static inline bool is_zero(struct fault *f, const char *field, uint64_t value)
{
    *f = (struct fault){field, value, 0, "must be"};
    return value == 0;
}

/* True if an operation has a place for this node as its part. */
static bool check_place(const struct check *c, const struct goal_node *n, struct fault *f)
{
    *f = (struct fault){"type", n->type, c->before,
                        "which is no part that may be behind one of type"};
    return goal_follows(c->operation, c->handler, c->before, n->type);
}

/* Of a handler: its unit, and what it takes more for each so many bytes. */
static bool check_cost(const struct goal_node *n, struct fault *f)
{
    if (n->cpu > 1) {
        *f = (struct fault){"unit of a handler", n->cpu, 1, "must be 0 (ps) or"};
        return false;
    }
    return n->tag != 0 || is_zero(f, "what a handler takes for no bytes", n->peer);
}

static bool check_fields_beyond(const struct check *c, const struct goal_node *n, unsigned has,
                                struct fault *f)
{
    bool part = goal_is_part(n);
    bool handler = n->type >= GOAL_HEADER_HANDLER && n->type <= GOAL_COMPLETION_HANDLER;
    if (part && !(check_place(c, n, f) && is_zero(f, "nic of a part", n->nic) &&
                  is_zero(f, "lists of a part", (uint64_t)n->done_count + n->start_count) &&
                  is_zero(f, "dependencies of a part", n->depends))) {
        return false;
    }
    if ((handler || (has & GOAL_HAS_COUNTER) != 0) && n->size > INT64_MAX) {
        *f = (struct fault){"size", n->size, INT64_MAX, "must be at most"};
        return false;
    }
    if (handler) {
        return check_cost(n, f);
    }
    if ((has & GOAL_HAS_TAG) != 0 && (has & GOAL_HAS_ANY_TAG) == 0 && n->tag == GOAL_ANY) {
        *f = (struct fault){"tag", n->tag, GOAL_ANY - 1, "must be at most"};
        return false;
    }
    return (!part || is_zero(f, "cpu of a part", n->cpu)) &&
           ((has & GOAL_HAS_PEER) != 0 || is_zero(f, "peer", n->peer)) &&
           ((has & (GOAL_HAS_TAG | GOAL_HAS_COUNTER)) != 0 || is_zero(f, "tag", n->tag)) &&
           ((has & GOAL_HAS_NIC) != 0 || is_zero(f, "nic", n->nic)) &&
           (n->type < GOAL_COUNTS || is_zero(f, "size", n->size));
}

/* True if the fields of a node are legal, but for its lists and for the roots, which are checked
 * elsewhere. */
static inline bool check_fields(const struct check *c, const struct goal_node *n, struct fault *f)
{
    uint32_t ranks = c->g->ranks;
    const struct goal_kind *kind = goal_kind_of(n->type);
    if (kind->word == NULL) {
        *f = (struct fault){"type", n->type, GOAL_USE_ONCE, "which is none; the highest is"};
        return false;
    }
    if (n->type == GOAL_CALC) {
        if ((n->peer | n->tag | n->nic) != 0) {
            *f = (struct fault){"peer, tag or nic of a calc",
                                n->peer != 0  ? n->peer
                                : n->tag != 0 ? n->tag
                                              : n->nic,
                                0, "must be"};
            return false;
        }
    } else if ((kind->has & GOAL_HAS_PEER) != 0 && n->peer >= ranks &&
               ((kind->has & GOAL_HAS_ANY) == 0 || n->peer != GOAL_ANY)) {
        *f = (struct fault){"peer", n->peer, ranks - 1, "ranks are 0 to"};
        return false;
    }
    return n->type <= GOAL_CALC || check_fields_beyond(c, n, kind->has, f);
}

static inline bool check_links(const struct goal_node *n, uint64_t next, uint32_t named,
                               struct fault *f)
{
    if (n->done_first != next) {
        *f = (struct fault){"first index of its requires list", n->done_first, next, "must be"};
        return false;
    }
    if (n->start_first != next + n->done_count) {
        *f = (struct fault){"first index of its irequires list", n->start_first,
                            next + n->done_count, "must be"};
        return false;
    }
    if (n->depends != named) {
        *f = (struct fault){"count of dependencies", n->depends, named,
                            "the number of lists that name it is"};
        return false;
    }
    return true;
}

static int count_names(struct check *c, const struct goal_rank *r, uint64_t successors)
{
    if (r->node_count < c->room) {
        memset(c->named, 0, sizeof(*c->named) * (size_t)r->node_count);
    } else { /* pages of a new array cost memory at their first use: a wrong size is refused before
              */
        free(c->named);
        c->room = r->node_count + (uint64_t)1;
        c->named = calloc(c->room, sizeof(*c->named));
        if (c->named == NULL) {
            return goal_fail(c->error, "%s: rank %u: no memory to check its %u operations", c->name,
                             c->rank, r->node_count);
        }
    }
    for (uint64_t i = 0; i < successors; i++) {
        if (r->successors[i] >= r->node_count) {
            char what[64];
            snprintf(what, sizeof(what), "successor %" PRIu64, i);
            return rank_fault(c, what, r->successors[i], "nodes of the rank:", r->node_count);
        }
        c->named[r->successors[i]]++;
    }
    return 0;
}

/* Notes what the next node, if it is a part, is behind. */
static inline void note_type(struct check *c, uint8_t type)
{
    c->before = type;
    if (type < GOAL_OPERATIONS) {
        c->operation = type;
        c->handler = 0;
    } else if (type <= GOAL_COMPLETION_HANDLER) {
        c->handler = type;
    }
}

static int check_nodes(struct check *c, const struct goal_rank *r, uint64_t successors)
{
    struct fault f;
    uint64_t next = 0;
    uint32_t roots = 0;
    c->operation = c->handler = c->before = 0;
    for (uint32_t i = 0; i < r->node_count; i++) {
        const struct goal_node *n = &r->nodes[i];
        if (!check_fields(c, n, &f) || !check_links(n, next, c->named[i], &f)) {
            return node_fault(c, i, &f);
        }
        note_type(c, n->type);
        next += (uint64_t)n->done_count + n->start_count;
        c->of_type[n->type]++;
        if (goal_is_part(n)) {
            continue;
        }
        c->highest_cpu = n->cpu > c->highest_cpu ? n->cpu : c->highest_cpu;
        c->highest_nic = n->nic > c->highest_nic ? n->nic : c->highest_nic;
        if (n->depends == 0) {
            if (roots == r->root_count || r->roots[roots] != i) {
                return rank_fault(c, "a node without dependencies that is not the next root", i,
                                  "roots before it:", roots);
            }
            roots++;
        }
    }
    if (next != successors) {
        return rank_fault(c, "length of all its lists", next, "room for them is", successors);
    }
    if (roots != r->root_count) {
        return rank_fault(c, "count of roots", r->root_count, "nodes without dependencies:", roots);
    }
    return 0;
}

static int check_rank(struct check *c, uint64_t start)
{
    const struct goal_span span = c->g->spans[c->rank];
    if (span.start != start) {
        return rank_fault(c, "start", span.start, "must be", start);
    }
    if (span.end > c->length || span.end - span.start < 8 || span.end < span.start) {
        return rank_fault(c, "end", span.end, "must be 8 or more after the start and at most",
                          c->length);
    }
    struct goal_rank r = rank_at(c, start);
    uint64_t fixed =
        8 + 4 * (uint64_t)r.root_count + sizeof(struct goal_node) * (uint64_t)r.node_count;
    uint64_t length = span.end - span.start;
    if (fixed > length || (length - fixed) % 4 != 0) {
        char what[96];
        snprintf(what, sizeof(what), "size in bytes of %u nodes and %u roots", r.node_count,
                 r.root_count);
        return rank_fault(c, what, fixed, "which does not fit its span of", length);
    }
    uint64_t successors = (length - fixed) / 4;
    if (count_names(c, &r, successors) != 0 || check_nodes(c, &r, successors) != 0) {
        return -1;
    }
    c->g->nodes += r.node_count;
    c->g->successors += successors;
    c->g->most_nodes = r.node_count > c->g->most_nodes ? r.node_count : c->g->most_nodes;
    return 0;
}

static int check_ranks(struct check *c)
{
    uint64_t start = GOAL_HEADER - 8 + GOAL_SPAN * (uint64_t)c->g->ranks;
    for (c->rank = 0; c->rank < c->g->ranks; c->rank++) {
        if (check_rank(c, start) != 0) {
            return -1;
        }
        start = c->g->spans[c->rank].end;
    }
    if (start != c->length) {
        return goal_fail(c->error, "%s: the last rank ends at byte %" PRIu64 " of %" PRIu64,
                         c->name, start + 8, c->length + 8);
    }
    if (c->g->cpus != c->highest_cpu + 1 || c->g->nics != c->highest_nic + 1) {
        return goal_fail(c->error,
                         "%s: the header says highest cpu %u and nic %u, the operations use %u "
                         "and %u",
                         c->name, c->g->cpus - 1, c->g->nics - 1, c->highest_cpu, c->highest_nic);
    }
    return 0;
}

int goal_check(struct goal *g, const uint8_t *image, uint64_t length, const char *name,
               struct goal_error *error)
{
    uint64_t cookie = 0;
    memcpy(&cookie, image, length < 8 ? length : 8);
    if (length < GOAL_HEADER || cookie != GOAL_COOKIE) {
        return goal_fail(error,
                         "%s: no binary schedule: %" PRIu64 " bytes, cookie %" PRIu64
                         " where %d should be",
                         name, length, cookie, GOAL_COOKIE);
    }
    g->base = image + 8;
    memcpy(&g->ranks, g->base, 4);
    g->cpus = g->base[4] + 1u;
    g->nics = g->base[5] + 1u;
    g->spans = (const struct goal_span *)(image + GOAL_HEADER);
    if (g->ranks == 0 || g->ranks == GOAL_ANY ||
        GOAL_SPAN * (uint64_t)g->ranks > length - GOAL_HEADER) {
        return goal_fail(error, "%s: %u ranks in a file of %" PRIu64 " bytes", name, g->ranks,
                         length);
    }
    struct check c = {.g = g, .length = length - 8, .name = name, .error = error};
    int rc = check_ranks(&c);
    free(c.named);
    g->sends = c.of_type[GOAL_SEND];
    g->recvs = c.of_type[GOAL_RECV];
    g->calcs = c.of_type[GOAL_CALC];
    for (unsigned type = GOAL_PUT; type < GOAL_TYPES; type++) {
        *(type < GOAL_OPERATIONS ? &g->portals : &g->parts) += c.of_type[type];
    }
    return rc;
}
