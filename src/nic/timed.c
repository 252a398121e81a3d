/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC in virtual time. It has no thread: its program's threads move it, whenever they let time
 * pass, and its HPUs are events (hpu/sched_virtual.c). `wakeup.due` has whoever gives the lock up
 * let the time pass that the program has used, since `waiters` is never 0.
 */
#include "nic/timed.h"

#include "base/sys.h"
#include "hpu/device.h"
#include "hpu/device_profile.h"
#include "hpu/exec.h"
#include "nic/progress.h"
#include "nic/spin_calls.h"
#include "nic/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- timers ---- */

static void wake(void *arg)
{
    struct nic *nic = arg;
    nic->wake_due = -1;
    timers_advance(nic);
}

static void wake_at(struct nic *nic, int64_t due)
{
    if (due >= 0 && (nic->wake_due < 0 || due < nic->wake_due) &&
        nic->time->at(nic->fabric, (uint64_t)due * 1000, wake, nic, false)) {
        nic->wake_due = due;
    }
}

void timed_begin(struct nic *nic)
{
    nic->now = nic->time->clock;
    nic->wake_at = wake_at;
    nic->wake_due = -1;
    nic->waiters = 1;
    nic->wakeup.any_change = 1; /* whoever changes anything has other threads look */
    nic->spin_ns = nic->yield_ns = 0;
    nic->process->options.number[OPT_SPIN_US] = 0; /* nobody learns to spin */
    nic->process->options.number[OPT_YIELD_US] = 0;
}

void timed_used(struct nic *nic)
{
    nic->wakeup.due = true;
}

/* One thing may let another go on: the NIC is at rest when a round moves nothing. */
void timed_happened(struct nic *nic)
{
    while (nic_advance(nic)) {
    }
}

void timed_early(struct nic_peer *peer, struct fabric_rx *f)
{
    struct rx *rx = (struct rx *)f;
    bool whole = rx->m->type == MESSAGE_GET || f->length == rx->m->length;
    if (rx->class == FABRIC_REQUEST && rx_handlers_ran(rx) && whole) {
        handlers_early(rx);
    }
}

bool timed_passes(const struct fabric_rx *f, const struct fabric_rx *other)
{
    return turn_passes((const struct rx *)f, (const struct rx *)other);
}

void timed_tally(struct nic *nic, struct fabric_tally *t)
{
    static const int refused[] = {PTL_SR_DROP_COUNT, PTL_SR_PERMISSION_VIOLATIONS,
                                  PTL_SR_OPERATION_VIOLATIONS};
    const struct nic_stats *page = nic->stats;
    *t = (struct fabric_tally){.lost = nic->lost,
                               .lost_bytes = nic->lost_bytes,
                               .disabled = page != NULL ? page->closed : 0};
    for (unsigned i = 0; page != NULL && i < STATS_MOVEMENTS; i++) {
        t->requests += page->received[i];
    }
    for (unsigned kind = 0; page != NULL && kind < STATS_KINDS; kind++) {
        for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
            t->dropped += page->registers[kind][refused[i]];
        }
    }
}

void timed_give(struct nic *nic)
{
    nic_unlock(nic);
}

void timed_take(struct nic *nic)
{
    nic_lock(nic);
}

/* ---- HPUs ---- */

/* What is to happen at an HPU, without the NIC's lock. */
struct hpu_event {
    struct nic *nic;
    void (*happen)(void *what);
    void *what; /* NULL: `own` */
    _Alignas(16) uint8_t own[];
};

static void happen(void *event)
{
    struct hpu_event *e = event;
    struct nic *nic = e->nic;
    nic_unlock(nic);
    e->happen(e->what != NULL ? e->what : e->own);
    free(e);
    nic_lock(nic);
}

static bool at(void *arg, uint64_t time, void (*what)(void *), void *of)
{
    struct nic *nic = arg;
    struct hpu_event *e = malloc(sizeof(*e));
    if (e == NULL) {
        return false;
    }
    *e = (struct hpu_event){nic, what, of};
    return nic->time->at(nic->fabric, time, happen, e, true);
}

