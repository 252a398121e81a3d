/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload handlers on HPUs that are threads: the NIC queues a message's packets as they come, and
 * their handlers run side by side. If the handlers take a microsecond or less, it queues several
 * packets that follow each other in memory as one call: a turn through the queue costs as much as
 * such a handler, and another HPU would take longer to wake up than the call takes.
 *
 *      wire packets     | ended | ended | runs  | ended | queued|       (not here yet)
 *                                       ▲ held                  ▲ moved
 *      the fabric's again ◄─────────────┘ in use ──────────────►
 *
 * A handler reads and writes its packet where the fabric put it; so the fabric gets memory back
 * only in order, up to the first packet whose handler has not ended (`held`). A packet that was put
 * together in a bounce buffer counts as part of the wire packet that completed it. The queue of the
 * execution context is bounded (PINWHEEL_HPU_QUEUE): when it is full, the message waits, then its
 * channel's cells run out, then its sender waits.
 *
 * Invariants, under the NIC's lock: `outstanding` counts the calls in `packets` that have not
 * ended; the first call in the list has not; the message does not end, nor does its completion
 * handler begin, before `outstanding` is 0. A call ends early at a packet that its handler drops:
 * the packets behind that one are queued again, as a call at the front of the queue.
 */
#include "nic/spin/packets.h"

#include "nic/spin/handler_run.h"
#include "nic/spin/handlers.h"
#include "nic/spin/pieces.h"
#include "nic/spin/telemetry.h"
#include "nic/spin_calls.h"
#include "nic/timed.h"

#include <stdlib.h>

/* A call of a payload handler: one packet, or several that follow each other. */
struct packet {
    struct hpu_exec exec;
    struct list link;
    struct rx *rx;   /* NULL: the NI is closed, and the result is not wanted */
    uint64_t held;   /* message offset of the wire packet that it lies in */
    uint64_t offset; /* of the first packet of the call, behind the user header */
    /* memory of the packet, if it was put together; NULL: it lies in the wire packet */
    uint8_t *bounce;
    bool ended;
};

bool packets_room(const struct rx *rx)
{
    struct nic *nic = rx->peer->nic;
    return hpu_queue_waiting(nic->sched, &rx->at.le->handlers->queue) < nic->queue_most;
}

static void free_packet(struct packet *p)
{
    list_remove(&p->link);
    free(p->bounce);
    free(p);
}

static void note_end(struct packet *p)
{
    p->ended = true;
    p->rx->run->outstanding--;
}

/* Frees the calls at the front that have ended, and sets from where on the fabric must keep the
 * payload. */
static void settle(struct rx *rx)
{
    struct packet *p;
    while ((p = LIST_FIRST(struct packet, &rx->run->packets, link)) != NULL && p->ended) {
        free_packet(p);
    }
    rx->f.held = p != NULL ? p->held : FABRIC_HELD_NOTHING;
}

/* Sets up a call for a packet and the `behind` bytes that follow it in memory. */
static void set_up_call(struct packet *p, const ptl_payload_t *payload, size_t behind)
{
    struct nic *nic = p->rx->peer->nic;
    p->offset = payload->offset;
    hpu_exec_payload(nic->hpus, &p->exec, p->rx->at.le->handlers->payload, payload);
    hpu_exec_behind(&p->exec, behind, nic->packet_size);
}

/* Queues the packets of a call that are behind the one at which it has ended; false: there are
 * none. */
static bool go_on_behind(struct packet *p)
{
    struct nic *nic = p->rx->peer->nic;
    size_t packet = nic->packet_size, behind = p->exec.behind;
    if (behind == 0) {
        return false;
    }
    ptl_payload_t next = p->exec.arg.payload;
    next.base += next.length;
    next.offset += next.length;
    next.length = behind < packet ? behind : packet;
    set_up_call(p, &next, behind - next.length);
    hpu_sched_submit_first(nic->sched, &p->rx->at.le->handlers->queue, &p->exec);
    return true;
}

