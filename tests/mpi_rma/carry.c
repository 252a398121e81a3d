/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of the engine that fail, on a libpinwheel-rma of this program's, which fails when it
 * is told to: the call that has asked for one ends with its error, and the next call finds nothing
 * of it.
 *
 *      sync_lock() ──► lib/mpi-rma/carry.c ──► pw_rma_*() of this file: rank 1's words
 */
#include "window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

struct job job;

static struct slot slots[2]; /* of window 0 at the ranks */
static struct peer other;
static uint32_t ended = UINT32_MAX;
static unsigned adds, fetches, swaps;

/* How the next operations fail, and when: at once, or as their request tells. */
static int fails;
static bool later;
static bool only_swaps;
static uint32_t until; /* not 0: they begin to fail after so many turns of waiting */
static bool dies;      /* instead of that a rank is known to have ended */

/* ---- What carry.c uses of the other files ---- */

struct pw_rma_key *peer_control(struct peer *peer)
{
    return peer == &other ? (struct pw_rma_key *)&other : NULL;
}

void job_idle(struct idle *i)
{
    if (++i->turns == until) {
        fails = dies ? 0 : -EPIPE;
        slots[0].shared[SYNC_ENDED] = dies ? 2 : 0;
    }
}

void job_take_notes(void)
{
}

void watch_turn(struct window *w, const struct sync *s, struct watch *t)
{
    (void)w, (void)s;
    MUST(t->turns++ < 100000); /* nothing here takes long */
}

void watch_ended(const struct window *w, uint32_t rank)
{
    (void)w;
    ended = rank;
}

/* ---- A library of remote memory access to rank 1 ---- */

static int end_of(struct pw_rma_request *request)
{
    int code = fails;
    if (request != NULL) {
        request->internal[0] = (uint64_t)(later ? code : 0);
    }
    return later ? 0 : code;
}

static uint64_t *word_at(uint64_t offset)
{
    MUST(offset % 8 == 0 && offset < sizeof(struct slot));
    return (uint64_t *)((char *)&slots[1] + offset);
}

int pw_rma_accumulate(struct pw_rma_key *key, const void *from, size_t count, uint64_t offset,
                      enum pw_rma_op op, enum pw_rma_type type, struct pw_rma_request *request)
{
    MUST(key == (struct pw_rma_key *)&other && count == 1 && op == PW_RMA_SUM &&
         type == PW_RMA_UINT64);
    uint64_t value;
    memcpy(&value, from, 8);
    *word_at(offset) += value;
    adds++;
    return end_of(request);
}

int pw_rma_fetch_op(struct pw_rma_key *key, const void *from, void *result, uint64_t offset,
                    enum pw_rma_op op, enum pw_rma_type type, struct pw_rma_request *request)
{
    MUST(key == (struct pw_rma_key *)&other && op == PW_RMA_SUM && type == PW_RMA_UINT64);
    fetches++;
    if (fails != 0 && !only_swaps) {
        memset(result, 0x5a, 8); /* what an operation that fails leaves is no value */
    } else {
        uint64_t value;
        memcpy(&value, from, 8);
        memcpy(result, word_at(offset), 8);
        *word_at(offset) += value;
    }
    return only_swaps ? (request->internal[0] = 0, 0) : end_of(request);
}

int pw_rma_compare_swap(struct pw_rma_key *key, const void *value, const void *compare,
                        void *result, uint64_t offset, enum pw_rma_type type,
                        struct pw_rma_request *request)
{
    MUST(key == (struct pw_rma_key *)&other && type == PW_RMA_UINT64);
    swaps++;
    if (fails != 0) {
        memset(result, 0x5a, 8);
    } else {
        memcpy(result, word_at(offset), 8);
        if (memcmp(compare, word_at(offset), 8) == 0) {
            memcpy(word_at(offset), value, 8);
        }
    }
    return end_of(request);
}

int pw_rma_put(struct pw_rma_key *key, const void *from, size_t length, uint64_t offset,
               struct pw_rma_request *request)
{
    (void)key;
    memcpy(word_at(offset), from, length);
    return end_of(request);
}

int pw_notify_put(struct pw_rma_key *key, const void *from, size_t length, uint64_t offset,
                  uint32_t tag, struct pw_rma_request *request)
{
    (void)key, (void)from, (void)length, (void)offset, (void)tag;
    return end_of(request);
}