static void *at_new(void *arg, uint64_t time, void (*what)(void *), size_t size)
{
    struct nic *nic = arg;
    struct hpu_event *e = malloc(sizeof(*e) + size);
    if (e == NULL) {
        return NULL;
    }
    *e = (struct hpu_event){nic, what, NULL};
    if (!nic->time->at(nic->fabric, time, happen, e, true)) {
        free(e);
        return NULL;
    }
    return e->own;
}

static uint64_t dma(void *arg, uint64_t bytes, bool to_host)
{
    struct nic *nic = arg;
    return nic->time->dma(nic->fabric, bytes, to_host);
}

static uint64_t now(void *arg)
{
    struct nic *nic = arg;
    return nic->time->now(nic->fabric);
}

static void name_handler(uintptr_t handler, char *text, size_t size)
{
    const struct ptl_handler_entry *e = hpu_registered((void (*)(void))handler);
    snprintf(text, size, "%s", e != NULL ? e->name : "");
}

static void took(void *arg, const struct hpu_took *t)
{
    struct nic *nic = arg;
    struct handler_run *run = t->exec->env.owner;
    struct fabric_took f = {t->hpu,       t->begins,  t->waited, t->waiting,
                            t->shortage,  t->begin,   t->ps,     (uintptr_t)t->exec->handler.header,
                            name_handler, &run->calls};
    nic->time->took(nic->fabric, &f);
}

static void begins(void *arg, unsigned hpu, uint64_t queued, uint64_t lead)
{
    struct nic *nic = arg;
    nic->time->begins(nic->fabric, &(struct fabric_begins){hpu, queued, lead});
}

static bool hpu_take(void *arg, unsigned hpu, uint64_t since)
{
    struct nic *nic = arg;
    return nic->time->hpu_take(nic->fabric, hpu, since);
}

static void hpu_give(void *arg, unsigned hpu)
{
    struct nic *nic = arg;
    nic->time->hpu_give(nic->fabric, hpu);
}

static uint64_t hpu_wants(void *arg, const uint64_t *since)
{
    struct nic *nic = arg;
    return nic->time->hpu_wants(nic->fabric, since);
}

static uint64_t lead(void *arg)
{
    struct nic *nic = arg;
    return nic->time->lead(nic->fabric);
}

static uint64_t *spent(void *arg, const struct hpu_code_place *p)
{
    struct nic *nic = arg;
    struct fabric_place place = {p->handler, p->function, p->file, p->line};
    return nic->time->spent(nic->fabric, &place);
}

struct hpu_sched *timed_hpus(struct nic *nic)
{
    struct fabric_hpus hpus;
    nic->time->hpus(nic->fabric, &hpus);
    nic->hpu_time = (struct hpu_sched_time){.now = now,
                                            .at = at,
                                            .at_new = at_new,
                                            .dma = dma,
                                            .arg = nic,
                                            .native = hpus.native,
                                            .look = hpus.look,
                                            .dma_latency = hpus.dma_latency,
                                            .clock_mhz = hpus.clock_mhz,
                                            .took = took,
                                            .begins = begins,
                                            .lead = lead};
    if (hpus.shared) {
        nic->hpu_time.take = hpu_take;
        nic->hpu_time.give = hpu_give;
        nic->hpu_time.wants = hpu_wants;
    }
    nic->stats->hpus = hpus.count;
    if (hpus.profiled && nic->device != NULL) {
        nic->hpu_rows = (struct hpu_device_rows){spent, nic};
        nic->device->rows = &nic->hpu_rows;
    }
    nic->queue_most = hpus.queue;
    nic->messages_most = hpus.messages;
    return hpu_sched_create_virtual(nic->hpus, hpus.count, &nic->hpu_time, &nic_sched_ops, nic);
}

void timed_hpu_fails(struct nic *nic, unsigned hpu)
{
    if (nic->sched != NULL) {
        nic_unlock(nic);
        hpu_sched_fault(nic->sched, hpu);
        nic_lock(nic);
    }
}

