/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of messages at handlers. A NIC has blocks of a few kinds, by size, and for each kind a
 * list of the blocks that no message uses. All blocks count as HPU memory (PINWHEEL_HPU_MEMORY).
 *
 *      | state, zeroed when a message takes the block | user header, if it is kept |
 *
 * Invariants:
 *
 *   - A message has a block from just before its header handler until it ends. rx_reset() takes the
 *     block back, or handlers_cancel() if the message is cut off. Meanwhile it is run->block, and
 *     no other message has it.
 *   - A handler that runs on while its message is gone keeps `run`, and so the block.
 *   - While any entry's messages take blocks of a kind, there is at least one block of that kind.
 *     So a message that waits for a block waits for another message to end, never for memory that
 *     no message gives back.
 */
#include "nic/spin/blocks.h"

#include "nic/spin/handlers.h"
#include "nic/spin/hpu_memory.h"
#include "nic/spin_calls.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of kind 1; each further kind has twice as many as the one before. */
#define BLOCK_LEAST 64
#define OPERAND_MOST 32 /* bytes of a swap's operand, which handlers see as a user header */

/* A block that no message uses. */
struct block {
    struct block *next;
};

static uint64_t bytes_of(unsigned kind)
{
    return (uint64_t)BLOCK_LEAST << (kind - 1);
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + BLOCK_LEAST - 1) / BLOCK_LEAST * BLOCK_LEAST;
}

unsigned block_kind(const struct handlers *h)
{
    uint64_t bytes = round_up(h->message_state);
    unsigned kind = 1;
    if (h->keeps_header) {
        bytes += round_up(h->user_header > OPERAND_MOST ? h->user_header : OPERAND_MOST);
    }
    while (bytes_of(kind) < bytes) {
        kind++;
    }
    return bytes == 0 ? 0 : kind;
}

/* ---- The blocks of a NIC ---- */

static void free_unused(struct nic *nic, unsigned kind, unsigned least)
{
    struct block_list *list = &nic->blocks[kind];
    while (list->unused != NULL && list->count > least) {
        struct block *b = list->unused;
        list->unused = b->next;
        list->count--;
        nic->hpu_memory_used -= bytes_of(kind);
        free(b);
    }
}

void blocks_trim(struct nic *nic)
{
    for (unsigned kind = 1; kind < BLOCK_KINDS; kind++) {
        free_unused(nic, kind, nic->blocks[kind].entries != 0);
    }
}

static struct block *new_block(struct nic *nic, unsigned kind)
{
    struct block *b =
        hpu_memory_has(nic, bytes_of(kind)) ? aligned_alloc(64, bytes_of(kind)) : NULL;
    if (b != NULL) {
        nic->hpu_memory_used += bytes_of(kind);
        nic->blocks[kind].count++;
    }
    return b;
}

static void put_back(struct nic *nic, unsigned kind, struct block *b)
{
    struct block_list *list = &nic->blocks[kind];
    b->next = list->unused;
    list->unused = b;
    if (list->entries == 0) {
        free_unused(nic, kind, 0);
    }
}

bool blocks_begin(struct nic *nic, unsigned kind)
{
    struct block_list *list = &nic->blocks[kind];
    if (kind == 0) {
        return true;
    }
    if (list->count == 0) {
        struct block *b = new_block(nic, kind);
        if (b == NULL) {
            return false;
        }
        b->next = NULL;
        list->unused = b;
    }
    list->entries++;
    return true;
}

void blocks_end(struct nic *nic, unsigned kind)
{
    if (kind != 0 && --nic->blocks[kind].entries == 0) {
        free_unused(nic, kind, 0);
    }
}

/* ---- The block of a message ---- */

/* Takes a block for a message. False: no block is free, and PINWHEEL_HPU_MEMORY has no room for one
 * more. */
static bool take(struct rx *rx)
{
    struct handler_run *run = rx->run;
    const struct handlers *h = rx->at.le->handlers;
    struct block_list *list = &run->nic->blocks[h->block];
    struct block *b = list->unused;
    if (b != NULL) {
        list->unused = b->next;
    } else {
        b = new_block(run->nic, h->block);
    }
    if (b == NULL) {
        return false;
    }
    memset(b, 0, h->message_state);
    run->stalled = 0;
    run->block = b;
    run->block_kind = h->block;
    run->state = h->message_state != 0 ? b : NULL;
    run->state_length = h->message_state;
    return true;
}

/* Whether the user header is still to be copied into the block. */
static bool keeps(const struct rx *rx)
{
    const struct handler_run *run = rx->run;
    return rx->at.le->handlers->keeps_header && run->user_header != 0 && run->user_copy == NULL;
}

bool block_ready(struct rx *rx, enum rx_step *step)
{
    struct handler_run *run = rx->run;
    *step = RX_GO;
    if (run->block == NULL && !rx->tick && !take(rx)) {
        if (!handlers_no_room(rx)) {
            rx->f.elsewhere = run->nic->sched != NULL;
            *step = RX_WAIT;
        }
        return false;
    }
    if (keeps(rx) && rx->f.first == NULL) {
        *step = RX_FIRST;
        return false;
    }
    if (keeps(rx)) {
        run->user_copy = (uint8_t *)run->block + round_up(run->state_length);
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a tick has no user header */
        memcpy(run->user_copy, rx->f.first, run->user_header);
    }
    return true;
}

void block_give(struct handler_run *run)
{
    if (run->block != NULL) {
        put_back(run->nic, run->block_kind, run->block);
        run->block = run->state = run->user_copy = NULL;
        run->state_length = 0;
    }
}
