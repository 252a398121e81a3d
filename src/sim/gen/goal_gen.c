/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of all generators: they add operations, and write the schedule to a file; see
 * goal_gen.h. */
#include "goal_gen.h"

#include "sim/goal/print.h"
#include "sim/util/random.h"

#include <inttypes.h>

const struct goal_pattern *goal_pattern_find(const char *name)
{
    for (int i = 0; i < goal_pattern_count; i++) {
        if (strcmp(goal_patterns[i].name, name) == 0) {
            return &goal_patterns[i];
        }
    }
    return NULL;
}

/* ---- Operations ---- */

static uint32_t wait_for(struct goal_maker *m, uint32_t node, uint32_t after)
{
    if (after != GOAL_NONE) {
        goal_requires(m->builder, node, after);
    }
    return node;
}

static uint32_t member(const struct goal_maker *m, uint32_t rank)
{
    if (m->members != NULL) {
        return m->members[rank] + m->shift;
    }
    return rank * (m->stride != 0 ? m->stride : 1) + m->shift;
}

struct goal_sent goal_make_send(struct goal_maker *m, uint32_t to, uint64_t size, uint32_t tag,
                                uint32_t after)
{
    const struct goal_config *c = m->config;
    struct goal_sent s = {.first = GOAL_NONE};
    if (c->random_calc > 0) {
        uint64_t bits = goal_random(c->seed ^ goal_mix(member(m, m->rank)), m->draws++);
        s.first = after = goal_make_calc(m, goal_scale(bits, c->random_calc), after);
    }
    uint32_t peer = member(m, to);
    s.send =
        wait_for(m, goal_add(m->builder, GOAL_SEND, size, peer, m->tag + tag, m->cpu, 0), after);
    s.first = s.first != GOAL_NONE ? s.first : s.send;
    return s;
}

uint32_t goal_make_recv(struct goal_maker *m, uint32_t from, uint64_t size, uint32_t tag,
                        uint32_t after)
{
    uint32_t peer = from != GOAL_ANY ? member(m, from) : GOAL_ANY;
    return wait_for(m, goal_add(m->builder, GOAL_RECV, size, peer, m->tag + tag, m->cpu, 0), after);
}

uint32_t goal_make_calc(struct goal_maker *m, uint64_t time, uint32_t after)
{
    return wait_for(m, goal_add(m->builder, GOAL_CALC, time, 0, 0, m->cpu, 0), after);
}

/* ---- Files ---- */

static void make_rank(const struct goal_pattern *p, const struct goal_config *c,
                      struct goal_builder *b, uint32_t rank)
{
    struct goal_maker m = {.config = c, .builder = b, .rank = rank};
    p->make(&m);
}

int goal_generate(const struct goal_pattern *p, const struct goal_config *c, int fd,
                  struct goal_error *error)
{
    struct goal_writer writer;
    struct goal_builder builder = {0};
    struct goal_error ignored;
    if (goal_writer_open(&writer, fd, c->ranks, error) != 0) {
        return -1;
    }
    int rc = 0;
    for (uint32_t rank = 0; rank < c->ranks && rc == 0; rank++) {
        make_rank(p, c, &builder, rank);
        rc = goal_writer_rank(&writer, &builder, error);
    }
    if (goal_writer_close(&writer, rc == 0 ? error : &ignored) != 0) {
        rc = -1;
    }
    goal_builder_free(&builder);
    return rc;
}

int goal_generate_text(const struct goal_pattern *p, const struct goal_config *c,
                       struct goal_stream *out, struct goal_error *error)
{
    struct goal_printer printer = {.out = out};
    struct goal_builder builder = {0};
    struct goal_rank r;
    int rc = 0;
    goal_print_head(&printer, c->ranks);
    for (uint32_t rank = 0; rank < c->ranks && rc == 0 && out->failed == 0; rank++) {
        make_rank(p, c, &builder, rank);
        if (goal_lay_out(&builder, &r) != 0 ||
            goal_print_rank(&printer, rank, &r, builder.done.count + builder.start.count) != 0) {
            rc = goal_fail(error, "rank %u does not fit memory: %" PRIu64 " operations", rank,
                           builder.count);
        }
        goal_builder_clear(&builder);
    }
    goal_builder_free(&builder);
    goal_printer_free(&printer);
    return rc;
}
