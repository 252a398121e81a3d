/* SPDX-License-Identifier: BSD-3-Clause */
/* The key-value space; see pmi_kvs.h. */
#include "boot/pmi_kvs.h"

#include "base/array.h"

#include <errno.h>
#include <string.h>

const char *kvs_get(const struct kvs *kvs, const char *key)
{
    struct pair *found;
    HASH_FIND_STR(kvs->table, key, found);
    return found != NULL ? found->value : NULL;
}

int kvs_put(struct kvs *kvs, const char *key, const char *value)
{
    if (kvs_get(kvs, key) != NULL) {
        return -EEXIST;
    }
    if (kvs->count == KVS_PAIRS_MAX) {
        return -ENOSPC;
    }
    size_t key_size = strlen(key) + 1, value_size = strlen(value) + 1;
    struct pair *p = malloc(sizeof(*p) + key_size + value_size);
    if (p == NULL || !ARRAY_ROOM(kvs->pairs, kvs->count, kvs->capacity, 64)) {
        free(p);
        return -ENOMEM;
    }
    memcpy(p->key, key, key_size);
    p->value = memcpy(p->key + key_size, value, value_size);
    HASH_ADD_STR(kvs->table, key, p);
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
