/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers: the calls for a message, and the HPUs that run them. The rules are those of
 * src/nic/spin (handlers.c, packets.c) and src/hpu (sched.c, sched_virtual.c), for native code.
 *
 *   matched ─► header handler ─► payload handlers, one a packet ─► completion handler ─► told ─►
 * end
 *
 * A call takes an HPU for what its handler takes; then the handler does what it does, one after the
 * other, at that time, except that a write takes the HPU until the DMA engine has it.
 */
#include "state.h"

#include "base/array.h"

/* ---- queues of calls ---- */

static void turn_push(struct nic_run *r, struct nic_rank *k, uint32_t entry)
{
    r->entries[entry].turn = NIC_NONE;
    *(k->turn_last == NIC_NONE ? &k->turn_first : &r->entries[k->turn_last].turn) = entry;
    k->turn_last = entry;
}

static void turn_remove(struct nic_run *r, struct nic_rank *k, uint32_t entry)
{
    uint32_t before = NIC_NONE, i = k->turn_first;
    for (; i != entry; i = r->entries[i].turn) {
        before = i;
        r->out->steps++;
    }
    *(before == NIC_NONE ? &k->turn_first : &r->entries[before].turn) = r->entries[entry].turn;
    k->turn_last = k->turn_last == entry ? before : k->turn_last;
}

static void charge(struct nic_run *r, struct nic_rank *k, uint32_t entry, int64_t ns)
{
    struct nic_entry *e = &r->entries[entry];
    e->credit -= ns;
    if (e->credit <= 0 && e->waiting != 0) {
        turn_remove(r, k, entry);
        turn_push(r, k, entry);
    }
}

static int64_t rounds_short(const struct nic_entry *e)
{
    return e->credit > 0 ? 0 : -e->credit / NIC_QUANTUM + 1;
}

/* The entry whose call an HPU begins next; NIC_NONE: no call waits. If none has credit all get as
 * many rounds of it as the one needs that needs fewest. */
static uint32_t whose_turn(struct nic_run *r, const struct nic_rank *k)
{
    uint32_t first = NIC_NONE;
    int64_t rounds = INT64_MAX;
    for (uint32_t i = k->turn_first; i != NIC_NONE; i = r->entries[i].turn) {
        if (rounds_short(&r->entries[i]) < rounds) {
            first = i;
            rounds = rounds_short(&r->entries[i]);
        }
        if (rounds == 0) {
            return i;
        }
    }
    for (uint32_t i = k->turn_first; i != NIC_NONE; i = r->entries[i].turn) {
        struct nic_entry *e = &r->entries[i];
        e->credit += rounds * NIC_QUANTUM;
        e->credit = e->credit < NIC_QUANTUM ? e->credit : NIC_QUANTUM;
    }
    return first;
}

/* ---- HPUs ---- */

static bool open_hpus(struct nic_run *r, uint32_t rank)
{
    struct nic_rank *k = &r->ranks[rank];
    if (k->hpus != NIC_NONE) {
        return true;
    }
    if (!ARRAY_HOLDS(r->hpus, r->hpu_count + r->m->hpus, r->hpu_room, 64)) {
        r->memory_short = true;
        return false;
    }
    k->hpus = (uint32_t)r->hpu_count;
    for (uint32_t i = 0; i < r->m->hpus; i++) {
        r->hpus[r->hpu_count++] = (struct nic_hpu){.rank = rank, .call = NIC_NONE};
    }
    return true;
}

static void look_soon(struct nic_run *r, uint32_t hpu)
{
    struct nic_hpu *h = &r->hpus[hpu];
    if (!h->due && h->call == NIC_NONE) {
        h->due = true;
        nic_at(r, r->now, NIC_LOOK, hpu);
    }
}

/* The idle HPU with the lowest number is to look for a call. */
static void wake(struct nic_run *r, const struct nic_rank *k)
{
    for (uint32_t i = k->hpus; i < k->hpus + r->m->hpus; i++) {
        if (!r->hpus[i].due && r->hpus[i].call == NIC_NONE) {
            look_soon(r, i);
            return;
        }
    }
}

