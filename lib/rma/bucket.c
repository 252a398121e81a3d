/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions that are too long, together, to be mapped whole: what is used of them is mapped in
 * buckets, which Firehose keeps (pinwheel_firehose.h). A pin of it is a mapping here:
 *
 *      a region has addresses of its own, where nothing is mapped at first
 *      hit     the bucket is mapped, and is kept while a thread is in it
 *      miss    the bucket is mapped, in the place of the oldest one that no thread is in; or it is
 *              not, and the operation goes by a message
 *
 * A bucket of 2 MiB or more is a mapping, whose page tables go with it. Shorter ones are parts of
 * one mapping of the whole region: a miss is the page fault, and a bucket that gives way loses its
 * entries in the page tables, but not these themselves. That costs half as much.
 *
 * To map costs as much as many messages. So a miss maps while hits are frequent enough to pay for
 * it, and otherwise now and then, to find out whether they have become so (worth_it()).
 */
#include "inside.h"

#include <search.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Hit rates are in 1/65536, the mean of about the last 128 operations with a key. */
enum { TABLE_SPAN = 2 << 20 }; /* bytes for which a page of page tables is */
enum { ALL_HITS = 65536, MEMORY_SHIFT = 7, TRY_EACH = 16 };

/* ---- Which key's region is at an address ---- */

static int by_place(const void *a, const void *b)
{
    const struct pw_rma_key *x = a, *y = b;
    return x->memory + x->mapped <= y->memory ? -1 : x->memory >= y->memory + y->mapped;
}

static struct pw_rma_key *key_at(struct pw_rma *rma, uint64_t address)
{
    struct pw_rma_key wanted = {.memory = (char *)(uintptr_t)address, .mapped = 1};
    pthread_mutex_lock(&rma->lazy_lock);
    struct pw_rma_key **found = tfind(&wanted, &rma->lazy_keys, by_place);
    struct pw_rma_key *key = found != NULL ? *found : NULL;
    pthread_mutex_unlock(&rma->lazy_lock);
    return key;
}

/* ---- Pins ---- */

static void *nothing_at(void *address, size_t length)
{
    return mmap(address, length, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (address != NULL ? MAP_FIXED : 0), -1,
                0);
}

static bool by_tables(const struct pw_rma *rma)
{
    return rma->bucket < TABLE_SPAN;
}

static int protection_of(const struct pw_rma_key *key)
{
    return PROT_READ | ((key->is.access & PW_RMA_WRITE) != 0 ? PROT_WRITE : 0);
}

/* Maps a unit, as far as it is in the region. */
static int map_unit(struct pw_rma *rma, const struct pw_firehose_region *unit)
{
    const struct pw_rma_key *key = key_at(rma, unit->addr);
    KILL_POINT("rma-bucket");
    if (key == NULL || by_tables(rma)) {
        return key != NULL ? 0 : -EFAULT;
    }
    uint64_t at = unit->addr - (uintptr_t)key->memory;
    uint64_t length = least(unit->len, key->mapped - SHARE_PAGE - at);
    void *got = mmap((void *)(uintptr_t)unit->addr, length, protection_of(key),
                     MAP_SHARED | MAP_FIXED, key->fd, (off_t)at);
    return got != MAP_FAILED ? 0 : -errno;
}

static void unmap_unit(struct pw_rma *rma, const struct pw_firehose_region *unit)
{
    const struct pw_rma_key *key = key_at(rma, unit->addr);
    if (key != NULL && by_tables(rma)) {
        madvise((void *)(uintptr_t)unit->addr, unit->len, MADV_DONTNEED);
    } else if (key != NULL) {
        uint64_t at = unit->addr - (uintptr_t)key->memory;
        nothing_at((void *)(uintptr_t)unit->addr, least(unit->len, key->mapped - SHARE_PAGE - at));
    }
}

/* Set by each move that this thread makes: a pin without one is a hit. */
static _Thread_local bool have_moved __attribute__((tls_model("initial-exec")));

static int move(void *client, const struct pw_firehose_region *unpins, size_t unpin_count,
                struct pw_firehose_region *pins, size_t pin_count)
{
    int rc = 0;
    have_moved = true;
    for (size_t i = 0; i < unpin_count; i++) {
        unmap_unit(client, &unpins[i]);
    }
    for (size_t i = 0; i < pin_count && rc == 0; i++) {
        rc = map_unit(client, &pins[i]);
        for (size_t k = 0; k < i && rc != 0; k++) {
            unmap_unit(client, &pins[k]);
        }
    }
    return rc;
}

/* ---- Regions ---- */

