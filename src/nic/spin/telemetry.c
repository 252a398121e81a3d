/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts of what handlers do, on the stats page: sums of their calls, for each HPU and for each
 * execution context. A context that ends, or that finds no place of its own, counts in `rest`. So
 * the sums over contexts and over HPUs are equal, except for calls that ran on after their NI was
 * closed.
 */
#include "nic/spin/telemetry.h"

#include "nic/spin_calls.h"

#include <string.h>

void telemetry_begin(struct le *le)
{
    struct nic_stats *stats = le->ni->nic->stats;
    struct handlers *h = le->handlers;
    unsigned place = 0;
    stats->contexts++;
    while (place < STATS_CONTEXTS && stats->context[place].number != 0) {
        place++;
    }
    if (place == STATS_CONTEXTS) {
        h->stats = &stats->rest;
        return;
    }
    h->stats = &stats->context[place];
    *h->stats = (struct stats_context){
        .handle = le->slot.handle,
        .pt_index = le->pt_index,
        .kind = le->ni->kind,
        .inactive = h->inactive,
        .match_bits = le->match.bits,
        .ignore_bits = le->match.ignore,
        .hpu_mask = h->hpu_mask,
        .memory = (uintptr_t)h->memory->mem->base,
        .memory_length = h->memory->mem->length,
    };
    __atomic_store_n(&h->stats->number, stats->contexts, __ATOMIC_RELEASE);
}

static void add_work(struct stats_work *to, const struct stats_work *more)
{
    for (unsigned i = 0; i < STATS_CALLS; i++) {
        to->calls[i] += more->calls[i];
    }
    to->cycles += more->cycles;
    to->core_cycles += more->core_cycles;
    to->faults += more->faults;
    to->failed += more->failed;
}

void telemetry_end(struct nic *nic, struct handlers *h)
{
    struct stats_context *rest = &nic->stats->rest, *c = h->stats;
    h->stats = NULL;
    if (c == NULL || c == rest) {
        return;
    }
    add_work(&rest->work, &c->work);
    rest->messages += c->messages;
    rest->dropped_bytes += c->dropped_bytes;
    rest->refused += c->refused;
    rest->unsent += c->unsent;
    __atomic_store_n(&c->number, 0, __ATOMIC_RELEASE);
}

_Static_assert((int)HPU_CALL_HEADER == STATS_HEADER && (int)HPU_CALL_PAYLOAD == STATS_PAYLOAD &&
                   (int)HPU_CALL_COMPLETION == STATS_COMPLETION,
               "calls and their counts come in one order");

static void add_call(struct stats_work *to, const struct hpu_exec *exec, int code)
{
    to->calls[exec->call] += exec->calls;
    to->cycles += exec->cycles;
    to->core_cycles += exec->core_cycles;
    to->faults += code == SEGV || code == TIMEOUT;
    to->failed += code == FAIL;
}

void telemetry_call(struct nic *nic, struct handlers *h, const struct hpu_exec *exec, int code)
{
    add_call(&nic->stats->hpu[exec->hpu], exec, code);
    if (h != NULL && h->stats != NULL) {
        add_call(&h->stats->work, exec, code);
    }
}
