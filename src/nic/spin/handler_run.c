/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running the handlers of a message. Struct handler_run is set up when the message begins;
 * handlers.c sets up each call of a handler, and this file runs it.
 *
 * Without HPUs of its own (PINWHEEL_HPUS=0) the thread that makes progress runs the handlers of a
 * message one after the other. It releases the NIC's lock while one runs; the channel is marked
 * busy meanwhile, so no other thread touches the message. With HPUs that are threads a call is
 * queued, and the message waits, `elsewhere`, until nic_sched_ops.done() notes its end; payload
 * handlers do not wait for each other (packets.c).
 */
#include "nic/spin/handler_run.h"

#include "base/fault.h"
#include "base/sys.h"
#include "nic/process.h"
#include "nic/progress.h"
#include "nic/pt.h"
#include "nic/spin/handler_send.h"
#include "nic/spin/handlers.h"
#include "nic/spin/packets.h"
#include "nic/spin/pieces.h"
#include "nic/spin/telemetry.h"
#include "nic/spin_calls.h"
#include "nic/timed.h"
#include "nic/wait.h"

#include <errno.h>
#include <stdlib.h>

/* Whether a message has found no room for its next call for too long. Then, if its header handler
 * has run, it ends early, and its completion handler is told. If no handler has seen it, it is
 * treated as if it had not come: it uses no entry up, and with flow control only its sender is
 * told. */
bool handlers_no_room(struct rx *rx)
{
    struct handler_run *run = rx->run;
    struct pt *pt = &rx->at.ni->pts[rx->at.le->pt_index];
    int64_t now = run->nic->now();
    int64_t patience = run->nic->process->options.number[OPT_HPU_PATIENCE_MS] * 1000000;
    const struct handlers *h = rx->at.le->handlers;
    if (run->nic->time != NULL && (h->block == 0 || run->block != NULL)) {
        patience = 0; /* a simulated NIC loses what finds no room at once */
    }
    if (run->stalled == 0 || rx->f.behind) {
        run->stalled = now; /* the time of a message behind others begins with its turn */
    }
    if (now - run->stalled < patience) {
        run->nic->stalled = true;
        return false;
    }
    bool refuses = (pt->options & PTL_PT_FLOWCTRL) != 0;
    ptl_ni_fail_t fail = refuses ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED;
    run->flow_control = run->lost = true;
    timed_lost(rx);
    rx->at.le->handlers->stats->refused++;
    rx->f.sink = RX_DISCARD;
    rx->at.ni->registers[PTL_SR_DROP_COUNT]++;
    if (!run->header_done) {
        rx->at.fail = fail;
        rx->at.mlength = 0;
        run->pending = true;
    }
    if ((run->header_done || !refuses) && run->fail == PTL_NI_OK) {
        run->fail = fail;
    }
    if (refuses) {
        pt_refuse(rx->at.ni, rx->at.le->pt_index, rx->at.le);
    }
    return true;
}

void handlers_torn(struct rx *rx, ptl_ni_fail_t fail)
{
    if (rx->run->fail == PTL_NI_OK && !rx->run->completion_done) {
        rx->run->fail = fail;
        rx->run->lost = true;
    }
}

/* handlers_go_on() where HPUs are threads. A completion handler is queued even if there is no room,
 * since its end makes room. */
static int go_on_elsewhere(struct rx *rx)
{
    struct handler_run *run = rx->run;
    if (!run->active) {
        if (!run->header_done &&
            (!packets_room(rx) || (run->nic->time != NULL && timed_loses(rx, 0)))) {
            rx->f.elsewhere = true;
            return HPU_WAIT;
        }
        run->active = true;
        run->ended = false;
        hpu_sched_submit(run->nic->sched, &rx->at.le->handlers->queue, &run->exec);
    }
    rx->f.elsewhere = !run->ended;
    run->active = !run->ended;
    return run->ended ? run->code : HPU_WAIT;
}

/* Whether the time of this thread's call is over. A call with a time-out runs handlers until then,
 * but at least one, so that a program that makes only such calls makes progress; the rest is left
 * to the next call, or the NIC thread. */
