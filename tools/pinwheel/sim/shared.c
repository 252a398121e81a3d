/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks share with the coordinator, which may be anything: a program that writes where it must
 * not may write there. Invariants:
 *   - Each word is read once, into memory of the coordinator's own, and looked at only there.
 *   - Nothing is believed that is not sealed, and of the turn that has just ended; but for words of
 *     which each value is harmless, or is looked at.
 *   - Numbers are in their bounds, and times go on, even if a seal is right.
 */
#include "shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNAL_MOST = 64 };

void shared_spoil(struct coordinator *c, uint32_t place, const char *what)
{
    if (!c->spoiled) {
        c->spoiled = true;
        fprintf(stderr,
                "pinwheel sim: rank %u%s has written over the memory that it shares with pinwheel "
                "sim: %s; the run stops\n",
                sim_host(&c->layout, place), place < c->setup.ranks ? "" : "'s child", what);
    }
}

/* ---- records ---- */

/* What makes no sense of a record that follows another one; NULL: nothing. */
static const char *nonsense(const struct sim_record *r, const struct sim_record *before)
{
    bool later = r->now >= before->now && r->stirred <= r->now && r->silence <= r->now;
    if (r->seal != sim_seal(r)) {
        return "its record";
    }
    if (r->serial != before->serial) {
        return "its turn";
    }
    return !later                         ? "its time"
           : r->out_count > SIM_PACKETS   ? "its packets"
           : r->waits >= SIM_REASONS      ? "what it waits for"
           : r->outside > SIM_FOR_ANYBODY ? "whom it waits for"
                                          : NULL;
}

/* Has others know where the NIC of a place is. */
static void publish(struct coordinator *c, uint32_t place)
{
    struct sim_address *to = &c->segment->address[place];
    const struct sim_address *from = &rank_of(c, place)->address;
    if (memcmp(to, from, sizeof(*to)) != 0) {
        memcpy(to, from, sizeof(*to));
    }
}

static void adopt(struct coordinator *c, uint32_t place, const struct sim_record *r)
{
    struct sim_record *to = rank_of(c, place);
    memcpy(to, r, sizeof(*to));
    to->outside_of[sizeof(to->outside_of) - 1] = '\0';
    c->players[place].known = true;
    publish(c, place);
}

void shared_take(struct coordinator *c, uint32_t place)
{
    struct sim_record r;
    memcpy(&r, &shared_of(c, place)->record, sizeof(r));
    const char *what = nonsense(&r, rank_of(c, place));
    if (what != NULL) {
        shared_spoil(c, place, what);
    } else {
        adopt(c, place, &r);
    }
}

void shared_take_last(struct coordinator *c, uint32_t place)
{
    struct sim_record r;
    memcpy(&r, &shared_of(c, place)->record, sizeof(r));
    if (nonsense(&r, rank_of(c, place)) == NULL && shared_left(c, place)) {
        adopt(c, place, &r);
    } else {
        c->players[place].torn = true;
    }
}

void shared_take_new(struct coordinator *c, uint32_t place)
{
    struct sim_record r, *to = rank_of(c, place);
    memcpy(&r, &shared_of(c, place)->record, sizeof(r));
    to->serial = c->players[place].known ? to->serial : 0;
    to->now = 0;
    const char *what = nonsense(&r, to);
    if (what != NULL) {
        shared_spoil(c, place, what);
        return;
    }
    adopt(c, place, &r);
    c->players[place].torn = false;
    c->players[place].process = 0;
    c->players[place].floor = 0;
    if (c->used <= place) {
        c->used = place + 1;
        atomic_store(&c->segment->used, c->used);
    }
}

void shared_give(struct coordinator *c, uint32_t place)
{
    struct sim_record *r = rank_of(c, place);
    r->serial++;
    r->out_count = 0;
    r->out_sum = 0;
    r->seal = sim_seal(r);
    memcpy(&shared_of(c, place)->record, r, sizeof(*r));
}

