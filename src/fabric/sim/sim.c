/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated NIC as a fabric: a process that `pinwheel sim` has started has it as its home, and
 * no other one. Its time is virtual (rank.h), the way to other ranks is the coordinator's.
 */
#include "fabric/sim/sim.h"

#include "base/log.h"
#include "base/reason.h"
#include "fabric/sim/dma.h"
#include "fabric/sim/fail.h"
#include "fabric/sim/lead.h"
#include "fabric/sim/looks.h"
#include "fabric/sim/mark.h"
#include "fabric/sim/mates.h"
#include "fabric/sim/note.h"
#include "fabric/sim/packets.h"
#include "fabric/sim/places.h"
#include "fabric/sim/receive.h"
#include "fabric/sim/send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void sim_happened(void *fabric)
{
    struct sim_fabric *f = fabric;
    f->setup.up->happened(f->setup.nic);
}

static void sim_tally(void *fabric, struct sim_figures *figures)
{
    const struct sim_fabric *f = fabric;
    struct fabric_tally t;
    f->setup.up->tally(f->setup.nic, &t);
    figures->requests = t.requests;
    figures->dropped = t.dropped;
    figures->lost = t.lost;
    figures->lost_bytes = t.lost_bytes;
    figures->disabled = t.disabled;
    figures->buffers_most = f->buffers_most;
}

static void free_fabric(struct sim_fabric *f)
{
    free(f->dma_starts.time);
    sim_free_flows(f);
    free(f->stats);
    free(f);
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
    *pid = sim_free_pid(&(struct sim_fabric){.clock = clock}, setup->pid);
    if (*pid == 0) {
        return reason_say(why, -EADDRINUSE, "another process of the host has PID %u", setup->pid);
    }
    struct sim_fabric *f = calloc(1, sizeof(*f));
    size_t flows = (size_t)sim_places(clock->segment) * FABRIC_CLASSES;
    struct sim_flow *flow = calloc(flows, sizeof(*flow));
    uint8_t *stats = calloc(1, FABRIC_STATS);
    if (f == NULL || flow == NULL || stats == NULL) {
        free(f);
        free(flow);
        free(stats);
        return -ENOMEM;
    }
    f->clock = clock;
    f->setup = *setup;
    f->flow = flow;
    f->egress_at = SIM_NEVER;
    f->stats = stats;
    list_init(&f->peers);
    list_init(&f->departures);
    if (!fail_plan(f)) {
        sim_clock_forget(clock);
        free_fabric(f);
        return -ENOMEM;
    }
    clock->me->address = (struct sim_address){.opened = clock->now,
                                              .closed = SIM_NEVER,
                                              .incarnation = setup->incarnation,
                                              .life = clock->me->address.life + 1,
                                              .nid = setup->nid,
                                              .pid = *pid,
                                              .uid = geteuid()};
    clock->take = sim_take_packet;
    clock->happened = sim_happened;
    clock->tally = sim_tally;
    clock->freed = mates_freed;
    clock->taker = f;
    clock->lock = setup->up->take_lock, clock->unlock = setup->up->give_lock;
    clock->nic = setup->nic, clock->nic_size = setup->nic_size;
    *opened = (struct fabric *)f;
    return 0;
}

static void sim_close(struct fabric *fabric)
{
    struct sim_fabric *f = sim_of(fabric);
    sim_tally(f, &f->clock->figures);
    f->clock->me->address.closed = f->clock->now;
    f->clock->take = NULL;
    f->clock->happened = NULL;
    f->clock->tally = NULL;
    f->clock->freed = NULL;
    f->clock->taker = NULL;
    f->clock->nic = NULL;
    sim_clock_forget(f->clock);
    while (!list_empty(&f->peers)) {
        sim_end_peer(LIST_FIRST(struct sim_peer, &f->peers, link));
    }
    mates_leave(f->clock);
    free_fabric(f);
}

