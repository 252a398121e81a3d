/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers: a message at an entry that has some (sPIN, section 3.2).
 *
 *   header handler ─ PROCESS_DATA ─► payload handlers, or a deposit without user header
 *        │         ─ PROCEED ──────► deposit of all, no further handler
 *        │         ─ DROP ─────────► nothing is kept
 *        └─ error: nothing is kept, no further handler      then: completion handler
 *
 * Wire packets are cut by message offset, handlers' packets by offset behind the
 * user header; where the two differ, or a packet does not begin at a multiple
 * of 64 in memory, it is put together in a bounce buffer.
 *
 * Without HPUs of its own (PINWHEEL_HPUS=0) whoever makes progress runs the handlers of a
 * message one after the other: the NIC's lock is dropped while one runs, and the channel is
 * busy meanwhile, so no other thread touches this message. With them a call is queued, and the
 * message waits, `elsewhere`, until nic_sched_ops.done() says that it has ended; payload
 * handlers do not wait for each other (packets.c).
 */
#include "nic/rx.h"

#include "base/fault.h"
#include "base/nic_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_ALIGN 64

/* ---- running them ---- */

/* Lets go of the lock while user code runs. */
static void leave(struct nic *nic)
{
    nic->unlocked++;
    nic_unlock(nic);
}

static void enter(struct nic *nic)
{
    nic_lock(nic);
    nic->unlocked--;
}

/* go_on() where HPUs are threads. A completion handler need not find room: it makes some. */
static int go_on_elsewhere(struct rx *rx)
{
    struct handler_run *run = rx->run;
    if (!run->active) {
        if (!run->header_done && !packets_room(rx)) {
            rx->f.elsewhere = true;
            return HPU_WAIT;
        }
        run->active = true;
        run->ended = false;
        hpu_sched_submit(run->nic->sched, &rx->le->handlers->queue, &run->exec);
    }
    rx->f.elsewhere = !run->ended;
    run->active = !run->ended;
    return run->ended ? run->code : HPU_WAIT;
}

/* Goes on with the handler call that is set up. HPU_WAIT: it is to be gone on with later,
 * if only because no context was free. */
static int go_on(struct rx *rx)
{
    struct handler_run *run = rx->run;
    if (run->nic->sched != NULL) {
        return go_on_elsewhere(rx);
    }
    run->active = true;
    if (!hpu_exec_take(&run->exec)) {
        return HPU_WAIT;
    }
    run->stalled = 0;
    leave(run->nic);
    int code = hpu_exec_run(&run->exec);
    enter(run->nic);
    if (code != HPU_WAIT) {
        hpu_exec_give(&run->exec);
        run->active = false;
    }
    return code;
}

static void sched_begin(void *arg)
{
    process_enter(((struct nic *)arg)->process);
}