static int table_open(struct pw_rma *rma)
{
    static const struct pw_firehose_ops ops = {.move = move};
    struct pw_firehose_config config = {
        .nodes = 1,
        .flags = PW_FIREHOSE_LOCAL_ONLY | PW_FIREHOSE_REDUCED | PW_FIREHOSE_NO_ENV,
        .page = rma->bucket,
        .max_pinnable = rma->lazy_most / rma->bucket * rma->bucket,
        .ops = &ops,
        .client = rma,
    };
    return rma->buckets != NULL ? 0 : pw_firehose_init(&config, &rma->buckets, NULL);
}

int bucket_open(struct pw_rma_key *key, int fd)
{
    struct pw_rma *rma = key->peer->rma;
    size_t size = memory_size(key->is.length), whole;
    if (rma->lazy_most < 2 * rma->bucket || __builtin_add_overflow(size, 2 * rma->bucket, &whole)) {
        return -E2BIG;
    }
    int rc = table_open(rma);
    if (rc != 0) {
        return rc;
    }
    char *at = nothing_at(NULL, whole);
    if (at == MAP_FAILED) {
        return -errno;
    }
    key->reserved = at;
    key->reserved_size = whole;
    key->memory = at + (rma->bucket - (uintptr_t)at % rma->bucket) % rma->bucket;
    key->mapped = size;
    void *control = mmap(key->memory + size - SHARE_PAGE, SHARE_PAGE, PROT_READ,
                         MAP_SHARED | MAP_FIXED, fd, (off_t)(size - SHARE_PAGE));
    if (by_tables(rma) && size > SHARE_PAGE && control != MAP_FAILED &&
        mmap(key->memory, size - SHARE_PAGE, protection_of(key), MAP_SHARED | MAP_FIXED, fd, 0) ==
            MAP_FAILED) {
        control = MAP_FAILED;
    }
    key->fd = dup(fd);
    pthread_mutex_lock(&rma->lazy_lock);
    bool listed =
        control != MAP_FAILED && key->fd >= 0 && tsearch(key, &rma->lazy_keys, by_place) != NULL;
    pthread_mutex_unlock(&rma->lazy_lock);
    if (!listed) {
        rc = key->fd < 0 ? -EMFILE : -ENOMEM;
        munmap(key->reserved, key->reserved_size);
        if (key->fd >= 0) {
            close(key->fd);
        }
        key->memory = NULL;
        return rc;
    }
    key->control = control;
    key->hits = ALL_HITS;
    return 0;
}

static void forgotten(void *context)
{
    *(bool *)context = true;
}

void bucket_close(struct pw_rma_key *key)
{
    struct pw_rma *rma = key->peer->rma;
    bool gone = false;
    int rc =
        pw_firehose_forget(rma->buckets, (uintptr_t)key->memory, key->mapped, forgotten, &gone);
    while (rc == PW_FIREHOSE_LATER && !gone) {
        pw_firehose_poll(rma->buckets); /* no thread is in it: the key is closed by one */
    }
    pthread_mutex_lock(&rma->lazy_lock);
    tdelete(key, &rma->lazy_keys, by_place);
    pthread_mutex_unlock(&rma->lazy_lock);
    munmap(key->reserved, key->reserved_size);
    close(key->fd);
}

/* ---- Operations ---- */

/* Notes a hit or a miss; of several threads some are lost. */
static void note(struct pw_rma_key *key, bool hit)
{
    uint32_t h = atomic_load_explicit(&key->hits, memory_order_relaxed);
    h = h - (h >> MEMORY_SHIFT) + (hit ? ALL_HITS >> MEMORY_SHIFT : 0);
    atomic_store_explicit(&key->hits, h, memory_order_relaxed);
    if (!hit) {
        uint32_t n = atomic_load_explicit(&key->misses, memory_order_relaxed);
        atomic_store_explicit(&key->misses, n + 1, memory_order_relaxed);
    }
}

/* Whether a miss would map: hits are as frequent as it takes, or it is time to try. */
static bool worth_it(const struct pw_rma_key *key)
{
    return atomic_load_explicit(&key->hits, memory_order_relaxed) >= key->peer->rma->lazy_hits ||
           atomic_load_explicit(&key->misses, memory_order_relaxed) % TRY_EACH == 0;
}

bool bucket_take(struct pw_rma_key *key, uint64_t offset, size_t length,
                 struct pw_firehose_request *held)
{
    struct pw_rma *rma = key->peer->rma;
    uint64_t address = (uintptr_t)key->memory + offset;
    memset(held->internal, 0, sizeof(held->internal));
    if (length == 0 || length > rma->lazy_most / 2) {
        return false;
    }
    __builtin_prefetch((const void *)(uintptr_t)address); /* no fault where nothing is mapped */
    have_moved = false;
    bool there = (worth_it(key) ? pw_firehose_local_pin : pw_firehose_try_local_pin)(
                     rma->buckets, address, length, held) == 0;
    note(key, there && !have_moved);
    return there;
}

void bucket_give(struct pw_rma_key *key, struct pw_firehose_request *held)
{
    pw_firehose_release(key->peer->rma->buckets, &held, 1);
}