static void submit(struct nic_run *r, uint32_t message, enum goal_type handler, uint64_t bytes)
{
    const struct nic_message *m = &r->messages[message];
    struct nic_entry *e = &r->entries[m->entry];
    struct nic_rank *k = &r->ranks[m->to];
    uint32_t i = r->free_call;
    if (i != NIC_NONE) {
        r->free_call = r->calls[i].next;
    } else if (ARRAY_ROOM(r->calls, r->call_count, r->call_room, 256)) {
        i = (uint32_t)r->call_count++;
    }
    if (i == NIC_NONE || !open_hpus(r, m->to)) {
        r->memory_short = true;
        return;
    }
    r->calls[i] = (struct nic_call){.message = message,
                                    .entry = m->entry,
                                    .next = NIC_NONE,
                                    .bytes = bytes,
                                    .handler = (uint8_t)handler};
    *(e->last == NIC_NONE ? &e->first : &r->calls[e->last].next) = i;
    e->last = i;
    r->crowded |= handler == GOAL_PAYLOAD_HANDLER && e->waiting >= r->m->hpu_queue;
    if (e->waiting++ == 0) {
        turn_push(r, k, m->entry);
    }
    wake(r, k);
}

/* What a handler takes, in ps, for a packet of so many bytes. */
static uint64_t cost(const struct nic_run *r, const struct goal_node *handler, uint64_t bytes)
{
    uint64_t n = handler->size;
    if (handler->tag != 0) {
        n += handler->peer * ((bytes + handler->tag - 1) / handler->tag);
    }
    return handler->cpu != 0 ? n * 1000000 / r->m->clock_mhz : n;
}

static uint32_t part_at(const struct nic_run *r, const struct nic_call *c)
{
    const struct goal_rank *g = &r->ranks[r->entries[c->entry].rank].goal;
    uint32_t i = r->entries[c->entry].node + 1;
    while (g->nodes[i].type != c->handler) {
        i++;
    }
    return i;
}

void nic_look(struct nic_run *r, uint32_t hpu)
{
    struct nic_hpu *h = &r->hpus[hpu];
    struct nic_rank *k = &r->ranks[h->rank];
    h->due = false;
    uint32_t entry = h->call == NIC_NONE ? whose_turn(r, k) : NIC_NONE;
    if (entry == NIC_NONE) {
        return;
    }
    struct nic_entry *e = &r->entries[entry];
    uint32_t i = e->first;
    struct nic_call *c = &r->calls[i];
    e->first = c->next;
    e->last = e->first == NIC_NONE ? NIC_NONE : e->last;
    if (--e->waiting == 0) {
        turn_remove(r, k, entry);
    }
    h->call = i;
    c->began = r->now;
    c->charged = e->expected;
    charge(r, k, entry, c->charged);
    c->step = part_at(r, c);
    uint64_t ps = cost(r, &k->goal.nodes[c->step++], c->bytes);
    r->out->handler_calls++;
    if (ps != 0) {
        nic_at(r, r->now + ps, NIC_GO, hpu);
    } else {
        nic_go(r, hpu);
    }
}

static void put(struct nic_run *r, const struct nic_call *c, uint32_t rank,
                const struct goal_node *n, uint64_t bytes)
{
    struct nic_message m = {.from = rank,
                            .to = n->peer,
                            .node = r->entries[c->entry].node,
                            .tag = n->tag,
                            .entry = NIC_NONE,
                            .counts = NIC_NONE,
                            .answers = NIC_NONE,
                            .bytes = bytes,
                            .kind = NIC_PUT,
                            .class = NIC_REQUEST};
    bool host = n->type == GOAL_DOES_HOST_PUT;
    uint32_t i = nic_new(r, &m);
    if (i == NIC_NONE) {
        return;
    }
    struct nic_rank *k = &r->ranks[rank];
    r->crowded |= !host && k->queued >= r->m->egress_queue;
    k->queued += !host;
    r->messages[i].queued = !host;
    nic_depart(r, i, host ? r->now + 2 * r->m->dma : r->now);
}

