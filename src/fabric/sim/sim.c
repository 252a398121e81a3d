/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated NIC as a fabric: a process that `pinwheel sim` has started has it as its home, and
 * no other one. Its time is virtual (rank.h), the way to other ranks is the coordinator's.
 */
#include "fabric/sim/sim.h"

#include "base/log.h"
#include "base/reason.h"
#include "fabric/sim/note.h"
#include "fabric/sim/receive.h"
#include "fabric/sim/send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_PID = 1 };

static struct sim_rank *rank_of(const struct sim_fabric *f, uint32_t rank)
{
    return &f->clock->segment->rank[rank];
}

/* Rank i is at NID i + 1. */
static uint32_t nid_of(uint32_t rank)
{
    return rank + 1;
}

struct sim_peer *sim_peer_at(struct sim_fabric *f, uint32_t rank)
{
    LIST_EACH(struct sim_peer, known, &f->peers, link) {
        if (known->rank == rank) {
            return known;
        }
    }
    struct sim_peer *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return NULL;
    }
    const struct sim_rank *other = rank_of(f, rank);
    struct fabric_address a = {other->nic_nid, other->nic_pid, other->incarnation,
                               other->uid,     false,          &fabric_sim};
    p->fabric = f;
    p->rank = rank;
    sim_begin_source(f, p);
    list_push_back(&f->peers, &p->link);
    p->source.np = f->setup.up->peer_up(f->setup.nic, &a, (struct fabric_peer *)p);
    for (unsigned c = 0; p->source.np != NULL && c < FABRIC_CLASSES; c++) {
        p->channel[c].rx = f->setup.up->rx_new(p->source.np, (enum fabric_class)c);
    }
    if (p->source.np == NULL) {
        list_remove(&p->link);
        free(p);
        return NULL;
    }
    return p;
}

/* Whether a rank has a NIC, as far as this one can know: news travel with the packets. */
static bool is_open(const struct sim_fabric *f, const struct sim_rank *r)
{
    uint64_t known = f->clock->segment->lookahead, now = f->clock->now;
    return r == f->clock->me ||
           (__atomic_load_n(&r->opened, __ATOMIC_ACQUIRE) != SIM_NEVER &&
            r->opened + known <= now && (r->closed == SIM_NEVER || r->closed + known > now));
}

static enum fabric_connect sim_connect(struct fabric *fabric, uint32_t nid, uint32_t pid,
                                       struct reason *why)
{
    struct sim_fabric *f = sim_of(fabric);
    if (nid == 0 || nid > f->clock->segment->ranks) {
        return reason_say(why, FABRIC_NEVER,
                          "NID %u is none of the simulated job, whose ranks are at 1 to %u", nid,
                          f->clock->segment->ranks);
    }
    const struct sim_rank *r = rank_of(f, nid - 1);
    if (!is_open(f, r) || r->nic_pid != pid) {
        return FABRIC_LATER;
    }
    return sim_peer_at(f, nid - 1) != NULL ? FABRIC_UP : FABRIC_LATER;
}

static void sim_happened(void *fabric)
{
    struct sim_fabric *f = fabric;
    f->setup.up->happened(f->setup.nic);
}

static int sim_open(const struct fabric_setup *setup, struct fabric **opened, uint32_t *pid,
                    struct reason *why)
{
    struct sim_clock *clock = sim_clock_join();
    if (clock == NULL || clock->taker != NULL) {
        return reason_say(
            why, -EADDRINUSE,
            "a rank of a simulated job has one NIC, and this one has it already: close "
            "it first");
    }
    if (setup->packet_size > clock->segment->packet) {
        return reason_say(
            why, -EINVAL,
            "PINWHEEL_PACKET_SIZE=%zu is longer than a packet of the simulated network, "
            "%u: unset it, or set it to less",
            setup->packet_size, clock->segment->packet);
    }
    struct sim_fabric *f = calloc(1, sizeof(*f));
    size_t channels = (size_t)clock->segment->ranks * FABRIC_CLASSES;
    uint64_t *ready = calloc(channels, sizeof(*ready));
    struct sim_taking *taking = calloc(channels, sizeof(*taking));
    if (f == NULL || ready == NULL || taking == NULL) {
        free(f);
        free(ready);
        free(taking);
        return -ENOMEM;
    }
    f->clock = clock;
    f->setup = *setup;
    f->ready = ready;
    f->taking = taking;
    list_init(&f->peers);
    list_init(&f->departures);
    struct sim_rank *me = clock->me;
    if (me->nic_nid != 0) {
        memset(me->nic, 0, sizeof(me->nic)); /* it had another NIC before */
    }
    *pid = setup->pid != 0 ? setup->pid : FIRST_PID;
    me->nic_nid = setup->nid;
    me->nic_pid = *pid;
    me->uid = geteuid();
    me->incarnation = setup->incarnation;
    me->closed = SIM_NEVER;
    __atomic_store_n(&me->opened, clock->now, __ATOMIC_RELEASE);
    clock->take = sim_take_packet;
    clock->happened = sim_happened;
    clock->taker = f;
    *opened = (struct fabric *)f;
    return 0;
}

static void sim_close(struct fabric *fabric)
{
    struct sim_fabric *f = sim_of(fabric);
    f->clock->me->closed = f->clock->now;
    f->clock->take = NULL;
    f->clock->happened = NULL;
    f->clock->taker = NULL;
    sim_clock_forget(f->clock);
    while (!list_empty(&f->peers)) {
        sim_end_peer(LIST_FIRST(struct sim_peer, &f->peers, link));
    }
    free(f->dma_starts.time);
    free(f->ready);
    free(f->taking);
    free(f);
}