void shared_free(struct coordinator *c, uint32_t place)
{
    struct sim_rank *s = shared_of(c, place);
    struct sim_record *r = rank_of(c, place);
    if (c->players[place].torn) {
        struct sim_figures f;
        shared_figures(c, place, &f);
        r->figures_sum = sim_sum_figures(&f);
    }
    r->seal = sim_seal(r);
    memcpy(&s->record, r, sizeof(*r));
    c->players[place].process = 0;
    atomic_store(&s->pid, 0);
    atomic_store(&s->left, 0);
    atomic_store(&s->taken, 0);
}

void shared_close(struct coordinator *c, uint32_t place, uint64_t time)
{
    struct sim_address *a = &rank_of(c, place)->address;
    a->closed = a->closed < time ? a->closed : time;
    publish(c, place);
}

/* ---- words ---- */

uint32_t shared_process(struct coordinator *c, uint32_t place)
{
    struct player *p = &c->players[place];
    uint32_t pid = atomic_load(&shared_of(c, place)->pid);
    if (p->process == 0) {
        p->process = pid;
    } else if (p->process != pid) {
        shared_spoil(c, place, "its process number");
    }
    return p->process;
}

bool shared_left(struct coordinator *c, uint32_t place)
{
    uint32_t left = atomic_load(&shared_of(c, place)->left);
    if (left != 0 && left != SIM_LEFT) {
        shared_spoil(c, place, "its end");
    }
    return left == SIM_LEFT;
}

bool shared_stopped(struct coordinator *c, uint32_t place)
{
    uint32_t stopped = atomic_load(&shared_of(c, place)->stopped);
    if (stopped > 1) {
        shared_spoil(c, place, "whether it is stopped");
    }
    return stopped == 1;
}

bool shared_signal(struct coordinator *c, uint32_t place)
{
    uint32_t signal = atomic_load(&shared_of(c, place)->signal);
    if (signal > SIGNAL_MOST) {
        shared_spoil(c, place, "a signal");
    }
    return signal != 0;
}

/* ---- packets ---- */

static bool makes_sense(const struct coordinator *c, const struct sim_packet *p, uint32_t place)
{
    const struct sim_record *r = rank_of(c, place);
    return p->to < places(c) && p->kind == SIM_DATA && p->class < FABRIC_CLASSES &&
           p->bytes <= c->layout.packet && p->offset <= p->total &&
           p->bytes <= p->total - p->offset && p->time <= r->now &&
           p->time >= c->players[place].floor;
}

struct sim_packet *shared_packet(struct coordinator *c, uint32_t place, uint32_t i, uint64_t *sum)
{
    const struct sim_packet *from = &shared_of(c, place)->out[i];
    struct sim_packet head;
    memcpy(&head, from, offsetof(struct sim_packet, data));
    if (!makes_sense(c, &head, place)) {
        shared_spoil(c, place, "a packet that it sends");
        return NULL;
    }
    struct sim_packet *p = malloc(offsetof(struct sim_packet, data) + head.bytes);
    if (p == NULL) {
        c->memory_short = true;
        return NULL;
    }
    memcpy(p, &head, offsetof(struct sim_packet, data));
    memcpy(p->data, from->data, head.bytes);
    *sum = sim_sum_packet(*sum, p);
    c->players[place].floor = p->time;
    p->from = place;
    return p;
}

/* ---- figures ---- */

void shared_figures(struct coordinator *c, uint32_t place, struct sim_figures *f)
{
    const struct player *p = &c->players[place];
    memset(f, 0, sizeof(*f));
    if (!p->known || rank_of(c, place)->figures_sum == 0) {
        return; /* it has shown none */
    }
    memcpy(f, &shared_of(c, place)->figures, sizeof(*f));
    if (!p->torn && sim_sum_figures(f) != rank_of(c, place)->figures_sum) {
        shared_spoil(c, place, "what it has counted");
        c->result.failed = true;
    }
    for (unsigned i = 0; i < SIM_HANDLERS; i++) {
        f->counts.handler[i].name[SIM_NAME - 1] = '\0';
    }
}

void shared_check_spans(struct coordinator *c, uint32_t place, bool same)
{
    if (!same && !c->players[place].torn) {
        shared_spoil(c, place, "the spans that it has noted");
        c->result.failed = true;
    }
}
