/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes to a NIC: the entry that takes a message, the DMA engine that writes it, its end. The
 * rules are those of src/fabric/sim (receive.c, dma.c) and src/nic (turn.c, deliver.c).
 *
 *   first packet ─► entry ─► begun: what comes is written ─► done ─► end: event, count, answer
 *
 * Messages of a flow are matched in the order in which they were sent, each when its first packet
 * is ready; packets that are ready before wait for that. They end in that order, too. The NIC
 * begins to write one when the DMA engine has all of those before it (the flow's `frontier`), and
 * an atomic when it is the first. A get is answered when it is the first, and ends when its reply
 * has left.
 */
#include "state.h"

#include "base/array.h"

/* ---- the DMA engine ---- */

/* A transfer takes the engine and host memory; returns when it is written. */
uint64_t nic_transfer(struct nic_run *r, uint32_t rank, uint64_t bytes)
{
    struct nic_rank *k = &r->ranks[rank];
    uint64_t n = bytes != 0 ? bytes : 1;
    uint64_t begin = nic_later(nic_later(r->now, k->dma), k->memory);
    k->memory = begin + charges_product(n, r->m->host_byte);
    k->dma = begin + charges_product(n, r->m->dma_byte);
    return begin + r->m->dma;
}

static bool is_handled(const struct nic_run *r, const struct nic_message *m)
{
    return m->kind == NIC_PUT && m->entry != NIC_NONE && r->entries[m->entry].handlers != 0;
}

/* Whether the engine writes what it carries. */
static bool writes(const struct nic_run *r, const struct nic_message *m)
{
    return m->kind == NIC_SEND || m->kind == NIC_REPLY || m->kind == NIC_DATA ||
           (m->kind == NIC_ANNOUNCE && m->recv == NIC_NONE) ||
           (m->kind == NIC_PUT && m->entry != NIC_NONE && !is_handled(r, m));
}

/* Whether it meets a recv, not an entry. */
static bool is_for_recv(const struct nic_message *m)
{
    return m->kind == NIC_SEND || m->kind == NIC_ANNOUNCE;
}

/* Whether the engine does nothing for it. */
static bool is_idle(const struct nic_message *m)
{
    if (is_for_recv(m)) {
        return m->kind == NIC_ANNOUNCE && m->recv != NIC_NONE;
    }
    return m->kind == NIC_GET || (m->class == NIC_REQUEST && m->entry == NIC_NONE);
}

/* How many of the first n bytes there is room for. */
static uint64_t fitting(const struct nic_run *r, const struct nic_message *m, uint64_t n)
{
    if (m->kind != NIC_PUT) {
        return n;
    }
    uint64_t size = r->entries[m->entry].size;
    return n < size ? n : size;
}

/* Looks at packets that are ready and follow each other in the message, from the first one on: what
 * is to be written is one deposit. */
static void take_row(struct nic_run *r, uint32_t message)
{
    struct nic_message *m = &r->messages[message];
    uint64_t from = r->packets[m->first].offset, end = from;
    while (m->first != NIC_NONE && r->packets[m->first].offset == end) {
        uint32_t i = m->first;
        struct nic_packet *p = &r->packets[i];
        end += p->bytes;
        m->first = p->next;
        p->bytes = r->free_packet;
        r->free_packet = i;
    }
    m->arrived += end - from;
    uint64_t bytes = writes(r, m) ? fitting(r, m, end) - fitting(r, m, from) : 0;
    if (bytes != 0 && m->bytes != 0) {
        m->written = nic_transfer(r, m->to, bytes);
    }
}

/* Has the engine write what has come. The end comes with the last of it, that of what writes
 * nothing with a transfer that tells of it. */
static void take_packets(struct nic_run *r, uint32_t message)
{
    struct nic_message *m = &r->messages[message];
    while (m->first != NIC_NONE) {
        take_row(r, message);
    }
    m->whole = m->arrived >= m->bytes;
    if (!m->whole || is_idle(m)) {
        return;
    }
    if (!writes(r, m) || fitting(r, m, m->bytes) == 0) {
        bool atomic = m->kind == NIC_ATOMIC || m->kind == NIC_FETCH;
        m->written = nic_transfer(r, m->to, atomic ? m->bytes : 1);
    }
    if (m->written > r->now) {
        nic_at(r, m->written, NIC_DONE, message);
    } else {
        m->done = true;
    }
}

/* ---- ends ---- */

/* An answer has nothing but its header, or what a request has asked for. */
static void answer(struct nic_run *r, uint32_t message, enum nic_kind kind, uint64_t ready)
{
    const struct nic_message *m = &r->messages[message];
    bool reply = kind != NIC_ACK;
    uint64_t size = kind == NIC_DATA       ? m->asked
                    : m->entry != NIC_NONE ? r->entries[m->entry].size
                                           : 0;
    struct nic_message back = {.from = m->to,
                               .to = m->from,
                               .node = m->node,
                               .entry = NIC_NONE,
                               .counts = m->counts,
                               .recv = m->recv,
                               .answers = reply ? message : NIC_NONE,
                               .bytes = !reply            ? 0
                                        : m->asked < size ? m->asked
                                                          : size,
                               .kind = kind,
                               .class = NIC_RESPONSE};
    uint32_t i = nic_new(r, &back);
    if (i != NIC_NONE) {
        nic_depart(r, i, ready);
    }
}

static bool is_asked(const struct nic_message *m)
{
    return m->kind == NIC_GET || m->kind == NIC_FETCH || m->kind == NIC_PULL;
}

/* Ends the first message of a flow, whose writing has; false: it waits for its reply. */
static bool end(struct nic_run *r, uint32_t message)
{
    struct nic_message *m = &r->messages[message];
    if (is_asked(m) && !m->replying) {
        m->replying = true;
        answer(r, message, m->kind == NIC_PULL ? NIC_DATA : NIC_REPLY, r->now + r->m->dma);
        m = &r->messages[message];
    }
    if (is_asked(m) && !m->replied) {
        return false;
    }
    uint32_t counts = m->class == NIC_RESPONSE ? m->counts
                      : m->entry != NIC_NONE   ? r->entries[m->entry].counts
                                               : NIC_NONE;
    if (counts != NIC_NONE) {
        nic_count(r, counts, 1);
    }
    if ((m->kind == NIC_PUT || m->kind == NIC_ATOMIC) && m->counts != NIC_NONE) {
        answer(r, message, NIC_ACK, r->now);
        m = &r->messages[message];
    }
    if (m->class == NIC_REQUEST && !is_idle(m) && !is_handled(r, m)) {
        nic_takes_host(r, m->to);
    }
    return true;
}

/* ---- the messages of a flow ---- */

/* Whether all that there is to do before the end is done. */
static bool is_over(const struct nic_run *r, const struct nic_message *m)
{
    if (is_handled(r, m)) {
        return m->told != 0 && m->told <= r->now;
    }
    return is_idle(m) ? m->whole : m->done;
}

/* Whether the DMA engine has all that it writes, so that what is behind it may be written. */
static bool is_issued(const struct nic_run *r, const struct nic_message *m)
{
    return m->begun && m->whole && writes(r, m);
}

/* ---- at handlers ---- */

/* Whether handlers of the entry may begin with a message now: an entry has so many messages of a
 * sender at a time, besides those whose handlers have ended. */
static bool may_begin(const struct nic_run *r, const struct nic_flow *f, uint32_t message)
{
    const struct nic_message *m = &r->messages[message];
    uint32_t before = 0;
    for (uint32_t i = f->first; i != message && before < r->m->entry_messages;
         i = r->messages[i].behind) {
        const struct nic_message *o = &r->messages[i];
        before += is_handled(r, o) && o->entry == m->entry && o->told == 0;
        r->out->steps++;
    }
    return before < r->m->entry_messages;
}

/* Without a payload handler what comes is written by the NIC, and must wait as other puts do. */
static bool may_write(const struct nic_run *r, const struct nic_flow *f, uint32_t message)
{
    uint8_t payload = 1u << (GOAL_PAYLOAD_HANDLER - GOAL_HEADER_HANDLER);
    return (r->entries[r->messages[message].entry].handlers & payload) != 0 ||
           f->first == message || f->frontier == message;
}

/* Goes on with a message at handlers; true: they have ended now. */
static bool handle(struct nic_run *r, uint32_t message)
{
    struct nic_message *m = &r->messages[message];
    const struct nic_flow *f = nic_flow_of(r, m);
    if (!m->begun && !may_begin(r, f, message)) {
        return false;
    }
    m->begun = true;
    if (m->told != 0 || !nic_handle_header(r, message) || !may_write(r, f, message)) {
        return false;
    }
    while (m->first != NIC_NONE) {
        uint32_t i = m->first;
        struct nic_packet *p = &r->packets[i];
        uint64_t n = p->bytes;
        m->arrived += n;
        m->first = p->next;
        p->bytes = r->free_packet;
        r->free_packet = i;
        nic_handle_packet(r, message, m->bytes != 0 ? n : 0);
    }
    m->whole = m->arrived >= m->bytes;
    return m->whole && nic_handle_end(r, message);
}

/* The same; when its handlers have ended those of its entry may begin with the next message. */
static void handle_all(struct nic_run *r, uint32_t message)
{
    while (handle(r, message)) {
        const struct nic_message *m = &r->messages[message];
        const struct nic_flow *f = nic_flow_of(r, m);
        uint32_t next = m->behind, entry = m->entry;
        while (next != f->unmatched &&
               (r->messages[next].begun || r->messages[next].entry != entry)) {
            next = r->messages[next].behind;
            r->out->steps++;
        }
        if (next == f->unmatched) {
            return;
        }
        message = next;
    }
}

/* Whether a message at handlers may end before all that came before it: these are at handlers of
 * other entries, and not both are acknowledged. */
static bool passes(const struct nic_run *r, const struct nic_flow *f, uint32_t message)
{
    const struct nic_message *m = &r->messages[message];
    for (uint32_t i = f->first; i != message; i = r->messages[i].behind) {
        const struct nic_message *o = &r->messages[i];
        r->out->steps++;
        if (!is_handled(r, o) || o->entry == m->entry ||
            (o->counts != NIC_NONE && m->counts != NIC_NONE)) {
            return false;
        }
    }
    return true;
}

/* ---- the NIC begins with a message ---- */

static void begin(struct nic_run *r, uint32_t message)
{
    if (is_handled(r, &r->messages[message])) {
        handle_all(r, message);
    } else if (!r->messages[message].begun) {
        r->messages[message].begun = true;
        take_packets(r, message);
    }
}

/* The entry of a rank that takes a message. */
static void find_entry(struct nic_run *r, struct nic_message *m)
{
    struct nic_rank *k = &r->ranks[m->to];
    struct match_entry found;
    int any = match_find(&k->entries, &r->pool, m->from, m->tag, &found);
    if (any == 1 && r->entries[found.ref].once) {
        any = match_take(&k->entries, &r->pool, m->from, m->tag, &found);
    }
    if (any == 1) {
        m->entry = found.ref;
        r->misfit |= r->entries[found.ref].handlers != 0 && m->kind != NIC_PUT;
        return;
    }
    r->memory_short |= any < 0 || sim_leave(r->out, m->from, m->node, SIM_LEFT_MESSAGE) != 0;
    r->dropped++;
}

/* Messages whose first packet is ready get their entries. What there is nothing to wait for begins.
 */
static void match_all(struct nic_run *r, enum nic_class class, uint32_t flow)
{
    struct nic_flow *f = &r->flows[class].at[flow];
    while (f->unmatched != NIC_NONE && r->messages[f->unmatched].headed) {
        uint32_t i = f->unmatched;
        struct nic_message *m = &r->messages[i];
        f->unmatched = m->behind;
        if (is_for_recv(m)) {
            nic_meet(r, i);
            f = &r->flows[class].at[flow];
            m = &r->messages[i];
        } else if (m->class == NIC_REQUEST && m->kind != NIC_PULL) {
            find_entry(r, m);
        }
        bool handled = is_handled(r, m);
        if (handled) {
            f->mixed |= f->handled != 0 && f->handled_entry != m->entry;
            f->handled++;
            f->handled_entry = m->entry;
        }
        if (m->class == NIC_RESPONSE || is_idle(m) || handled) {
            begin(r, i);
            f = nic_flow_of(r, &r->messages[i]);
        }
    }
}

/* Takes a message that has ended out of its flow; `before` is the one before it. */
static void take_out(struct nic_run *r, struct nic_flow *f, uint32_t before, uint32_t message)
{
    struct nic_message *m = &r->messages[message];
    *(before == NIC_NONE ? &f->first : &r->messages[before].behind) = m->behind;
    f->last = f->last == message ? before : f->last;
    f->frontier = f->frontier == message ? m->behind : f->frontier;
    f->handled -= is_handled(r, m);
    f->mixed &= f->handled != 0;
    if ((is_for_recv(m) && !is_idle(m)) || m->kind == NIC_PULL || m->kind == NIC_DATA) {
        nic_told(r, message);
    } else {
        nic_free(r, message);
    }
}

/* Ends messages at handlers that may end before those that came before them. */
static void end_early(struct nic_run *r, enum nic_class class, uint32_t flow)
{
    struct nic_flow *f = &r->flows[class].at[flow];
    uint32_t before = f->first;
    while (f->mixed && before != NIC_NONE) {
        uint32_t i = r->messages[before].behind;
        if (i == f->unmatched || i == NIC_NONE) {
            return;
        }
        if (is_handled(r, &r->messages[i]) && is_over(r, &r->messages[i]) && passes(r, f, i)) {
            (void)end(r, i);
            f = &r->flows[class].at[flow];
            take_out(r, f, before, i);
        } else {
            before = i;
        }
    }
}

/* Goes on with a flow as far as possible. */
static void go_on(struct nic_run *r, enum nic_class class, uint32_t flow)
{
    match_all(r, class, flow);
    struct nic_flow *f;
    while (f = &r->flows[class].at[flow], f->first != f->unmatched) {
        uint32_t i = f->first;
        begin(r, i);
        if (!is_over(r, &r->messages[i]) || !end(r, i)) {
            break;
        }
        take_out(r, &r->flows[class].at[flow], NIC_NONE, i);
    }
    end_early(r, class, flow);
    f = &r->flows[class].at[flow];
    while (f->frontier != f->unmatched) {
        struct nic_message *m = &r->messages[f->frontier];
        if (is_handled(r, m) || (!m->begun && writes(r, m))) {
            begin(r, f->frontier);
        }
        if (!is_issued(r, m)) {
            return;
        }
        f->frontier = m->behind;
    }
}

void nic_go_on(struct nic_run *r, uint32_t message)
{
    handle_all(r, message);
    go_on(r, (enum nic_class)r->messages[message].class, r->messages[message].flow);
}

void nic_tell(struct nic_run *r, uint32_t flow)
{
    go_on(r, NIC_REQUEST, flow);
}

void nic_done(struct nic_run *r, uint32_t message)
{
    struct nic_message *m = &r->messages[message];
    m->done = true;
    go_on(r, m->class, m->flow);
}

void nic_replied(struct nic_run *r, uint32_t message)
{
    struct nic_message *m = &r->messages[message];
    m->replied = true;
    go_on(r, m->class, m->flow);
}

/* ---- packets ---- */

void nic_ready(struct nic_run *r, uint32_t packet)
{
    struct nic_packet *p = &r->packets[packet];
    uint32_t i = p->message;
    struct nic_message *m = &r->messages[i];
    p->next = p->first ? m->first : NIC_NONE;
    if (p->first || m->first == NIC_NONE) {
        m->first = packet;
    } else {
        r->packets[m->last].next = packet;
    }
    m->last = p->next == NIC_NONE ? packet : m->last;
    m->headed |= p->first;
    if (is_handled(r, m)) {
        handle_all(r, i);
        m = &r->messages[i];
    } else if (m->begun) {
        take_packets(r, i);
    }
    go_on(r, m->class, m->flow);
}
