/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive machine (rx_machine.h): the steps that are the same for all sources of messages. */
#include "fabric/rx_machine.h"

#include "base/nic_copy.h"

#define TURNS 64 /* spans of one message before other messages have their turn */

static void begin_payload(struct rx_machine *m)
{
    m->moved = 0;
    m->cursor = (struct vector_cursor){0};
    m->rx->held = FABRIC_HELD_NOTHING;
    m->rx->elsewhere = false;
    m->phase = RX_PAYLOAD;
}

void rx_machine_begin(struct rx_machine *m)
{
    begin_payload(m);
    m->rx->first = NULL;
    m->rx->sink = RX_DISCARD;
    m->rx->vector = NULL;
    m->rx->matched = false;
    m->phase = RX_HEADER;
}

static void pass(struct rx_machine *m, uint64_t n, bool kept)
{
    m->moved += n;
    m->source->ops->pass(m, n, kept);
}

bool rx_machine_short(struct rx_machine *m, enum rx_step step)
{
    switch (step) {
    case RX_GO:
        return false;
    case RX_HEADED:
        begin_payload(m);
        m->rx->matched = true;
        return true;
    case RX_WAIT:
        rx_machine_begin(m);
        m->rx->matched = true;
        pass(m, m->rx->length, false);
        m->phase = RX_DONE;
        return true;
    default:
        rx_machine_begin(m);
        return true;
    }
}

/* Asks the source for the first packet; false: it has not come yet. If the sender could not read
 * the payload, only the header comes. */
static bool find_first(struct rx_machine *m)
{
    struct fabric_rx *rx = m->rx;
    struct rx_span here = {NULL, 0};
    if (rx->length != 0) {
        here = m->source->ops->here(m, true);
        if (here.bytes == 0 && m->status == FABRIC_OK) {
            return false;
        }
    }
    rx->torn = here.data == NULL || m->status != FABRIC_OK;
    rx->first = rx->torn ? NULL : here.data;
    return true;
}

static bool step_header(struct rx_machine *m)
{
    const struct rx_source *s = m->source;
    enum rx_step step = s->up->rx_header(s->np, m->rx);
    if (step == RX_FIRST && m->rx->first == NULL) {
        if (!find_first(m)) {
            return false;
        }
        step = s->up->rx_header(s->np, m->rx);
    }
    m->waiting = step == RX_WAIT;
    m->turn = step == RX_TURN;
    if (step != RX_GO) {
        return false;
    }
    m->rx->matched = true;
    m->phase = RX_PAYLOAD;
    return true;
}

void rx_machine_place(struct rx_machine *m, uint64_t at, const uint8_t *data, uint64_t n)
{
    const struct fabric_rx *rx = m->rx;
    if (m->status != FABRIC_OK || rx->sink != RX_DEPOSIT || at >= rx->room) {
        return;
    }
    uint64_t fit = rx->room - at < n ? rx->room - at : n;
    int rc = rx->vector != NULL ? vector_scatter(rx->vector, &m->cursor, rx->skip + at, data, fit)
                                : nic_copy((void *)((uintptr_t)rx->base + at), data, fit);
    if (rc != 0) {
        m->status = FABRIC_SEGV;
    }
}

/* Whether the NIC gets the next packet: after an error only the one in which it has suspended a
 * handler. */
static inline bool takes_packet(const struct rx_machine *m, bool suspended)
{
    return m->rx->sink == RX_PACKETS && (m->status == FABRIC_OK || suspended);
}

/* Moves the next span of payload. False: none has come, or the NIC wants to wait with it. */
static bool move_span(struct rx_machine *m, bool suspended, bool *moved)
{
    const struct rx_source *s = m->source;
    bool packets = takes_packet(m, suspended), kept = false;
    struct rx_span here = {NULL, 0};
    if (packets || m->status != FABRIC_UNDELIVERABLE) {
        here = s->ops->here(m, packets);
    }
    if (here.data == NULL) {
        bool never = m->status == FABRIC_UNDELIVERABLE;
        m->moved = never ? m->rx->length : m->moved + here.bytes;
        *moved |= never || here.bytes != 0;
        return never || here.bytes != 0;
    }
    if (packets && takes_packet(m, suspended)) {
        enum rx_step step = s->up->rx_packet(s->np, m->rx, here.data, m->moved, here.bytes);
        m->waiting = step == RX_WAIT;
        kept = step == RX_KEPT;
        here.bytes = m->waiting ? m->rx->taken : here.bytes;
    } else {
        rx_machine_place(m, m->moved, here.data, here.bytes);
    }
    if (here.bytes != 0) {
        pass(m, here.bytes, kept);
        *moved = true;
    }
    return !m->waiting;
}

static bool step_done(struct rx_machine *m)
{
    const struct rx_source *s = m->source;
    m->waiting = s->up->rx_done(s->np, m->rx, m->status) == RX_WAIT;
    if (m->waiting) {
        return false;
    }
    m->rx->held = FABRIC_HELD_NOTHING;
    m->rx->torn = false;
    m->phase = RX_IDLE;
    s->ops->over(m);
    return true;
}

bool rx_machine_go_on(struct rx_machine *m)
{
    bool moved = m->source->ops->settle(m), suspended = m->phase == RX_PAYLOAD && m->waiting;
    m->waiting = m->turn = false;
    if (m->phase == RX_HEADER) {
        if (!step_header(m)) {
            return moved;
        }
        moved = true;
    }
    if (m->phase == RX_PAYLOAD) {
        for (unsigned n = 0; m->moved < m->rx->length; n++) {
            if (n == TURNS || !move_span(m, suspended && n == 0, &moved)) {
                return moved;
            }
        }
        m->phase = RX_DONE;
        moved = true;
    }
    return (!m->rx->behind && step_done(m)) || moved;
}

bool rx_machine_cut(struct rx_machine *m)
{
    if (m->phase == RX_IDLE || m->busy || m->waiting) {
        return false;
    }
    m->busy = true;
    m->rx->behind = false;
    if (m->phase == RX_HEADER) {
        m->rx->torn = true;
        m->source->up->rx_header(m->source->np, m->rx);
    }
    m->status = FABRIC_UNDELIVERABLE;
    m->moved = m->rx->length;
    m->phase = RX_DONE;
    bool ended = step_done(m);
    m->busy = false;
    return ended;
}

void rx_machine_sever(struct rx_machine *m)
{
    if (m->phase != RX_IDLE) {
        m->status = FABRIC_UNDELIVERABLE;
        m->rx->torn = m->phase == RX_HEADER && !m->waiting;
    }
}

/* ---- whole messages ---- */

static struct rx_span whole_here(struct rx_machine *m, bool packets)
{
    const struct rx_whole *w = container_of(m, struct rx_whole, m);
    return (struct rx_span){w->data + m->moved, m->rx->length - m->moved};
}

static void whole_pass(struct rx_machine *m, uint64_t n, bool kept)
{
}

static bool whole_settle(struct rx_machine *m)
{
    return false;
}

static void whole_over(struct rx_machine *m)
{
}

void rx_whole_init(struct rx_whole *w, struct rx_source from, struct fabric_rx *rx, uint8_t *data)
{
    static const struct rx_source_ops ops = {whole_here, whole_pass, whole_settle, whole_over};
    *w = (struct rx_whole){.source = from, .data = data};
    w->source.ops = &ops;
    w->m.source = &w->source;
    w->m.rx = rx;
}
