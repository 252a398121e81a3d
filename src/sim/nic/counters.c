/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: what they count, and what waits for that. */
#include "state.h"

#include "base/array.h"
#include "sim/util/random.h"

static uint32_t *slot_of(const struct nic_counters *c, uint32_t rank, uint32_t number)
{
    size_t i = (size_t)goal_mix(((uint64_t)rank << 32 | number) + 1) & (c->slot_room - 1);
    while (c->slots[i] != 0 &&
           (c->at[c->slots[i] - 1].rank != rank || c->at[c->slots[i] - 1].number != number)) {
        i = (i + 1) & (c->slot_room - 1);
    }
    return &c->slots[i];
}

static bool grow(struct nic_counters *c)
{
    size_t room = c->slot_room != 0 ? 2 * c->slot_room : 256;
    uint32_t *slots = calloc(room, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    free(c->slots);
    c->slots = slots;
    c->slot_room = room;
    for (size_t i = 0; i < c->count; i++) {
        *slot_of(c, c->at[i].rank, c->at[i].number) = (uint32_t)i + 1;
    }
    return true;
}

uint32_t nic_counter(struct nic_run *r, uint32_t rank, uint32_t number)
{
    struct nic_counters *c = &r->counters;
    if ((2 * c->count >= c->slot_room && !grow(c)) || !ARRAY_ROOM(c->at, c->count, c->room, 64)) {
        r->memory_short = true;
        return NIC_NONE;
    }
    uint32_t *slot = slot_of(c, rank, number);
    if (*slot == 0) {
        c->at[c->count] = (struct nic_counter){.rank = rank, .number = number};
        *slot = (uint32_t)++c->count;
    }
    return *slot - 1;
}

/* Lets what waits for no more than the counter's value go on. */
static void look(struct nic_run *r, struct nic_counter *c)
{
    struct sim_event e;
    while (c->waiting.count != 0 && c->waiting.events[0].time <= c->value) {
        (void)sim_queue_pop(&c->waiting, &e);
        if ((e.ref & NIC_TESTS) != 0) {
            nic_passed(r, c->rank, (uint32_t)e.ref, e.key);
        } else if (ARRAY_ROOM(r->fired, r->fired_count, r->fired_room, 64)) {
            r->fired[r->fired_count++] = (struct nic_fired){c->rank, (uint32_t)e.ref};
        } else {
            r->memory_short = true;
        }
    }
}

void nic_count(struct nic_run *r, uint32_t counter, uint64_t more)
{
    struct nic_counter *c = &r->counters.at[counter];
    c->value += more;
    look(r, c);
}

void nic_wait(struct nic_run *r, uint32_t counter, uint64_t threshold, uint64_t node)
{
    struct nic_counter *c = &r->counters.at[counter];
    if (sim_queue_push(&c->waiting, threshold, r->serial++, node) != 0) {
        r->memory_short = true;
    }
    look(r, c);
}

void nic_fire(struct nic_run *r)
{
    while (r->fired_first != r->fired_count) {
        struct nic_fired f = r->fired[r->fired_first++];
        nic_trigger(r, f.rank, f.node);
    }
    r->fired_first = r->fired_count = 0;
}

void nic_counters_free(struct nic_counters *c)
{
    for (size_t i = 0; i < c->count; i++) {
        sim_queue_free(&c->at[i].waiting);
    }
    free(c->at);
    free(c->slots);
}