static bool sim_poll(struct fabric *fabric)
{
    struct sim_fabric *f = sim_of(fabric);
    struct sim_clock *c = f->clock;
    uint64_t start = c->now;
    bool looks = c->looks != 0;
    sim_clock_pass_look(c);
    bool moved = c->last > start || (looks && c->looks == 0);
    return sim_advance(f) || moved;
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
    return f->stats;
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
    bool forked =
        c != NULL && atomic_load(&c->shared->pid) != (uint32_t)getpid(); /* it is no rank */
    return c != NULL && !forked ? sim_nid_of(c) : 0;
}

static int64_t sim_process_ns(void)
{
    const struct sim_clock *c = sim_clock_join();
    return c != NULL ? (int64_t)((c->now + c->debt) / 1000) : 0;
}

/* The program looks at the time. */
static int64_t sim_process_ps(void)
{
    struct sim_clock *c = sim_clock_join();
    if (c == NULL) {
        return 0;
    }
    sim_clock_break(c);
    return (int64_t)(c->now + c->debt);
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

static void sim_waits_for(struct fabric *fabric, const struct fabric_waits *what)
{
    struct sim_fabric *f = sim_of(fabric);
    f->clock->me->waits_for = *what;
}

static void sim_settle_debt(struct fabric *fabric)
{
    struct sim_fabric *f = sim_of(fabric);
    sim_clock_settle(f->clock);
}

static void sim_changed(struct fabric *fabric)
{
    sim_clock_changed(sim_of(fabric)->clock);
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
        note_host(c, SIM_SPAN_COMPUTE, ps);
        c->debt += ps;
        sim_clock_break(c);
        sim_clock_settle(c);
    }
}

static void sim_pause(void)
{
    struct sim_clock *c = sim_clock_join();
    if (c != NULL && !c->passing) {
        sim_clock_look(c);
        sim_clock_pass_look(c);
    }
}

static void sim_begin_phase(const char *name)
{
    struct sim_clock *c = sim_clock_join();
    if (c != NULL) {
        sim_clock_break(c);
        sim_clock_settle(c);
        sim_mark(c, name);
    }
}

static void sim_hpus(struct fabric *fabric, struct fabric_hpus *hpus)
{
    struct sim_fabric *f = sim_of(fabric);
    const struct sim_machine *m = sim_machine(f->clock);
    *hpus = (struct fabric_hpus){.count = m->hpus,
                                 .clock_mhz = m->clock_mhz,
                                 .queue = m->hpu_queue,
                                 .messages = m->entry_messages,
                                 .native = m->handler,
                                 .look = m->look,
                                 .dma_latency = m->dma,
                                 .shared = f->clock->slots > 1,
                                 .profiled = f->clock->segment->profiled != 0};
}

static void sim_took(struct fabric *fabric, const struct fabric_took *t)
{
    struct sim_fabric *f = sim_of(fabric);
    note_handler(f, t);
    lead_ends(f, t);
}

static uint64_t *sim_spent(struct fabric *fabric, const struct fabric_place *p)
{
    return note_spent(sim_of(fabric)->clock, p);
}

static void sim_begins(struct fabric *fabric, const struct fabric_begins *b)
{
    lead_begins(sim_of(fabric), b);
}

static uint64_t sim_lead(struct fabric *fabric)
{
    return sim_of(fabric)->clock->lead;
}

static const struct fabric_time sim_time = {.nid = sim_nid,
                                            .clock = sim_process_ns,
                                            .clock_ps = sim_process_ps,
                                            .now = sim_now,
                                            .wait = sim_wait,
                                            .waits_for = sim_waits_for,
                                            .settle = sim_settle_debt,
                                            .changed = sim_changed,
                                            .at = sim_at,
                                            .fence = sim_fence,
                                            .compute = sim_compute,
                                            .hpus = sim_hpus,
                                            .took = sim_took,
                                            .spent = sim_spent,
                                            .begins = sim_begins,
                                            .hpu_take = mates_take_hpu,
                                            .hpu_give = mates_give_hpu,
                                            .hpu_wants = mates_want_hpus,
                                            .lead = sim_lead,
                                            .dma = sim_dma,
                                            .written = sim_dma_written,
                                            .room = sim_egress_room,
                                            .touch = sim_touch,
                                            .pause = sim_pause,
                                            .mark = sim_begin_phase};

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
