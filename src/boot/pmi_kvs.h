/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key-value space of a PMI job: pairs in the order of their puts (which is the order of
 * getbyidx), found by key through a hash table.
 *
 * Pairs are never changed or removed, so a position stays valid. A space that
 * is all zero is empty. The owner's lock, if any, guards it.
 */
#ifndef BOOT_PMI_KVS_H
#define BOOT_PMI_KVS_H

#include "base/hash.h"

#include <stdint.h>

enum { KVS_PAIRS_MAX = 65536 };

struct pair {
    UT_hash_handle hh;
    const char *value; /* behind the key */
    char key[];
};

struct kvs {
    struct pair **pairs; /* in the order of their puts */
    uint32_t count, capacity;
    struct pair *table; /* by key */
};

/* kvs_put() copies key and value into the space. It returns 0, -EEXIST for a key
 * that is there, -ENOSPC beyond KVS_PAIRS_MAX pairs, or -ENOMEM. */
int kvs_put(struct kvs *kvs, const char *key, const char *value);

/* kvs_get() returns the value of `key`, which the space owns, or NULL. */
const char *kvs_get(const struct kvs *kvs, const char *key);

/* kvs_clear() frees all pairs and leaves an empty space. */
void kvs_clear(struct kvs *kvs);

#endif