static __attribute__((noinline)) bool time_is_over(void)
{
    handler_time.over = handler_time.begun && clock_ns() >= handler_time.end;
    handler_time.begun = true;
    return handler_time.over;
}

int handlers_go_on(struct rx *rx)
{
    struct handler_run *run = rx->run;
    if (run->nic->sched != NULL) {
        return go_on_elsewhere(rx);
    }
    run->active = true;
    if (rx->at.ni->halted || (unlikely(handler_time.end != 0) && time_is_over()) ||
        !hpu_exec_take(&run->exec)) {
        return HPU_WAIT;
    }
    run->stalled = 0;
    run->inside = true;
    run->nic->handling++;
    nic_step_out(run->nic);
    int code = hpu_exec_run(&run->exec);
    nic_step_in(run->nic);
    run->nic->handling--;
    run->inside = false;
    if (code != HPU_WAIT) {
        telemetry_call(run->nic, rx->at.le != NULL ? rx->at.le->handlers : NULL, &run->exec, code);
        hpu_exec_give(&run->exec);
        run->active = false;
    }
    return code;
}

static void sched_begin(void *arg)
{
    process_enter(((struct nic *)arg)->process);
}

static void free_run(struct handler_run *run)
{
    block_give(run);
    pieces_drop(run);
    free(run->bounce);
    free(run);
}

void handlers_orphan_ended(struct handler_run *run)
{
    if (--run->orphans == 0) {
        free_run(run);
    }
}

/* Notes the end of a call, and makes the progress that follows from it, on the HPU's own thread. */
static void sched_done(void *arg, struct hpu_exec *exec, int code)
{
    struct nic *nic = arg;
    nic_lock(nic);
    if (exec->call == HPU_CALL_PAYLOAD) {
        packet_ended(nic, exec, code);
    } else {
        struct handler_run *run = container_of(exec, struct handler_run, exec);
        telemetry_call(nic, run->orphans != 0 ? NULL : run->le->handlers, exec, code);
        run->ended = true;
        run->code = code;
        if (run->orphans != 0) {
            handlers_orphan_ended(run);
        } else if (run->rx->away) {
            invoke_stir(run->rx);
        }
    }
    nic_follow_up(nic);
    nic_unlock(nic);
}

static void sched_idle(void *arg)
{
    struct nic *nic = arg;
    if (lock_try(&nic->lock)) {
        nic_advance(nic);
        nic_unlock(nic);
    }
}

const struct hpu_sched_ops nic_sched_ops = {
    .begin = sched_begin,
    .done = sched_done,
    .idle = sched_idle,
};

int handlers_prepare(struct nic *nic)
{
    int64_t budget = nic->time == NULL ? nic->process->options.number[OPT_HANDLER_BUDGET_US] * 1000
                                       : TIMED_PATIENCE_NS;
    fault_refresh();
    if (nic->watchdog == NULL && budget != 0) {
        nic->watchdog = hpu_watchdog_start(nic->hpus, budget);
        return nic->watchdog != NULL ? 0 : -errno;
    }
    return 0;
}

/* Sets how many bytes of the message are payload, and how many are the user header, or operand,
 * before it. */
static void set_lengths(struct rx *rx)
{
    struct handler_run *run = rx->run;
    const struct message *m = rx->m;
    uint64_t wanted = 0;
    run->length = m->length;
    if (m->type == MESSAGE_PUT) {
        wanted = rx->at.le->handlers->user_header;
    } else if (m->type == MESSAGE_FETCH) {
        wanted = atomic_operand_size(m->op, m->datatype);
        run->length += wanted;
    }
    run->user_header = wanted < run->length ? wanted : run->length;
}

/* Returns a run for the messages of rx, one after the other, with what is alike for all of them;
 * NULL: memory is short. */
