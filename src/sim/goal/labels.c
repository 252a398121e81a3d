/* SPDX-License-Identifier: BSD-3-Clause */
/* The labels of one rank; see labels.h. */
#include "labels.h"

#include <stdlib.h>

bool goal_labels_begin(struct goal_labels *l)
{
    if (l->slots == NULL) {
        l->slots = calloc(GOAL_LABELS_FIRST, sizeof(*l->slots));
        l->room = GOAL_LABELS_FIRST;
    }
    l->mask = GOAL_LABELS_FIRST - 1;
    l->count = 0;
    l->generation++;
    return l->slots != NULL;
}

void goal_labels_free(struct goal_labels *l)
{
    free(l->slots);
    *l = (struct goal_labels){0};
}

static void fill(struct goal_labels *l, uint32_t hash, uint32_t node)
{
    uint64_t i = hash;
    while (l->slots[i & l->mask].generation == l->generation) {
        i++;
    }
    l->slots[i & l->mask] = (struct goal_slot){l->generation, hash, node};
    l->count++;
}

/* Doubles the number of slots and fills them again, by way of a copy of the filled ones. */
static bool grow(struct goal_labels *l)
{
    uint64_t wanted = 2 * (l->mask + 1), kept = 0;
    struct goal_slot *copy = malloc(sizeof(*copy) * l->count);
    if (copy == NULL) {
        return false;
    }
    for (uint64_t i = 0; i <= l->mask; i++) {
        if (l->slots[i].generation == l->generation) {
            copy[kept++] = l->slots[i];
        }
    }
    if (wanted > l->room) {
        free(l->slots);
        l->slots = calloc(wanted, sizeof(*l->slots));
        l->room = l->slots != NULL ? wanted : 0;
    }
    l->mask = wanted - 1;
    l->generation++;
    l->count = 0;
    for (uint64_t i = 0; l->slots != NULL && i < kept; i++) {
        fill(l, copy[i].hash, copy[i].node);
    }
    free(copy);
    return l->slots != NULL;
}

bool goal_labels_add(struct goal_labels *l, uint32_t hash, uint32_t node)
{
    if (2 * (l->count + 1) > l->mask + 1 && !grow(l)) {
        return false;
    }
    fill(l, hash, node);
    return true;
}
