/* SPDX-License-Identifier: BSD-3-Clause */
/* The spans of all ranks, in order, and which packet is which. */
#include "spans.h"

#include "shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many spans a rank has noted. */
static size_t noted(struct coordinator *c, uint32_t rank, struct sim_figures *f)
{
    shared_figures(c, rank, f);
    return f->spans < c->layout.spans ? f->spans : c->layout.spans;
}

static int by_begin(const void *a, const void *b)
{
    const struct rank_span *x = a, *y = b;
    if (x->is.begin != y->is.begin) {
        return x->is.begin < y->is.begin ? -1 : 1;
    }
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

static void read_rank(struct coordinator *c, struct sim_spans *s, uint32_t rank, size_t room)
{
    const struct sim_span *from = spans_of(c, rank);
    struct sim_handler *names = s->handlers[rank];
    struct sim_figures f;
    uint64_t sum = 0;
    size_t count = noted(c, rank, &f);
    count = count < room ? count : room;
    memcpy(names, f.counts.handler, sizeof(s->handlers[rank]));
    for (size_t i = 0; i < count; i++) {
        struct rank_span *to = &s->span[s->count];
        *to = (struct rank_span){.rank = rank, .order = s->count++};
        memcpy(&to->is, &from[i], sizeof(to->is));
        sum = sim_sum_span(sum, &to->is);
        to->handler =
            to->is.what == SIM_SPAN_HANDLER ? names[to->is.message % SIM_HANDLERS].name : NULL;
        s->end = to->is.end > s->end ? to->is.end : s->end;
    }
    s->missed += f.spans_missed;
    shared_check_spans(c, rank, sum == f.spans_sum);
}

/* Of packets that left: the order in which they are looked for. */
static int by_packet(const void *a, const void *b)
{
    const struct rank_span *x = *(struct rank_span *const *)a, *y = *(struct rank_span *const *)b;
    const uint64_t keys[][2] = {{x->rank, y->rank},
                                {x->is.message, y->is.message},
                                {x->is.offset, y->is.offset},
                                {x->is.peer, y->is.peer}};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (keys[i][0] != keys[i][1]) {
            return keys[i][0] < keys[i][1] ? -1 : 1;
        }
    }
    return 0;
}

struct sim_spans *spans_take(struct coordinator *c)
{
    struct sim_figures f;
    size_t count = 0;
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        count += noted(c, i, &f);
    }
    struct sim_spans *s = calloc(1, sizeof(*s) + count * sizeof(s->span[0]));
    if (s == NULL) {
        return NULL;
    }
    s->ranks = c->setup.ranks;
    s->hpus = c->setup.machine.hpus;
    s->handlers = calloc(s->ranks, sizeof(*s->handlers));
    if (s->handlers == NULL) {
        free(s);
        return NULL;
    }
    for (uint32_t i = 0; i < s->ranks; i++) {
        read_rank(c, s, i, count - s->count);
    }
    for (uint32_t i = c->setup.ranks; i < places(c); i++) {
        shared_figures(c, i, &f);
        s->missed += f.spans_missed;
    }
    qsort(s->span, s->count, sizeof(s->span[0]), by_begin);
    s->sent = malloc((count + 1) * sizeof(*s->sent));
    for (size_t i = 0; s->sent != NULL && i < s->count; i++) {
        if (s->span[i].is.what == SIM_SPAN_OUT) {
            s->sent[s->sent_count++] = &s->span[i];
        }
    }
    qsort(s->sent, s->sent_count, sizeof(*s->sent), by_packet);
    return s;
}

void spans_free(struct sim_spans *s)
{
    if (s != NULL) {
        free(s->handlers);
        free(s->sent);
        free(s);
    }
}

unsigned spans_lane(const struct sim_span *s)
{
    static const unsigned lanes[] = {
        [SIM_SPAN_CALL] = LANE_HOST, [SIM_SPAN_COMPUTE] = LANE_HOST, [SIM_SPAN_OUT] = LANE_OUT,
        [SIM_SPAN_IN] = LANE_IN,     [SIM_SPAN_DEPOSIT] = LANE_DMA,  [SIM_SPAN_HANDLER] = LANE_HPU};
    unsigned what = s->what < SIM_SPANS ? s->what : SIM_SPAN_CALL;
    return lanes[what] + (what == SIM_SPAN_HANDLER ? s->hpu % SIM_HPUS : 0);
}

const char *spans_what(const struct rank_span *s)
{
    static const char *const names[] = {
        [SIM_SPAN_CALL] = "call", [SIM_SPAN_COMPUTE] = "compute", [SIM_SPAN_OUT] = "packet out",
        [SIM_SPAN_IN] = "match",  [SIM_SPAN_DEPOSIT] = "deposit", [SIM_SPAN_HANDLER] = "handler"};
    bool named = s->handler != NULL && s->handler[0] != '\0';
    return named ? s->handler : names[s->is.what < SIM_SPANS ? s->is.what : SIM_SPAN_CALL];
}

void spans_lane_name(unsigned lane, char *text, size_t size)
{
    static const char *const names[] = {
        [LANE_HOST] = "CPU", [LANE_OUT] = "NIC out", [LANE_IN] = "NIC in", [LANE_DMA] = "DMA"};
    if (lane < LANE_HPU) {
        snprintf(text, size, "%s", names[lane]);
    } else {
        snprintf(text, size, "HPU %u", lane - LANE_HPU);
    }
}

const struct rank_span *spans_sent(const struct sim_spans *s, const struct rank_span *in)
{
    struct rank_span wanted = {.rank = in->is.peer, .is = in->is};
    const struct rank_span *key = &wanted;
    wanted.is.peer = in->rank;
    struct rank_span **found =
        s->sent_count != 0 ? bsearch(&key, s->sent, s->sent_count, sizeof(*s->sent), by_packet)
                           : NULL;
    return found != NULL ? *found : NULL;
}
