/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Payload handlers on HPUs that are threads: a message's packets are queued as they come, and
 * their handlers run side by side.
 *
 *      wire packets     | ended | ended | runs  | ended | queued|       (not here yet)
 *                                       ▲ held                  ▲ moved
 *      the fabric's again ◄─────────────┘ in use ──────────────►
 *
 * A packet lies where the fabric put it, and its handler reads and writes it there; so the
 * fabric gets places back in order only, up to the first packet whose handler has not ended
 * (`held`). A packet that had to be put together in a bounce buffer counts as lying in the wire
 * packet that completed it. The queue of the execution context is bounded (PINWHEEL_HPU_QUEUE):
 * when it is full, the message waits, then its channel's cells run out, then its sender waits.
 *
 * Invariants, under the NIC's lock: `outstanding` counts the packets in `packets` that have not
 * ended; the first one in the list has not; the message does not end, nor does its completion
 * handler begin, before `outstanding` is 0.
 */
#include "nic/rx.h"

#include <stdlib.h>

struct packet {
    struct hpu_exec exec;
    struct list link;
    struct rx *rx; /* NULL: its NI is closed, nobody wants to know */
    uint64_t held; /* where the wire packet begins that it lies in */
    size_t length;
    uint8_t *bounce; /* NULL: it lies in the wire packet */
    bool ended;
};

bool packets_room(const struct rx *rx)
{
    struct nic *nic = rx->peer->nic;
    return hpu_queue_waiting(nic->sched, &rx->le->handlers->queue) <
           (uint64_t)nic->process->options.number[OPT_HPU_QUEUE];
}

static struct packet *packet_at(struct list *l)
{
    return container_of(l, struct packet, link);
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

/* Lets go of the packets at the front that have ended. */
static void settle(struct rx *rx)
{
    struct list *packets = &rx->run->packets;
    while (!list_empty(packets) && packet_at(packets->next)->ended) {
        free_packet(packet_at(packets->next));
    }
    rx->f.held = list_empty(packets) ? FABRIC_HELD_NOTHING : packet_at(packets->next)->held;
}

void packet_ended(struct nic *nic, struct hpu_exec *exec, int code)
{
    struct packet *p = container_of(exec, struct packet, exec);
    struct rx *rx = p->rx;
    telemetry_call(nic, rx != NULL ? rx->le->handlers : NULL, exec, code);
    if (rx == NULL) {
        free_packet(p);
        return;
    }
    note_end(p);
    handlers_payload_result(rx, code, exec->arg.payload.base, p->length);
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
    for (struct list *l = run->packets.next; l != &run->packets; l = l->next) {
        struct packet *p = packet_at(l);
        if (!p->ended && hpu_sched_withdraw(run->nic->sched, &p->exec)) {
            note_end(p);
        }
    }
}

void packets_end(struct rx *rx)
{
    struct handler_run *run = rx->run;
    for (struct list *l = run->packets.next; l != &run->packets; l = l->next) {
        hpu_sched_end(run->nic->sched, &packet_at(l)->exec);
    }
}

void packets_cancel(struct rx *rx)
{
    struct handler_run *run = rx->run;
    while (run->outstanding != 0 || !list_empty(&run->packets)) {
        struct packet *p = packet_at(run->packets.next);
        run->outstanding -= !p->ended;
        if (p->ended || hpu_sched_cancel(run->nic->sched, &p->exec)) {
            free_packet(p);
        } else {
            list_remove(&p->link);
            p->rx = NULL;
            rx->le->handlers->orphaned = true;
        }
    }
    rx->f.held = FABRIC_HELD_NOTHING;
}

/* Queues the handler of the packet that is complete. */
static bool queue_packet(struct rx *rx, uint64_t offset)
{
    struct handler_run *run = rx->run;
    struct handlers *h = rx->le->handlers;
    struct packet *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return false;
    }
    p->rx = rx;
    p->held = offset;
    p->length = run->packet_length;
    if (run->packet == run->bounce) {
        p->bounce = run->bounce;
        run->bounce = NULL;
    }
    p->exec.env = run->exec.env;
    ptl_payload_t payload = {
        .length = run->packet_length,
        .offset = run->emitted,
        .base = (uint8_t *)run->packet,
    };
    hpu_exec_payload(run->nic->hpus, &p->exec, h->payload, &payload);
    run->emitted += run->packet_length;
    run->outstanding++;
    list_push_back(&run->packets, &p->link);
    hpu_sched_submit(run->nic->sched, &h->queue, &p->exec);
    return true;
}

static bool has_bounce(struct handler_run *run)
{
    if (run->bounce == NULL) {
        run->bounce = aligned_alloc(64, run->nic->packet_size);
    }
    return run->bounce != NULL;
}

enum rx_step packets_take(struct rx *rx, uint8_t *data, uint64_t offset, size_t length)
{
    struct handler_run *run = rx->run;
    while (run->consumed < length && rx->f.sink == RX_PACKETS) {
        if (!packets_room(rx)) {
            if (handlers_no_room(rx)) {
                break;
            }
            rx->f.elsewhere = true;
            return RX_WAIT;
        }
        run->stalled = 0;
        if (!has_bounce(run) ||
            (handlers_next_packet(rx, data, offset, length) && !queue_packet(rx, offset))) {
            handlers_payload_result(rx, FAIL, NULL, 0); /* memory is short */
        }
    }
    settle(rx);
    return RX_GO;
}
