/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank notes of its NIC for the reports of `pinwheel sim`, in memory that outlives it. */
#include "fabric/sim/note.h"

#include "base/array.h"

#include <stdio.h>
#include <string.h>

static struct sim_counts *counts(const struct sim_fabric *f)
{
    return &f->clock->figures.counts;
}

/* Counts one who has waited, or will have, beside so many others. */
static void waited(struct sim_queue *q, uint64_t ps, uint64_t waiting)
{
    q->waited += ps;
    q->most = waiting > q->most ? waiting : q->most;
}

/* ---- spans ---- */

static void note(struct sim_clock *c, const struct sim_span *s)
{
    const struct sim_segment *segment = c->segment;
    struct sim_figures *f = &c->figures;
    if (f->spans == segment->spans || c->rank >= segment->ranks) { /* a child's are left out */
        f->spans_missed += segment->spans != 0;
        return;
    }
    struct sim_span *to = &sim_spans_of(segment, c->rank)[f->spans++];
    memcpy(to, s, sizeof(*s));
    f->spans_sum = sim_sum_span(f->spans_sum, s);
}

void note_host(struct sim_clock *c, enum sim_span_what what, uint64_t ps)
{
    uint64_t begin = c->now + c->debt;
    c->figures.counts.host += ps;
    c->running->busy = begin + ps;
    note(c, &(struct sim_span){.begin = begin, .end = begin + ps, .what = what});
}

void note_phase(struct sim_clock *c, uint32_t phase, uint64_t began)
{
    note(c, &(struct sim_span){
                .begin = began, .end = c->now, .message = phase, .what = SIM_SPAN_PHASE});
}

void note_packet_out(struct sim_fabric *f, const struct sim_packet *p, uint64_t taken)
{
    note(f->clock, &(struct sim_span){.begin = p->time,
                                      .end = p->time + taken,
                                      .message = p->message,
                                      .offset = p->offset,
                                      .peer = p->to,
                                      .bytes = p->bytes,
                                      .what = SIM_SPAN_OUT});
}

void note_packet_in(struct sim_fabric *f, const struct sim_packet *p, uint64_t ready)
{
    note(f->clock, &(struct sim_span){.begin = p->time,
                                      .end = ready,
                                      .message = p->message,
                                      .offset = p->offset,
                                      .peer = p->from,
                                      .bytes = p->bytes,
                                      .what = SIM_SPAN_IN});
}

/* ---- the egress port ---- */

void note_waits(struct sim_fabric *f)
{
    f->waiting++;
    waited(&counts(f)->egress_queue, 0, f->waiting);
}

void note_begun(struct sim_fabric *f, uint64_t ready)
{
    f->waiting--;
    waited(&counts(f)->egress_queue, f->clock->now - ready, 0);
}

/* ---- the DMA engine ---- */

/* Forgets those that have begun, and adds one; returns how many wait then. Short of memory it
 * counts fewer. */
static size_t add_start(struct sim_starts *s, uint64_t now, uint64_t start)
{
    while (s->count != 0 && s->time[s->first] <= now) {
        s->first++;
        s->count--;
    }
    if (s->first != 0 && s->first >= s->count) {
        memmove(s->time, s->time + s->first, s->count * sizeof(*s->time));
        s->first = 0;
    }
    size_t end = s->first + s->count;
    if (start > now && ARRAY_ROOM(s->time, end, s->capacity, 64)) {
        s->time[end] = start;
        s->count++;
    }
    return s->count;
}

void note_transfer(struct sim_fabric *f, uint64_t start, uint64_t taken, uint64_t bytes)
{
    uint64_t now = f->clock->now;
    counts(f)->dma += taken;
    waited(&counts(f)->dma_queue, start - now, add_start(&f->dma_starts, now, start));
    note(f->clock, &(struct sim_span){.begin = start,
                                      .end = start + taken,
                                      .bytes = (uint32_t)bytes,
                                      .what = SIM_SPAN_DEPOSIT});
}

/* ---- HPUs ---- */

/* The place of a handler, which it gets with its first call. */
static struct sim_handler *handler_of(struct sim_counts *c, const struct fabric_took *t)
{
    unsigned i = 0;
    while (i < SIM_HANDLERS - 1 && c->handler[i].function != t->handler &&
           c->handler[i].function != 0) {
        i++;
    }
    struct sim_handler *h = &c->handler[i];
    if (h->function == 0) {
        bool last = i == SIM_HANDLERS - 1;
        h->function = last ? 1 : t->handler;
        if (last) {
            memcpy(h->name, "(others)", sizeof("(others)"));
        } else {
            t->name(t->handler, h->name, sizeof(h->name));
        }
    }
    return h;
}

void note_handler(struct sim_fabric *f, const struct fabric_took *t)
{
    struct sim_counts *c = counts(f);
    struct sim_handler *h = handler_of(c, t);
    c->hpu[t->hpu % SIM_HPUS] += t->ps;
    c->shortage += t->shortage;
    h->taken += t->ps;
    note(f->clock, &(struct sim_span){.begin = t->begin,
                                      .end = t->begin + t->ps,
                                      .message = (uint64_t)(h - c->handler),
                                      .what = SIM_SPAN_HANDLER,
                                      .hpu = (uint16_t)t->hpu});
    if (t->begins) {
        c->handlers++;
        h->calls++;
        h->waited += t->waited;
        h->wait = t->waited > h->wait ? t->waited : h->wait;
        waited(&c->hpu_queue, t->waited, t->waited != 0 ? t->waiting : 0);
    }
}

uint64_t *note_spent(struct sim_clock *c, const struct fabric_place *p)
{
    struct sim_spent *rows = sim_spent_of(c->segment, sim_host(c->segment, c->rank));
    struct sim_spent is = {.line = p->file != NULL ? (uint32_t)p->line : 0, .used = 1};
    snprintf(is.handler, sizeof(is.handler), "%s", p->handler);
    snprintf(is.function, sizeof(is.function), "%s", p->function);
    snprintf(is.file, sizeof(is.file), "%s", p->file != NULL ? p->file : "");
    unsigned i = 0;
    while (i < SIM_SPENT - 1 && rows[i].used != 0 && !sim_spent_same(&rows[i], &is)) {
        i++;
    }
    if (i == SIM_SPENT - 1) {
        is = (struct sim_spent){.handler = "(others)", .used = 1};
    }
    if (rows[i].used == 0) {
        rows[i] = is;
    }
    return &rows[i].cycles;
}
