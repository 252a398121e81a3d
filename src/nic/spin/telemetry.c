/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts of what handlers do, on the board: sums of their calls for each HPU and each execution
 * context. A context that ends, or that finds no place of its own, counts in `rest`, so that the
 * contexts together have done what the HPUs have done, as far as nobody's interface was closed
 * under its handlers.
 */
#include "nic/spin/telemetry.h"

#include "nic/spin_calls.h"

#include <string.h>

void telemetry_begin(struct le *le)
{
    struct nic_board *board = le->ni->nic->board;
    struct handlers *h = le->handlers;
    unsigned place = 0;
    board->contexts++;
    while (place < BOARD_CONTEXTS && board->context[place].number != 0) {
        place++;
    }
    if (place == BOARD_CONTEXTS) {
        h->board = &board->rest;
        return;
    }
    h->board = &board->context[place];
    *h->board = (struct board_context){
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
    __atomic_store_n(&h->board->number, board->contexts, __ATOMIC_RELEASE);
}

static void add_work(struct board_work *to, const struct board_work *more)
{
    for (unsigned i = 0; i < BOARD_CALLS; i++) {
        to->calls[i] += more->calls[i];
    }
    to->cycles += more->cycles;
    to->core_cycles += more->core_cycles;
    to->faults += more->faults;
    to->failed += more->failed;
}

void telemetry_end(struct nic *nic, struct handlers *h)
{
    struct board_context *rest = &nic->board->rest, *c = h->board;
    h->board = NULL;
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

_Static_assert((int)HPU_CALL_HEADER == BOARD_HEADER && (int)HPU_CALL_PAYLOAD == BOARD_PAYLOAD &&
                   (int)HPU_CALL_COMPLETION == BOARD_COMPLETION,
               "calls and their counts come in one order");

void telemetry_call(struct nic *nic, struct handlers *h, const struct hpu_exec *exec, int code)
{
    struct board_work one = {
        .cycles = exec->cycles,
        .core_cycles = exec->core_cycles,
        .faults = code == SEGV || code == TIMEOUT,
        .failed = code == FAIL,
    };
    one.calls[exec->call] = exec->calls;
    add_work(&nic->board->hpu[exec->hpu], &one);
    if (h != NULL && h->board != NULL) {
        add_work(&h->board->work, &one);
    }
}
