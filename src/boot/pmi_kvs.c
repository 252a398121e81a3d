/* SPDX-License-Identifier: BSD-3-Clause */
/* The key-value space; see pmi_kvs.h. */
#include "boot/pmi_kvs.h"

#include "base/array.h"

#include <errno.h>
#include <string.h>

/* Computes the hash of a key for uthash. Its macros would otherwise expand the computation wherever
 * they are used. */
static unsigned hash_of(const char *key, size_t length)
{
    unsigned hash;
    HASH_FNV(key, length, hash);
    return hash;
}

static const struct pair *find(const struct kvs *kvs, const char *key, size_t length, unsigned hash)
{
    struct pair *found;
    HASH_FIND_BYHASHVALUE(hh, kvs->table, key, length, hash, found);
    return found;
}

const char *kvs_get(const struct kvs *kvs, const char *key)
{
    size_t length = strlen(key);
    const struct pair *found = find(kvs, key, length, hash_of(key, length));
    return found != NULL ? found->value : NULL;
}

int kvs_put(struct kvs *kvs, const char *key, const char *value)
{
    size_t length = strlen(key), value_size = strlen(value) + 1;
    unsigned hash = hash_of(key, length);
    if (find(kvs, key, length, hash) != NULL) {
        return -EEXIST;
    }
    if (kvs->count == KVS_PAIRS_MAX) {
        return -ENOSPC;
    }
    struct pair *p = malloc(sizeof(*p) + length + 1 + value_size);
    if (p == NULL || !ARRAY_ROOM(kvs->pairs, kvs->count, kvs->capacity, 64)) {
        free(p);
        return -ENOMEM;
    }
    memcpy(p->key, key, length + 1);
    p->value = memcpy(p->key + length + 1, value, value_size);
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, kvs->table, p->key, length, hash, p);
    if (!hash_added(p)) {
        free(p);
        return -ENOMEM;
    }
    kvs->pairs[kvs->count++] = p;
    return 0;
}

void kvs_clear(struct kvs *kvs)
{
    HASH_CLEAR(hh, kvs->table);
    for (uint32_t i = 0; i < kvs->count; i++) {
        free(kvs->pairs[i]);
    }
    free(kvs->pairs);
    *kvs = (struct kvs){0};
}
