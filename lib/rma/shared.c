/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions whose memory peers of the host map: the calls. */
#include "inside.h"

#include <search.h>

/* ---- At the owner ---- */

void region_share(struct pw_rma_region *r)
{
    struct pw_rma *rma = r->rma;
    if (r->memory.control == NULL) {
        return;
    }
    pthread_mutex_lock(&rma->lock);
    if (host_open(rma) == 0) {
        r->shared = true;
        r->next_shared = rma->shared;
        rma->shared = r;
        atomic_store(&r->memory.control->registered, 1);
    }
    pthread_mutex_unlock(&rma->lock);
}

void region_leave(struct pw_rma_region *r)
{
    struct pw_rma *rma = r->rma;
    pthread_mutex_lock(&rma->lock);
    if (r->shared) {
        struct pw_rma_region **at = &rma->shared;
        atomic_store(&r->memory.control->registered, 0); /* H2 */
        while (*at != r) {
            at = &(*at)->next_shared;
        }
        *at = r->next_shared;
        r->shared = false;
    }
    pthread_mutex_unlock(&rma->lock);
    KILL_POINT("rma-unshared");
}

int pw_rma_allocate(struct pw_rma *rma, size_t length, unsigned access, void **start,
                    struct pw_rma_region **region)
{
    struct memory memory;
    int rc = memory_take(&memory, length);
    if (rc != 0) {
        return rc;
    }
    rc = region_make(rma, memory.start, length, access, &memory, region);
    if (rc != 0) {
        memory_free(&memory);
        return rc;
    }
    *start = memory.start;
    return 0;
}

int pw_rma_room(uint64_t bytes)
{
    int ticket = room_enter();
    int rc = room_check(bytes);
    room_leave(ticket);
    return rc;
}

/* ---- At the peers ---- */

int pw_rma_map(struct pw_rma_key *key, void **start)
{
    enum mapping m = direct_way(key);
    if (m == MAP_NONE) {
        m = atomic_load_explicit(&key->mapping, memory_order_acquire);
        return m == MAP_NONE ? key->reason : m >= MAP_ALL ? -ESTALE : -EAGAIN;
    }
    if (m == MAP_BUCKETS) {
        int rc = meet_whole(key);
        *start = key->handed;
        return rc;
    }
    *start = key->memory;
    return 0;
}

int pw_rma_key_memory(struct pw_rma_key *key, void *start)
{
    static struct control registered = {1};
    static struct life always = {1};
    enum mapping m = MAP_NEW;
    if (start == NULL) {
        return -EINVAL;
    }
    if (key->most != WAY_DIRECT) {
        return -ECANCELED;
    }
    if (!atomic_compare_exchange_strong(&key->mapping, &m, MAP_ASKED)) {
        return -EBUSY;
    }
    key->memory = start; /* `mapped` stays 0: it is not this library's to unmap */
    key->control = &registered;
    key->life = &always;
    atomic_store_explicit(&key->mapping, MAP_ALL, memory_order_release);
    return 0;
}

int pw_rma_key_limit(struct pw_rma_key *key, enum pw_rma_path path)
{
    static const enum way ways[] = {[PW_RMA_NATIVE] = WAY_NATIVE,
                                    [PW_RMA_HANDLER] = WAY_HANDLER,
                                    [PW_RMA_DIRECT] = WAY_DIRECT,
                                    [PW_RMA_TWO_SIDED] = WAY_TWO_SIDED};
    if (path == PW_RMA_NONE || (unsigned)path >= sizeof(ways) / sizeof(ways[0])) {
        return -EINVAL;
    }
    if (atomic_load(&key->mapping) >= MAP_ALL && path != PW_RMA_DIRECT) {
        return -EBUSY;
    }
    key->most = ways[path];
    return 0;
}

/* ---- Statistics ---- */

static void add_peer(const void *node, VISIT visit, void *sum)
{
    const struct pw_rma_peer *peer = *(struct pw_rma_peer *const *)node;
    if (visit == postorder || visit == leaf) {
        *(uint64_t *)sum += atomic_load(&peer->directs);
    }
}

void pw_rma_statistics(struct pw_rma *rma, struct pw_rma_statistics *statistics)
{
    struct pw_rma_statistics s = {.handler = atomic_load(&rma->by_handlers)};
    for (unsigned i = 0; i < rma->count; i++) {
        for (int c = 0; c < COUNTERS; c++) {
            s.messages += atomic_load(&rma->rails[i].counters[c].issued);
        }
    }
    pthread_mutex_lock(&rma->lock);
    s.direct = rma->directs;
    s.mapped = rma->mapped;
    for (struct pw_rma_peer *p = rma->idle; p != NULL; p = p->next_idle) {
        s.direct += atomic_load(&p->directs);
    }
    twalk_r(rma->peers, add_peer, &s.direct);
    pthread_mutex_unlock(&rma->lock);
    if (rma->buckets != NULL) {
        struct pw_firehose_stats f;
        pw_firehose_stats(rma->buckets, &f);
        s.bucket_hits = f.local.hit + f.local.pending + f.local.try_hit;
        s.bucket_maps = f.local.miss;
        s.bucket_evictions = f.evicted;
        s.mapped += f.pinned * rma->bucket;
    }
    *statistics = s;
}