void timed_hpus_free(struct nic *nic)
{
    if (nic->sched != NULL) {
        nic_unlock(nic);
        hpu_sched_freed(nic->sched);
        nic_lock(nic);
    }
}

static void nothing(void *arg)
{
}

/* Whether the NIC itself has written the payload, after the last handler: then the last of it tells
 * of the end. */
static bool deposited(const struct rx *rx)
{
    return rx->f.sink == RX_DEPOSIT && rx->at.mlength != 0 &&
           rx->at.le->handlers->completion == NULL;
}

bool timed_told(struct rx *rx)
{
    struct handler_run *run = rx->run;
    struct nic *nic = run->nic;
    if (run->told == 0) {
        const struct le *le = rx->at.le;
        bool tells = !run->pending && !deposited(rx) &&
                     ((le->options & PTL_ME_EVENT_COMM_DISABLE) == 0 ||
                      (le->options & PTL_ME_EVENT_CT_COMM) != 0);
        run->told = nic->time->written(nic->fabric, tells);
        rx->f.tells = true;
        (void)nic->time->at(nic->fabric, run->told, nothing, NULL, false);
    }
    return nic->time->now(nic->fabric) >= run->told;
}

bool timed_loses(const struct rx *rx, uint64_t offset)
{
    return (rx->f.overrun && offset >= rx->f.lost) || rx->at.pt->refusing;
}

void timed_lost(const struct rx *rx)
{
    const struct handler_run *run = rx->run;
    struct nic *nic = run->nic;
    uint64_t bytes = run->header_done ? run->length - run->user_header - run->emitted : run->length;
    nic->lost += bytes != 0 ? (bytes + nic->packet_size - 1) / nic->packet_size : 1;
    nic->lost_bytes += bytes;
}

/* ---- what programs call ---- */

/* The home of a process that is simulated; NULL: it is not. */
static const struct fabric_time *process_time(void)
{
    const struct fabric_time *time = fabric_sim.home->time;
    const char *fabric = getenv(option_table[OPT_FABRIC].env);
    return fabric != NULL && strcmp(fabric, fabric_sim.name) == 0 && time->nid() != 0 ? time : NULL;
}

uint64_t timed_now(void)
{
    const struct fabric_time *time = process_time();
    return (uint64_t)(time != NULL ? time->clock_ps() : clock_ns() * 1000);
}

/* Time passes under the lock of the NIC, if the process has one: enter() takes it. */
static struct nic *enter(struct process *p)
{
    struct nic *nic = p != NULL ? p->nics[0] : NULL;
    if (nic != NULL) {
        nic_lock(nic);
    }
    return nic;
}

static void leave(struct nic *nic)
{
    if (nic != NULL) {
        nic_unlock(nic);
    }
}

void timed_compute(struct process *p, uint64_t ps)
{
    const struct fabric_time *time = process_time();
    if (time != NULL) {
        struct nic *nic = enter(p);
        time->compute(ps);
        leave(nic);
    }
}

void timed_touch(struct process *p, uint64_t bytes)
{
    const struct fabric_time *time = process_time();
    if (time != NULL) {
        struct nic *nic = enter(p);
        time->touch(bytes);
        leave(nic);
    }
}

void timed_mark(struct process *p, const char *name)
{
    const struct fabric_time *time = process_time();
    if (time != NULL) {
        struct nic *nic = enter(p);
        time->mark(name);
        leave(nic);
    }
}

/* It is called in loops: what it finds out of a process that is in no simulation stays so. */
void timed_pause(struct process *p)
{
    static _Atomic bool real;
    const struct fabric_time *time = real ? NULL : process_time();
    if (time == NULL) {
        real = true;
        return;
    }
    struct nic *nic = enter(p);
    time->pause();
    leave(nic);
}

void timed_fence(struct process *p)
{
    const struct fabric_time *time = process_time();
    if (time != NULL) {
        struct nic *nic = enter(p);
        time->fence();
        leave(nic);
    }
}
