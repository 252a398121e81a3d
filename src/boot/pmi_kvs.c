/* SPDX-License-Identifier: BSD-3-Clause */
/* The key-value space; see pmi_kvs.h. */
#include "boot/pmi_kvs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hash_of(const char *key)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *key != '\0'; key++) {
        h = (h ^ (unsigned char)*key) * 16777619u;
    }
    return h;
}

/* The slot that holds `key`, or the empty one where it belongs. */
static uint32_t kvs_slot(const struct kvs *kvs, const char *key)
{
    uint32_t slot = hash_of(key) & (kvs->slots - 1);
    while (kvs->index[slot] != 0 && strcmp(kvs->pairs[kvs->index[slot] - 1].key, key) != 0) {
        slot = (slot + 1) & (kvs->slots - 1);
    }
    return slot;
}

const char *kvs_get(const struct kvs *kvs, const char *key)
{
    if (kvs->count == 0) {
        return NULL;
    }
    uint32_t found = kvs->index[kvs_slot(kvs, key)];
    return found != 0 ? kvs->pairs[found - 1].value : NULL;
}

static int kvs_grow(struct kvs *kvs)
{
    uint32_t capacity = kvs->capacity != 0 ? 2 * kvs->capacity : 64;
    struct pair *pairs = realloc(kvs->pairs, capacity * sizeof(*pairs));
    if (pairs == NULL) {
        return -ENOMEM;
    }
    kvs->pairs = pairs;
    uint32_t *index = calloc(2 * (size_t)capacity, sizeof(*index));
    if (index == NULL) {
        return -ENOMEM;
    }
    free(kvs->index);
    kvs->index = index;
    kvs->slots = 2 * capacity;
    kvs->capacity = capacity;
    for (uint32_t i = 0; i < kvs->count; i++) {
        index[kvs_slot(kvs, pairs[i].key)] = i + 1;
    }
    return 0;
}

int kvs_put(struct kvs *kvs, const char *key, const char *value)
{
    if (kvs_get(kvs, key) != NULL) {
        return -EEXIST;
    }
    if (kvs->count == KVS_PAIRS_MAX) {
        return -ENOSPC;
    }
    if (kvs->count == kvs->capacity && kvs_grow(kvs) != 0) {
        return -ENOMEM;
    }
    size_t key_size = strlen(key) + 1, value_size = strlen(value) + 1;
    char *copy = malloc(key_size + value_size);
    if (copy == NULL) {
        return -ENOMEM;
    }
    memcpy(copy, key, key_size);
    memcpy(copy + key_size, value, value_size);
    kvs->pairs[kvs->count].key = copy;
    kvs->pairs[kvs->count].value = copy + key_size;
    kvs->index[kvs_slot(kvs, key)] = kvs->count + 1;
    kvs->count++;
    return 0;
}

void kvs_clear(struct kvs *kvs)
{
    for (uint32_t i = 0; i < kvs->count; i++) {
        free(kvs->pairs[i].key);
    }
    free(kvs->pairs);
    free(kvs->index);
    *kvs = (struct kvs){0};
}