static bool sim_poll(struct fabric *fabric)
{
    struct sim_fabric *f = sim_of(fabric);
    if (f->clock->skips) {
        sim_clock_skip(f->clock);
    }
    sim_clock_settle(f->clock);
    return sim_advance(f);
}

/* A look at nothing takes time, and so may find something. */
static bool sim_peek(struct fabric *fabric)
{
    struct sim_fabric *f = sim_of(fabric);
    sim_clock_look(f->clock);
    return true;
}

static void sim_foresee(struct fabric *fabric)
{
}

static bool sim_arm(struct fabric *fabric, enum doorbell_kind kind, uint32_t *word)
{
    return false; /* nobody sleeps but in time.pass() */
}

static void sim_disarm(struct fabric *fabric, bool polled)
{
}

static int64_t sim_next_deadline(struct fabric *fabric)
{
    return -1;
}

static void sim_info(const struct options *o, struct fabric_info *info)
{
    *info = (struct fabric_info){.inline_max = 0, .max_peers = SIM_RANKS_MOST};
}

/* ---- what only a home has ---- */

static _Atomic uint32_t *sim_doorbell(struct fabric *fabric)
{
    struct sim_fabric *f = sim_of(fabric);
    return &f->doorbell;
}

static void *sim_stats(struct fabric *fabric)
{
    struct sim_fabric *f = sim_of(fabric);
    return f->clock->me->nic;
}

static bool sim_flows(struct fabric *fabric)
{
    return false;
}

static void sim_waits_on(struct fabric *fabric, int core, int64_t now, cpu_set_t *others)
{
}

/* ---- virtual time ---- */

static uint32_t sim_nid(void)
{
    const struct sim_clock *c = sim_clock_join();
    if (c == NULL && getenv(SIM_VARIABLE) == NULL) {
        log_line(LOG_ERROR, "PINWHEEL_FABRIC=sim is for programs that `pinwheel sim` has started: "
                            "unset it, or run `pinwheel sim -n N PROGRAM`");
    }
    bool forked = c != NULL && atomic_load(&c->me->pid) != (uint32_t)getpid(); /* it is no rank */
    return c != NULL && !forked ? nid_of(c->rank) : 0;
}

static int64_t sim_process_ps(void)
{
    const struct sim_clock *c = sim_clock_join();
    return c != NULL ? (int64_t)(c->now + c->debt) : 0;
}

static int64_t sim_process_ns(void)
{
    return sim_process_ps() / 1000;
}

static uint64_t sim_now(struct fabric *fabric)
{
    struct sim_fabric *f = sim_of(fabric);
    return f->clock->now + f->clock->debt;
}

static void sim_wait(struct fabric *fabric, int64_t until)
{
    struct sim_fabric *f = sim_of(fabric);
    sim_clock_pass(f->clock, until < 0 ? SIM_NEVER : (uint64_t)until * 1000, SIM_WAITS);
}

static void sim_settle_debt(struct fabric *fabric)
{
    struct sim_fabric *f = sim_of(fabric);
    sim_clock_settle(f->clock);
}

static bool sim_at(struct fabric *fabric, uint64_t time, void (*happen)(void *), void *arg,
                   bool owned)
{
    struct sim_fabric *f = sim_of(fabric);
    return sim_clock_at(f->clock, time, happen, arg, owned);
}

static void sim_fence(void)
{
    struct sim_clock *c = sim_clock_join();
    if (c != NULL) {
        sim_clock_fence(c);
    }
}

static void sim_compute(uint64_t ps)
{
    struct sim_clock *c = sim_clock_join();
    if (c != NULL) {
        c->debt += ps;
        sim_clock_settle(c);
    }
}

static void sim_hpus(struct fabric *fabric, struct fabric_hpus *hpus)
{
    struct sim_fabric *f = sim_of(fabric);
    const struct sim_machine *m = sim_machine(f->clock);
    *hpus = (struct fabric_hpus){m->hpus, m->clock_mhz, m->handler, m->look};
}

static void sim_took(struct fabric *fabric, const struct fabric_took *t)
{
    note_handler(sim_of(fabric), t);
}

static const struct fabric_time sim_time = {.nid = sim_nid,
                                            .clock = sim_process_ns,
                                            .clock_ps = sim_process_ps,
                                            .now = sim_now,
                                            .wait = sim_wait,
                                            .settle = sim_settle_debt,
                                            .at = sim_at,
                                            .fence = sim_fence,
                                            .compute = sim_compute,
                                            .hpus = sim_hpus,
                                            .took = sim_took};

static const struct fabric_home sim_home = {.doorbell = sim_doorbell,
                                            .stats = sim_stats,
                                            .flows = sim_flows,
                                            .waits_on = sim_waits_on,
                                            .time = &sim_time};

const struct fabric_ops fabric_sim = {.name = "sim",
                                      .open = sim_open,
                                      .close = sim_close,
                                      .connect = sim_connect,
                                      .send = sim_send,
                                      .send_short = sim_send_short,
                                      .unsent = sim_unsent,
                                      .poll = sim_poll,
                                      .peek = sim_peek,
                                      .foresee = sim_foresee,
                                      .arm = sim_arm,
                                      .disarm = sim_disarm,
                                      .next_deadline = sim_next_deadline,
                                      .info = sim_info,
                                      .home = &sim_home};