/* The message goes on with what comes after, here and now. */
static void sched_done(void *arg, struct hpu_exec *exec, int code)
{
    struct nic *nic = arg;
    nic_lock(nic);
    if (exec->call == HPU_CALL_PAYLOAD) {
        packet_ended(exec, code);
    } else {
        struct handler_run *run = container_of(exec, struct handler_run, exec);
        run->ended = true;
        run->code = code;
        if (run->orphan) {
            free(run->bounce);
            free(run);
        } else if (run->rx->invoked) {
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
    int64_t budget = nic->process->options.number[OPT_HANDLER_BUDGET_US] * 1000;
    fault_refresh();
    if (nic->watch == NULL && budget != 0) {
        nic->watch = hpu_watch_start(nic->hpus, budget);
        return nic->watch != NULL ? 0 : -errno;
    }
    return 0;
}

static bool start_run(struct rx *rx)
{
    struct nic *nic = rx->peer->nic;
    struct handlers *h = rx->le->handlers;
    if (rx->run == NULL) {
        rx->run = calloc(1, sizeof(*rx->run));
        uint8_t *bounce = aligned_alloc(PACKET_ALIGN, nic->packet_size);
        if (rx->run == NULL || bounce == NULL) {
            free(rx->run);
            free(bounce);
            rx->run = NULL; /* the next message tries again */
            return false;
        }
        rx->run->bounce = bounce;
    }
    /* Field by field: most of the struct is what a handler call leaves behind, and
     * clearing all of it would cost as much as the call. */
    struct handler_run *run = rx->run;
    run->nic = nic;
    run->rx = rx;
    run->le = rx->le;
    run->user_header = h->user_header < rx->m->length ? h->user_header : rx->m->length;
    run->deposit = h->payload == NULL;
    run->active = run->pending = run->finished = false;
    run->header_done = run->completion_done = false;
    run->lost = run->flow_control = false;
    run->stalled = 0;
    run->outstanding = 0;
    list_init(&run->packets);
    run->fail = PTL_NI_OK;
    run->kept = run->dropped = run->emitted = 0;
    run->filled = run->consumed = 0;
    run->exec.ctx = NULL;
    run->exec.wait = HPU_WAIT_NONE;
    run->exec.slots = h->hpu_mask;
    run->exec.place = HPU_PLACE_NOWHERE;
    struct hpu_env *env = &run->exec.env;
    env->me_base = rx->le->start;
    env->me_length = rx->le->length;
    env->host_base = h->host_base;
    env->host_length = h->host_length;
    env->state = h->memory->mem->base;
    env->state_length = h->memory->mem->length;
    env->max_payload = nic->packet_size;
    env->counters = rx->ni->counters;
    env->counter_count = PTL_SPIN_COUNTERS;
    env->twins = nic->twins != NULL ? h->twin : NULL;
    env->ops = &handler_ops;
    env->owner = run;
    return true;
}

void handlers_cancel(struct rx *rx)
{
    struct handler_run *run = rx->run;
    if (run == NULL) {
        return;
    }
    if (run->nic->sched != NULL) {
        packets_cancel(rx);
        if (run->active && !run->ended && !hpu_sched_cancel(run->nic->sched, &run->exec)) {
            rx->le->handlers->orphaned = true;
            run->orphan = true;
            rx->run = NULL;
        }
    } else if (run->active) {
        hpu_exec_cancel(&run->exec);
    }
    run->active = false;
}

void handlers_free(struct rx *rx)
{
    handlers_cancel(rx);
    if (rx->run != NULL) {
        free(rx->run->bounce);
        free(rx->run);
    }
}

/* Notes the first error of the message; what follows of it is not looked at. */
static void note_error(struct rx *rx, int code)
{
    if (rx->run->fail == PTL_NI_OK) {
        rx->run->fail = code == SEGV      ? PTL_NI_HANDLER_SEGV
                        : code == TIMEOUT ? PTL_NI_HANDLER_TIMEOUT
                                          : PTL_NI_HANDLER_FAIL;
    }
}

/* After a header handler the message ends early and its completion handler hears of it. One
 * that no handler has seen is as if it had not come: with flow control nobody hears of it,
 * since its sender is told, and it uses no entry up. */
bool handlers_no_room(struct rx *rx)
{
    struct handler_run *run = rx->run;
    struct pt *pt = &rx->ni->pts[rx->le->pt_index];
    int64_t now = run->nic->now();
    int64_t patience = run->nic->process->options.number[OPT_HPU_PATIENCE_MS] * 1000000;
    if (run->stalled == 0) {
        run->stalled = now;
    }
    if (now - run->stalled < patience) {
        run->nic->stalled = true;
        return false;
    }
    bool refuses = (pt->options & PTL_PT_FLOWCTRL) != 0;
    ptl_ni_fail_t fail = refuses ? PTL_NI_PT_DISABLED : PTL_NI_DROPPED;
    run->flow_control = run->lost = true;
    rx->f.sink = RX_DISCARD;
    rx->ni->registers[PTL_SR_DROP_COUNT]++;
    if (!run->header_done) {
        rx->fail = fail;
        rx->mlength = 0;
        run->pending = true;
    }
    if ((run->header_done || !refuses) && run->fail == PTL_NI_OK) {
        run->fail = fail;
    }
    if (refuses) {
        pt_refuse(rx->ni, rx->le->pt_index, rx->le);
    }
    return true;
}

/* A call that waits for room, as opposed to one that has begun. */
static bool has_no_room(const struct handler_run *run)
{
    return run->nic->sched != NULL ? !run->active
                                   : run->active && run->exec.wait == HPU_WAIT_CONTEXT;
}

void handlers_torn(struct rx *rx, ptl_ni_fail_t fail)
{
    if (rx->run->fail == PTL_NI_OK && !rx->run->completion_done) {
        rx->run->fail = fail;
        rx->run->lost = true;
    }
}

static void discard(struct rx *rx)
{
    rx->f.sink = RX_DISCARD;
    rx->run->dropped = rx->m->length - rx->run->user_header;
}

static void deposit_all(struct rx *rx)
{
    if (rx->m->type == MESSAGE_PUT) {
        rx->f.sink = RX_DEPOSIT;
        rx->f.base = memory_at(rx->le->start, rx->offset);
        rx->f.vector = NULL; /* such entries are never in parts */
        rx->f.room = rx->mlength;
    }
}

static void header_result(struct rx *rx, int code)
{
    struct handler_run *run = rx->run;
    run->header_done = true;
    run->stalled = 0;
    run->pending = code == DROP_PENDING || code == PROCESS_DATA_PENDING || code == PROCEED_PENDING;
    switch (code) {
    case PROCESS_DATA:
    case PROCESS_DATA_PENDING:
        rx->f.sink = rx->m->type == MESSAGE_PUT ? RX_PACKETS : RX_DISCARD;
        break;
    case PROCEED:
    case PROCEED_PENDING:
        run->finished = true;
        deposit_all(rx);
        break;
    case DROP:
    case DROP_PENDING:
        discard(rx);
        break;
    default:
        note_error(rx, code);
        run->finished = true;
        discard(rx);
    }
}

static void set_up_header(struct rx *rx)
{
    struct handler_run *run = rx->run;
    const struct ni *ni = rx->ni;
    ptl_header_t *header = hpu_exec_header_of(&run->exec);
    header->type = rx->m->type == MESSAGE_GET ? PTL_REQUEST_GET : PTL_REQUEST_PUT;
    header->length = rx->m->length;
    header->source_id = rx->initiator;
    header->match_bits = rx->m->match_bits;
    header->offset = rx->offset;
    header->hdr_data = rx->m->hdr_data;
    header->user_hdr = run->user_header != 0 ? rx->f.first : NULL;
    header->user_hdr_length = run->user_header;
    if (ni_is_logical(ni)) {
        header->target_id.rank = ni->rank;
    } else {
        header->target_id.phys.nid = ni->nic->nid;
        header->target_id.phys.pid = ni->nic->pid;
    }
    hpu_exec_header(ni->nic->hpus, &run->exec, rx->le->handlers->header, header);
}

enum rx_step handlers_header(struct rx *rx)
{
    if (rx->run == NULL || (!rx->run->active && !rx->header_begun)) {
        if (!start_run(rx)) {
            rx->fail = PTL_NI_DROPPED;
            return RX_GO;
        }
        rx->header_begun = true;
    }
    struct handler_run *run = rx->run;
    if (rx->m->type == MESSAGE_GET) {
        run->user_header = 0;
    }
    if (rx->le->handlers->header == NULL) {
        header_result(rx, PROCESS_DATA);
        return RX_GO;
    }
    if (run->user_header != 0 && rx->f.first == NULL) {
        return RX_FIRST;
    }
    if (!run->active) {
        set_up_header(rx);
    }
    int code = go_on(rx);
    if (code == HPU_WAIT && has_no_room(run) && handlers_no_room(rx)) {
        run->active = false;
        return RX_GO;
    }
    if (code == HPU_WAIT) {
        return RX_WAIT;
    }
    header_result(rx, code);
    return RX_GO;
}

void handlers_payload_result(struct rx *rx, int code, size_t length)
{
    struct handler_run *run = rx->run;
    if (code == SUCCESS) {
        run->kept += length;
        return;
    }
    run->dropped += length;
    if (code != DROP) {
        note_error(rx, code);
        run->lost = true;
        rx->f.sink = RX_DISCARD;
    }
}

static void set_up_payload(struct rx *rx)
{
    struct handler_run *run = rx->run;
    ptl_payload_t payload = {
        .length = run->packet_length,
        .offset = run->emitted,
        .base = (uint8_t *)run->packet,
    };
    hpu_exec_payload(run->nic->hpus, &run->exec, rx->le->handlers->payload, &payload);
}

/* Takes from the wire packet what makes the next packet for the handlers; true
 * when that is complete. */
bool handlers_next_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length)
{
    struct handler_run *run = rx->run;
    size_t packet = run->nic->packet_size;
    uint8_t *at = data + run->consumed;
    size_t left = length - run->consumed;
    if (offset + run->consumed < run->user_header) {
        size_t skip = run->user_header - (offset + run->consumed);
        skip = skip < left ? skip : left;
        run->consumed += skip;
        return false;
    }
    bool last = offset + length == rx->m->length;
    bool whole = run->filled == 0 && (uintptr_t)at % PACKET_ALIGN == 0 &&
                 (run->user_header % PACKET_ALIGN == 0 || (last && left <= packet));
    if (whole) {
        run->packet = at;
        run->packet_length = left;
        run->consumed += left;
        return true;
    }
    size_t n = packet - run->filled < left ? packet - run->filled : left;
    memcpy(run->bounce + run->filled, at, n);
    run->filled += n;
    run->consumed += n;
    if (run->filled < packet && !(last && run->consumed == length)) {
        return false;
    }
    run->packet = run->bounce;
    run->packet_length = run->filled;
    run->filled = 0;
    return true;
}

/* A message with handlers but no payload handler: its payload goes to the
 * entry, the user header left out. */
static void deposit_packet(struct rx *rx, const uint8_t *data, uint64_t offset, size_t length)
{
    struct handler_run *run = rx->run;
    uint64_t skip = offset < run->user_header ? run->user_header - offset : 0;
    if (skip >= length) {
        return;
    }
    uint64_t to = offset + skip - run->user_header;
    uint64_t n = length - skip;
    uint64_t room = to < rx->mlength ? rx->mlength - to : 0;
    n = n < room ? n : room;
    if (nic_copy(memory_at(rx->le->start, rx->offset + to), data + skip, n) != 0) {
        run->fail = PTL_NI_SEGV;
        rx->f.sink = RX_DISCARD;
    }
    run->kept += n;
}

enum rx_step handlers_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length)
{
    struct handler_run *run = rx->run;
    if (run->deposit) {
        deposit_packet(rx, data, offset, length);
        return RX_GO;
    }
    if (run->nic->sched != NULL) {
        return packets_take(rx, data, offset, length);
    }
    while (run->active || (run->consumed < length && rx->f.sink == RX_PACKETS)) {
        if (!run->active) {
            if (!handlers_next_packet(rx, data, offset, length)) {
                continue;
            }
            set_up_payload(rx);
        }
        int code = go_on(rx);
        if (code == HPU_WAIT && has_no_room(run) && handlers_no_room(rx)) {
            run->active = false;
            break;
        }
        if (code == HPU_WAIT) {
            return RX_WAIT;
        }
        run->emitted += run->packet_length;
        handlers_payload_result(rx, code, run->packet_length);
    }
    run->consumed = 0;
    return RX_GO;
}

