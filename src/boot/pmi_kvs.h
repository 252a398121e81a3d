/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key-value space of a PMI job: pairs in the order of their puts (which is the order of
 * getbyidx), found by key through a hash table.
 *
 * Pairs are never changed or removed, so the position of a pair stays valid. A zeroed struct is an
 * empty space. The functions take no lock: that is up to the owner.
 */
#ifndef BOOT_PMI_KVS_H
#define BOOT_PMI_KVS_H

#include "base/hash.h"

#include <stdint.h>

enum { KVS_PAIRS_MAX = 65536 };

struct pair {
    UT_hash_handle hh;
    const char *value; /* points behind the key, into the same allocation */
    char key[];
};

struct kvs {
    struct pair **pairs; /* in the order in which they were put */
    uint32_t count, capacity;
    struct pair *table; /* the same pairs, hashed by key */
};

/* kvs_put() copies key and value into the space. It returns 0, -EEXIST if the space has the key
 * already, -ENOSPC beyond KVS_PAIRS_MAX pairs, or -ENOMEM. */
int kvs_put(struct kvs *kvs, const char *key, const char *value);

/* kvs_get() returns the value of `key`, which stays the space's, or NULL. */
const char *kvs_get(const struct kvs *kvs, const char *key);

/* kvs_clear() frees all pairs and leaves an empty space. */
void kvs_clear(struct kvs *kvs);

#endif
