/* SPDX-License-Identifier: BSD-3-Clause */
/* The spans of all ranks, in order, and which packet is which. */
#include "spans.h"

#include "shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many spans a rank has noted. The phase that is open in the end is one more. */
static size_t noted(struct coordinator *c, uint32_t rank, struct sim_figures *f)
{
    shared_figures(c, rank, f);
    return f->spans < c->layout.spans ? f->spans : c->layout.spans;
}

static void add_span(struct sim_spans *s, uint32_t rank, const struct sim_span *is)
{
    char(*names)[SIM_NAME] = s->names[rank];
    struct rank_span *to = &s->span[s->count];
    *to = (struct rank_span){.rank = rank, .order = s->count++, .is = *is};
    if (is->what == SIM_SPAN_HANDLER) {
        to->name = names[is->message % SIM_HANDLERS];
    } else if (is->what == SIM_SPAN_PHASE) {
        to->name = names[SIM_HANDLERS + is->message % SIM_PHASES];
        s->phases = true;
    }
    s->end = is->end > s->end ? is->end : s->end;
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
    char(*names)[SIM_NAME] = s->names[rank];
    struct sim_figures f;
    uint64_t sum = 0;
    size_t count = noted(c, rank, &f);
    count = count < room ? count : room;
    for (unsigned i = 0; i < SIM_HANDLERS; i++) {
        memcpy(names[i], f.counts.handler[i].name, SIM_NAME);
    }
    for (unsigned i = 0; i < SIM_PHASES; i++) {
        memcpy(names[SIM_HANDLERS + i], f.phase[i].name, SIM_NAME);
    }
    for (size_t i = 0; i < count; i++) {
        struct sim_span is;
        memcpy(&is, &from[i], sizeof(is));
        sum = sim_sum_span(sum, &is);
        add_span(s, rank, &is);
    }
    if (f.phase_open != 0 && rank_of(c, rank)->now >= f.phase_began.time) {
        add_span(s, rank,
                 &(struct sim_span){.begin = f.phase_began.time,
                                    .end = rank_of(c, rank)->now,
                                    .message = f.phase_open - 1,
                                    .what = SIM_SPAN_PHASE});
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
        count += noted(c, i, &f) + 1;
    }
    struct sim_spans *s = calloc(1, sizeof(*s) + count * sizeof(s->span[0]));
    if (s == NULL) {
        return NULL;
    }
    s->ranks = c->setup.ranks;
    s->hpus = c->setup.machine.hpus;
    s->names = calloc(s->ranks, sizeof(*s->names));
    if (s->names == NULL) {
        free(s);
        return NULL;
    }
    for (uint32_t i = 0; i < s->ranks; i++) {
        read_rank(c, s, i, count - s->count - (s->ranks - i));
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
        free(s->names);
        free(s->sent);
        free(s);
    }
}

unsigned spans_lane(const struct sim_span *s)
{
    static const unsigned lanes[] = {
        [SIM_SPAN_CALL] = LANE_HOST,  [SIM_SPAN_COMPUTE] = LANE_HOST, [SIM_SPAN_OUT] = LANE_OUT,
        [SIM_SPAN_IN] = LANE_IN,      [SIM_SPAN_DEPOSIT] = LANE_DMA,  [SIM_SPAN_HANDLER] = LANE_HPU,
        [SIM_SPAN_PHASE] = LANE_PHASE};
    unsigned what = s->what < SIM_SPANS ? s->what : SIM_SPAN_CALL;
    return lanes[what] + (what == SIM_SPAN_HANDLER ? s->hpu % SIM_HPUS : 0);
}

const char *spans_what(const struct rank_span *s)
{
    static const char *const names[] = {
        [SIM_SPAN_CALL] = "call",  [SIM_SPAN_COMPUTE] = "compute", [SIM_SPAN_OUT] = "packet out",
        [SIM_SPAN_IN] = "match",   [SIM_SPAN_DEPOSIT] = "deposit", [SIM_SPAN_HANDLER] = "handler",
        [SIM_SPAN_PHASE] = "phase"};
    bool named = s->name != NULL && s->name[0] != '\0';
    return named ? s->name : names[s->is.what < SIM_SPANS ? s->is.what : SIM_SPAN_CALL];
}

void spans_lane_name(unsigned lane, char *text, size_t size)
{
    static const char *const names[] = {[LANE_PHASE] = "phase",
                                        [LANE_HOST] = "CPU",
                                        [LANE_OUT] = "NIC out",
                                        [LANE_IN] = "NIC in",
                                        [LANE_DMA] = "DMA"};
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
