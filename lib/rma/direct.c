/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts and gets on mapped memory, and flushes of it. One word at natural alignment is one load or
 * one store; longer ones are copies in no order. A store may wait in its processor behind later
 * loads of its thread: that is what a flush is for.
 */
#include "inside.h"

#include <string.h>

enum mapping direct_find(struct pw_rma_key *key)
{
    enum mapping m = MAP_NEW;
    if (!atomic_compare_exchange_strong(&key->mapping, &m, MAP_ASKED)) {
        return m;
    }
    int rc = key->most != WAY_DIRECT ? -ECANCELED : key->is.token == 0 ? -ENOTSUP : meet_owner(key);
    key->reason = rc;
    m = rc != 0 ? MAP_NONE : key->reserved != NULL ? MAP_BUCKETS : MAP_ALL;
    atomic_store_explicit(&key->mapping, m, memory_order_release);
    return m;
}

#define AS(type, p) ((type *)(void *)(p))

bool direct_put(struct pw_rma_key *key, const void *from, size_t length, uint64_t offset)
{
    struct pw_firehose_request held;
    char *to = direct_begin(key, offset, length, &held);
    if (to == NULL) {
        return false;
    }
    if (((uintptr_t)to & (length - 1)) == 0 && length == 8) {
        uint64_t word;
        memcpy(&word, from, 8);
        __atomic_store_n(AS(uint64_t, to), word, __ATOMIC_RELEASE);
    } else if (((uintptr_t)to & (length - 1)) == 0 && length == 4) {
        uint32_t word;
        memcpy(&word, from, 4);
        __atomic_store_n(AS(uint32_t, to), word, __ATOMIC_RELEASE);
    } else if (((uintptr_t)to & (length - 1)) == 0 && length == 2) {
        uint16_t word;
        memcpy(&word, from, 2);
        __atomic_store_n(AS(uint16_t, to), word, __ATOMIC_RELEASE);
    } else {
        memmove(to, from, length);
    }
    direct_end(key, &held);
    KILL_POINT("rma-stored");
    direct_done(key->peer, true, false);
    return true;
}

bool direct_get(struct pw_rma_key *key, void *to, size_t length, uint64_t offset)
{
    struct pw_firehose_request held;
    const char *from = direct_begin(key, offset, length, &held);
    if (from == NULL) {
        return false;
    }
    if (((uintptr_t)from & (length - 1)) == 0 && length == 8) {
        uint64_t word = __atomic_load_n(AS(const uint64_t, from), __ATOMIC_ACQUIRE);
        memcpy(to, &word, 8);
    } else if (((uintptr_t)from & (length - 1)) == 0 && length == 4) {
        uint32_t word = __atomic_load_n(AS(const uint32_t, from), __ATOMIC_ACQUIRE);
        memcpy(to, &word, 4);
    } else if (((uintptr_t)from & (length - 1)) == 0 && length == 2) {
        uint16_t word = __atomic_load_n(AS(const uint16_t, from), __ATOMIC_ACQUIRE);
        memcpy(to, &word, 2);
    } else {
        memmove(to, from, length);
    }
    direct_end(key, &held);
    direct_done(key->peer, false, false);
    return true;
}

/* ---- Flushes ---- */

/* Two threads: if one finds `stored` clear though it has set it, another one has cleared it after
 * that store was seen by all, and with it what was stored before. */
int direct_flush(struct pw_rma_peer *peer)
{
    bool stored = atomic_load_explicit(&peer->stored, memory_order_relaxed);
    if (!stored && !atomic_load_explicit(&peer->changed, memory_order_relaxed)) {
        return 0;
    }
    atomic_store_explicit(&peer->changed, false, memory_order_relaxed);
    if (stored) {
        atomic_exchange(&peer->stored, false); /* a full fence */
    }
    bool there = peer->life == NULL ||
                 (atomic_load_explicit(&peer->life->thread, memory_order_relaxed) & 0x3fffffff);
    return there ? 0 : -EPIPE;
}

void direct_flush_all(struct pw_rma *rma)
{
    atomic_exchange(&rma->stored, false);
}
