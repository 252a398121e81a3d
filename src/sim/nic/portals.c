/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of Portals, by the program and triggered. */
#include "state.h"

#include "base/array.h"

/* The counter that a part of an operation names. */
static uint32_t counter_of(struct nic_run *r, uint32_t rank, uint32_t node, enum goal_type type)
{
    const struct goal_node *p = nic_part(&r->ranks[rank].goal, node, type);
    return p != NULL ? nic_counter(r, rank, p->tag) : NIC_NONE;
}

/* What a request carries, and asks for. A compare-and-swap has its operand before its data. */
static void set_bytes(const struct goal_node *n, struct nic_message *m)
{
    m->bytes = n->type == GOAL_GET ? 0 : n->type == GOAL_CAS ? 2 * n->size : n->size;
    m->asked = m->kind == NIC_GET || m->kind == NIC_FETCH ? n->size : 0;
}

static void request(struct nic_run *r, uint32_t rank, uint32_t node, uint64_t ready)
{
    static const uint8_t kinds[GOAL_OPERATIONS] = {
        [GOAL_SEND] = NIC_SEND,     [GOAL_PUT] = NIC_PUT,     [GOAL_GET] = NIC_GET,
        [GOAL_ATOMIC] = NIC_ATOMIC, [GOAL_FETCH] = NIC_FETCH, [GOAL_SWAP] = NIC_FETCH,
        [GOAL_CAS] = NIC_FETCH};
    const struct goal_node *n = &r->ranks[rank].goal.nodes[node];
    struct nic_message m = {.from = rank,
                            .to = n->peer,
                            .node = node,
                            .tag = n->tag,
                            .entry = NIC_NONE,
                            .counts = counter_of(r, rank, node, GOAL_COUNTS),
                            .answers = NIC_NONE,
                            .recv = NIC_NONE,
                            .kind = kinds[n->type],
                            .class = NIC_REQUEST};
    set_bytes(n, &m);
    uint32_t i = nic_new(r, &m);
    if (i != NIC_NONE) {
        nic_depart(r, i, ready);
    }
}

/* The NIC does by itself what a counter has triggered. */
void nic_trigger(struct nic_run *r, uint32_t rank, uint32_t node)
{
    const struct goal_node *n = &r->ranks[rank].goal.nodes[node];
    if (n->type != GOAL_COUNT) {
        request(r, rank, node, r->now + r->m->dma);
        return;
    }
    uint32_t counter = nic_counter(r, rank, n->tag);
    if (counter != NIC_NONE) {
        nic_count(r, counter, n->size);
    }
}

static void append(struct nic_run *r, uint32_t rank, uint32_t node)
{
    struct nic_rank *k = &r->ranks[rank];
    const struct goal_node *n = &k->goal.nodes[node];
    if (!ARRAY_ROOM(r->entries, r->entry_count, r->entry_room, 64) ||
        match_add(&k->entries, &r->pool, n->peer, n->tag, (uint32_t)r->entry_count) != 0) {
        r->memory_short = true;
        return;
    }
    struct nic_entry *e = &r->entries[r->entry_count++];
    *e = (struct nic_entry){.size = n->size,
                            .counts = counter_of(r, rank, node, GOAL_COUNTS),
                            .once = nic_part(&k->goal, node, GOAL_USE_ONCE) != NULL,
                            .rank = rank,
                            .node = node,
                            .first = NIC_NONE,
                            .last = NIC_NONE,
                            .credit = NIC_QUANTUM};
    for (unsigned i = 0; i < 3; i++) {
        bool has = nic_part(&k->goal, node, (enum goal_type)(GOAL_HEADER_HANDLER + i)) != NULL;
        e->handlers |= (uint8_t)(has << i);
    }
    r->misfit_once |= e->once && e->handlers != 0;
}

/* Has an operation wait for a counter; it fires at once if that has come so far. */
static void arm(struct nic_run *r, uint32_t rank, uint32_t node, const struct goal_node *when,
                uint64_t test)
{
    uint32_t counter = nic_counter(r, rank, when->tag);
    if (counter != NIC_NONE) {
        nic_wait(r, counter, when->size, test | node);
        nic_fire(r);
    }
}

bool nic_portals(struct nic_run *r, uint32_t rank, uint32_t node)
{
    struct nic_rank *k = &r->ranks[rank];
    const struct goal_node *n = &k->goal.nodes[node];
    const struct goal_node *when = n->type > GOAL_CALC ? nic_part(&k->goal, node, GOAL_WHEN) : NULL;
    if (n->type == GOAL_TEST) {
        k->tests++;
        arm(r, rank, node, n, NIC_TESTS);
        return false;
    }
    if (when != NULL) {
        arm(r, rank, node, when, 0);
    } else if (n->type == GOAL_APPEND) {
        append(r, rank, node);
    } else if (n->type == GOAL_COUNT) {
        nic_trigger(r, rank, node);
        nic_fire(r);
    } else if (nic_is_long(r, n)) {
        nic_announce(r, rank, node, r->now + r->m->o + r->m->dma);
        nic_take_time(r, rank, NIC_NONE, r->m->o); /* it ends when its data have left */
        return true;
    } else {
        request(r, rank, node, r->now + r->m->o + r->m->dma);
        nic_take_time(r, rank, node, r->m->o);
        return true;
    }
    nic_complete(r, rank, node);
    return false;
}