void packet_ended(struct nic *nic, struct hpu_exec *exec, int code)
{
    struct packet *p = container_of(exec, struct packet, exec);
    struct rx *rx = p->rx;
    telemetry_call(nic, rx != NULL ? rx->at.le->handlers : NULL, exec, code);
    if (rx == NULL) {
        handlers_orphan_ended(p->exec.env.owner);
        free_packet(p);
        return;
    }
    const ptl_payload_t *last = &exec->arg.payload;
    /* the packets of the call before its last one have ended with SUCCESS */
    rx->run->kept += last->offset - p->offset;
    if (nic->time == NULL) { /* in virtual time each packet has a call of its own */
        handlers_set_pace(rx->at.le->handlers, exec);
    }
    handlers_payload_result(rx, exec, code, last->base, last->length);
    if (rx->f.sink == RX_PACKETS && go_on_behind(p)) {
        return;
    }
    note_end(p);
    if (code != SUCCESS && code != DROP) {
        packets_drop(rx);
    }
    settle(rx);
    if (rx->away) {
        invoke_stir(rx);
    }
}

void packets_drop(struct rx *rx)
{
    struct handler_run *run = rx->run;
    LIST_EACH(struct packet, p, &run->packets, link) {
        if (!p->ended && hpu_sched_withdraw(run->nic->sched, &p->exec)) {
            note_end(p);
        }
    }
}

bool packets_run(const struct rx *rx)
{
    const struct handler_run *run = rx->run;
    bool any = false;
    LIST_EACH(const struct packet, p, &run->packets, link) {
        any |= !p->ended && hpu_sched_runs(run->nic->sched, &p->exec);
    }
    return any;
}

void packets_end(struct rx *rx)
{
    struct handler_run *run = rx->run;
    LIST_EACH(struct packet, p, &run->packets, link) {
        hpu_sched_end(run->nic->sched, &p->exec);
    }
}

unsigned packets_cancel(struct rx *rx)
{
    struct handler_run *run = rx->run;
    unsigned orphans = 0;
    for (struct packet *p; (p = LIST_FIRST(struct packet, &run->packets, link)) != NULL;) {
        run->outstanding -= !p->ended;
        if (p->ended || hpu_sched_cancel(run->nic->sched, &p->exec)) {
            free_packet(p);
        } else {
            list_remove(&p->link);
            p->rx = NULL;
            orphans++;
        }
    }
    rx->f.held = FABRIC_HELD_NOTHING;
    return orphans;
}

/* Queues a call for the packet that is complete, and for packets that follow it in memory. */
static bool queue_packet(struct rx *rx, uint64_t offset, size_t behind)
{
    struct handler_run *run = rx->run;
    struct packet *p = run->packet != NULL ? calloc(1, sizeof(*p)) : NULL;
    if (p == NULL) {
        return false;
    }
    p->rx = rx;
    p->held = offset;
    p->exec.env = run->exec.env;
    ptl_payload_t payload = handlers_payload(run);
    payload.offset = rx->f.scattered ? run->place : payload.offset;
    behind = run->packet != run->bounce ? handlers_taken_along(rx, behind) : 0;
    if (run->packet == run->bounce) {
        p->bounce = run->bounce;
        run->bounce = NULL;
    }
    run->emitted += run->packet_length + behind;
    run->consumed += behind;
    run->outstanding++;
    list_push_back(&run->packets, &p->link);
    set_up_call(p, &payload, behind);
    hpu_sched_submit(run->nic->sched, &rx->at.le->handlers->queue, &p->exec);
    return true;
}

static bool has_bounce(struct handler_run *run)
{
    if (run->bounce == NULL) {
        run->bounce = aligned_alloc(64, run->nic->packet_size);
    }
    return run->bounce != NULL;
}

static bool next_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length)
{
    return rx->f.scattered ? pieces_next(rx, data, length)
                           : handlers_next_packet(rx, data, offset, length);
}

enum rx_step packets_take(struct rx *rx, uint8_t *data, uint64_t offset, size_t length,
                          size_t behind)
{
    struct handler_run *run = rx->run;
    while (run->consumed < length && rx->f.sink == RX_PACKETS) {
        if (!packets_room(rx) || (run->nic->time != NULL && timed_loses(rx, offset))) {
            if (handlers_no_room(rx)) {
                break;
            }
            rx->f.elsewhere = true;
            return RX_WAIT;
        }
        run->stalled = 0;
        if (!has_bounce(run) ||
            (next_packet(rx, data, offset, length) && !queue_packet(rx, offset, behind))) {
            /* memory is short: the message fails */
            handlers_payload_result(rx, &run->exec, FAIL, NULL, 0);
        }
    }
    settle(rx);
    rx->f.at += length;
    return RX_GO;
}
