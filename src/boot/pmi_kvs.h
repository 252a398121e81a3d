/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key-value space of a PMI job: one array of pairs in the order of their
 * puts (which is the order of getbyidx), found by key through a hash index.
 *
 *     index  | 0 | 2 | 0 | 1 | 0 | ...      1 + position, 0: empty slot
 *                  |       |
 *     pairs  | (k0,v0) (k1,v1) ...
 *
 * Pairs are never changed or removed, so a position stays valid. A space that
 * is all zero is empty. The owner's lock, if any, guards it.
 */
#ifndef BOOT_PMI_KVS_H
#define BOOT_PMI_KVS_H

#include <stdint.h>

enum { KVS_PAIRS_MAX = 65536 };

struct pair {
    char *key; /* one allocation: key NUL value NUL */
    const char *value;
};

struct kvs {
    struct pair *pairs;
    uint32_t count, capacity;
    uint32_t *index; /* 1 + position in pairs, 0 for an empty slot */
    uint32_t slots;  /* a power of two, at least twice count */
};

/* kvs_put() copies key and value into the space. It returns 0, -EEXIST for a key
 * that is there, -ENOSPC beyond KVS_PAIRS_MAX pairs, or -ENOMEM. */
int kvs_put(struct kvs *kvs, const char *key, const char *value);

/* kvs_get() returns the value of `key`, which the space owns, or NULL. */
const char *kvs_get(const struct kvs *kvs, const char *key);

/* kvs_clear() frees all pairs and leaves an empty space. */
void kvs_clear(struct kvs *kvs);

#endif