int pw_rma_wait(struct pw_rma_request *request)
{
    return (int)request->internal[0];
}

void pw_rma_flush_local(struct pw_rma_peer *peer)
{
    (void)peer;
}

struct pw_rma_peer *pw_rma_key_peer(const struct pw_rma_key *key)
{
    return (struct pw_rma_peer *)(uintptr_t)key;
}

/* ---- Rank 0's window, whose master is rank 1 ---- */

static struct window window;

static void begin(void)
{
    static struct peer self, *peers[] = {&self, &other};
    static struct ranks ranks = {.size = 2, .rank = 0, .peers = peers};
    memset(slots, 0, sizeof(slots));
    memset(&window, 0, sizeof(window));
    window.ranks = &ranks;
    window.slot = &slots[0];
    MUST(sync_init(&window.sync, &carry_ops, &window, slots[0].shared, 0, 2, 1) == 0);
    sync_fini(&window.sync);
    window.sync.agreement = NULL;
    adds = fetches = swaps = 0;
    fails = 0;
    ended = UINT32_MAX;
}

static int lock(bool exclusive)
{
    sync_lock(&window.sync, 1, exclusive);
    return carry_wait(&window, &window.sync);
}

static int lock_all(void)
{
    sync_lock_all(&window.sync);
    return carry_wait(&window, &window.sync);
}

/* All locks are there, at the cost that they have alone. */
static void all_is_well(void)
{
    fails = 0;
    adds = fetches = swaps = 0;
    MUST(lock(true) == 0 && fetches == 1 && swaps == 1 && adds == 0);
    MUST(slots[1].shared[SYNC_LOCK] == 1 && slots[1].shared[SYNC_MASTER] == 1);
    sync_unlock(&window.sync, 1, true);
    MUST(sync_error(&window.sync) == 0 && slots[1].shared[SYNC_LOCK] == 0);
    fetches = 0;
    MUST(lock(false) == 0 && fetches == 1);
    sync_unlock(&window.sync, 1, false);
    MUST(slots[1].shared[SYNC_LOCK] == 0 && slots[1].shared[SYNC_MASTER] == 0);
    fetches = 0;
    MUST(lock_all() == 0 && fetches == 1 && slots[1].shared[SYNC_MASTER] == UINT64_C(1) << 32);
    sync_unlock_all(&window.sync);
    MUST(slots[1].shared[SYNC_MASTER] == 0);
}

/* Somebody else has what is asked for, and the waiting call fails between two tries. */
static void failing_while_it_waits(void)
{
    for (uint32_t turns = 1; turns < 60; turns++) {
        for (int call = 0; call < 6; call++) {
            begin();
            dies = call > 2;
            slots[1].shared[SYNC_LOCK] = call % 3 == 0 ? 2 : 1;
            slots[1].shared[SYNC_MASTER] = call % 3 == 2 ? 1 : 0;
            until = turns;
            MUST((call % 3 == 0 ? lock(true) : call % 3 == 1 ? lock(false) : lock_all()) == -EPIPE);
            MUST(!window.answered && window.pause == 0);
            until = 0;
            memset(slots, 0, sizeof(slots));
            all_is_well();
        }
    }
}

static void failing(int code, bool tells_later)
{
    for (int call = 0; call < 3; call++) {
        begin();
        fails = code;
        later = tells_later;
        MUST((call == 0 ? lock(true) : call == 1 ? lock(false) : lock_all()) == code);
        MUST(fetches == 1 && swaps == 0);
        MUST(ended == (code == -EPIPE ? 1 : UINT32_MAX));
        all_is_well();
    }
    /* the second operation of an exclusive lock, which an answer begins */
    begin();
    fails = code;
    only_swaps = true;
    MUST(lock(true) == code && swaps == 1 && fetches == 1);
    MUST(!window.answered);
    only_swaps = false;
    memset(slots, 0, sizeof(slots));
    all_is_well();
    /* and as the first one: another one of this process has the master's */
    begin();
    window.sync.exclusives = 1;
    fails = code;
    MUST(lock(true) == code && swaps == 1 && fetches == 0);
    window.sync.exclusives = 0;
    all_is_well();
}

int main(void)
{
    begin();
    all_is_well();
    for (int i = 0; i < 2; i++) {
        failing(-EIO, i == 1);
        failing(-ENOMEM, i == 1);
        failing(-EPIPE, i == 1);
    }
    failing_while_it_waits();
    return 0;
}