/* Does what a handler does next; false: it waits until the DMA engine has it. */
static bool act(struct nic_run *r, uint32_t hpu, struct nic_call *c, const struct goal_node *n)
{
    uint32_t rank = r->hpus[hpu].rank;
    struct nic_rank *k = &r->ranks[rank];
    uint64_t bytes = n->size != 0 || c->handler != GOAL_PAYLOAD_HANDLER ? n->size : c->bytes;
    if (n->type == GOAL_DOES_COUNT) {
        uint32_t counter = nic_counter(r, rank, n->tag);
        if (counter != NIC_NONE) {
            nic_count(r, counter, n->size);
        }
    } else if (n->type == GOAL_DOES_WRITE) {
        uint64_t begin = nic_transfer(r, rank, bytes) - r->m->dma;
        uint64_t end = begin + charges_product(bytes != 0 ? bytes : 1, r->m->dma_byte);
        k->written = end + r->m->dma;
        if (end > r->now) {
            nic_at(r, end, NIC_GO, hpu);
            return false;
        }
    } else {
        put(r, c, rank, n, bytes);
    }
    return true;
}

/* A call has ended: its message goes on, and the HPU looks for another one. */
static void end_call(struct nic_run *r, uint32_t hpu)
{
    uint32_t i = r->hpus[hpu].call, rank = r->hpus[hpu].rank;
    struct nic_call c = r->calls[i];
    struct nic_entry *e = &r->entries[c.entry];
    struct nic_message *m = &r->messages[c.message];
    int64_t took = (int64_t)((r->now - c.began) / 1000);
    r->hpus[hpu].call = NIC_NONE;
    charge(r, &r->ranks[rank], c.entry, took - c.charged);
    e->expected += (took - e->expected) / 8;
    r->calls[i].next = r->free_call;
    r->free_call = i;
    m->calls--;
    m->completed |= c.handler == GOAL_COMPLETION_HANDLER;
    m->processed |= c.handler == GOAL_HEADER_HANDLER;
    nic_go_on(r, c.message);
    if (r->ranks[rank].turn_first != NIC_NONE) {
        look_soon(r, hpu);
    }
}

void nic_go(struct nic_run *r, uint32_t hpu)
{
    struct nic_rank *k = &r->ranks[r->hpus[hpu].rank];
    uint32_t i = r->hpus[hpu].call;
    for (;;) {
        uint32_t step = r->calls[i].step;
        const struct goal_node *n = &k->goal.nodes[step];
        if (step >= k->goal.node_count || n->type < GOAL_DOES_PUT || n->type > GOAL_DOES_COUNT) {
            break;
        }
        struct nic_call c = r->calls[i];
        r->calls[i].step++;
        if (!act(r, hpu, &c, n)) {
            return;
        }
    }
    end_call(r, hpu);
}

/* ---- messages at handlers ---- */

static bool has(const struct nic_entry *e, enum goal_type handler)
{
    return (e->handlers & 1u << (handler - GOAL_HEADER_HANDLER)) != 0;
}

void nic_handle_packet(struct nic_run *r, uint32_t message, uint64_t bytes)
{
    if (has(&r->entries[r->messages[message].entry], GOAL_PAYLOAD_HANDLER) && bytes != 0) {
        r->messages[message].calls++;
        submit(r, message, GOAL_PAYLOAD_HANDLER, bytes);
    }
}

bool nic_handle_header(struct nic_run *r, uint32_t message)
{
    struct nic_message *m = &r->messages[message];
    if (!m->heading) {
        m->heading = true;
        m->processed = !has(&r->entries[m->entry], GOAL_HEADER_HANDLER);
        if (!m->processed) {
            m->calls++;
            submit(r, message, GOAL_HEADER_HANDLER, 0);
        }
    }
    return r->messages[message].processed;
}

bool nic_handle_end(struct nic_run *r, uint32_t message)
{
    struct nic_message *m = &r->messages[message];
    const struct nic_entry *e = &r->entries[m->entry];
    if (m->calls != 0) {
        return false;
    }
    if (!m->completed && has(e, GOAL_COMPLETION_HANDLER)) {
        m->calls++;
        submit(r, message, GOAL_COMPLETION_HANDLER, 0);
        return false;
    }
    if (m->told == 0) {
        uint64_t written = r->ranks[m->to].written;
        m->told = written > r->now        ? written
                  : e->counts == NIC_NONE ? r->now
                                          : nic_transfer(r, m->to, 1);
        if (m->told > r->now) {
            nic_at(r, m->told, NIC_TELL, m->flow);
        }
        m->told = m->told != 0 ? m->told : 1;
    }
    return true;
}