static struct handler_run *run_new(struct rx *rx)
{
    struct nic *nic = rx->peer->nic;
    struct handler_run *run = calloc(1, sizeof(*run));
    uint8_t *bounce = aligned_alloc(PACKET_ALIGN, nic->packet_size);
    if (run == NULL || bounce == NULL) {
        free(run);
        free(bounce);
        return NULL;
    }
    run->bounce = bounce;
    run->nic = nic;
    run->rx = rx;
    list_init(&run->packets);
    list_init(&run->pieces);
    struct hpu_env *env = &run->exec.env;
    env->max_payload = nic->packet_size;
    env->counter_count = PTL_SPIN_COUNTERS;
    env->outputs = nic->stats->outputs;
    env->output_count = PTL_NUM_HPUS;
    env->engine = nic->dma_engine;
    env->timed = nic->time != NULL ? nic->sched : NULL;
    env->ops = &handler_ops;
    env->owner = run;
    return run;
}

bool handlers_start(struct rx *rx)
{
    struct handlers *h = rx->at.le->handlers;
    if (rx->run == NULL && (rx->run = run_new(rx)) == NULL) {
        return false; /* the next message tries again */
    }
    /* Field by field: a handler call overwrites most of the struct, and clearing all of it would
     * cost as much as the call. */
    struct handler_run *run = rx->run;
    struct nic *nic = run->nic;
    run->le = rx->at.le;
    set_lengths(rx);
    run->deposit = h->payload == NULL;
    run->progress = 0;
    run->told = run->calls = 0;
    run->stalled = 0;
    if (nic->sched != NULL) {
        run->begun = nic->now();
        run->outstanding = 0;
        list_init(&run->packets);
        pieces_drop(run);
    }
    run->fail = PTL_NI_OK;
    run->kept = run->dropped = run->emitted = run->filled = run->consumed = 0;
    run->exec.ctx = NULL;
    run->exec.wait = HPU_WAIT_NONE;
    run->exec.slots = h->hpu_mask;
    run->exec.place = HPU_PLACE_NOWHERE;
    struct hpu_env *env = &run->exec.env;
    env->me_base = rx->at.le->start;
    env->me_length = rx->at.le->length;
    env->host_base = h->host_base;
    env->host_length = h->host_length;
    env->state = h->memory->mem->base;
    env->state_length = h->memory->mem->length;
    env->counters = rx->at.ni->counters;
    env->code = nic->device != NULL ? h->code : NULL;
    env->me_vector = rx->at.le->vector.parts != NULL ? &rx->at.le->vector : NULL;
    env->host_vector = h->host_vector.parts != NULL ? &h->host_vector : NULL;
    env->awaited = NULL;
    return true;
}

bool handlers_run(struct rx *rx)
{
    const struct handler_run *run = rx->run;
    if (run == NULL || !rx->header_begun) {
        return false;
    }
    if (run->nic->sched == NULL) {
        return run->inside;
    }
    return packets_run(rx) ||
           (run->active && !run->ended && hpu_sched_runs(run->nic->sched, &run->exec));
}

bool handlers_end(struct rx *rx)
{
    if (!handlers_run(rx)) {
        return false;
    }
    struct handler_run *run = rx->run;
    if (run->inside) {
        hpu_exec_end(&run->exec);
    } else {
        packets_end(rx);
        hpu_sched_end(run->nic->sched, &run->exec);
    }
    return true;
}

void handlers_cancel(struct rx *rx)
{
    struct handler_run *run = rx->run;
    if (run == NULL) {
        return;
    }
    if (run->nic->sched != NULL) {
        run->orphans = packets_cancel(rx);
        run->orphans +=
            run->active && !run->ended && !hpu_sched_cancel(run->nic->sched, &run->exec);
        if (run->orphans != 0) {
            rx->at.le->handlers->orphaned = true;
            rx->run = NULL;
            rx->header_begun = false;
        }
    } else if (run->active) {
        hpu_exec_cancel(&run->exec);
    }
    run->active = false;
    if (run->orphans == 0) {
        block_give(run);
    }
}

void handlers_free(struct rx *rx)
{
    handlers_cancel(rx);
    if (rx->run != NULL) {
        free_run(rx->run);
    }
}