static void set_up_completion(struct rx *rx)
{
    struct handler_run *run = rx->run;
    hpu_exec_completion(run->nic->hpus, &run->exec, rx->le->handlers->completion, run->dropped,
                        run->flow_control);
}

/* What the handlers leave of the message, as the event will say. */
static void conclude(struct rx *rx)
{
    struct handler_run *run = rx->run;
    bool proceeded = run->finished && run->fail == PTL_NI_OK;
    if (rx->m->type == MESSAGE_PUT && !proceeded) {
        rx->mlength = run->kept;
    }
    if (run->fail != PTL_NI_OK) {
        rx->fail = run->fail;
    } else if (rx->m->type == MESSAGE_GET && run->dropped != 0) {
        rx->fail = PTL_NI_DROPPED;
    }
    if (rx->m->type == MESSAGE_GET && rx->fail != PTL_NI_OK) {
        rx->mlength = 0; /* nothing is sent back */
    }
}

enum rx_step handlers_completion(struct rx *rx)
{
    struct handler_run *run = rx->run;
    if (run->completion_done) {
        return RX_GO;
    }
    if (run->outstanding != 0) {
        rx->f.elsewhere = true;
        return RX_WAIT;
    }
    if (run->lost && !run->active) {
        run->dropped = rx->m->length - run->user_header - run->kept;
    }
    if (!run->finished && rx->le->handlers->completion != NULL) {
        if (!run->active) {
            set_up_completion(rx);
        }
        int code = go_on(rx);
        if (code == HPU_WAIT) {
            return RX_WAIT;
        }
        if (code == SUCCESS_PENDING) {
            run->pending = true;
        } else if (code != SUCCESS) {
            note_error(rx, code);
        }
    }
    rx->f.elsewhere = false;
    run->completion_done = true;
    conclude(rx);
    return RX_GO;
}
