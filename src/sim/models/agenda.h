/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events of one rank in one window, ordered by their keys: a sorted list, to which an event is
 * appended if it comes after all events of the list, as nearly every event does, and a heap for the
 * other events.
 */
#ifndef SIM_AGENDA_H
#define SIM_AGENDA_H

#include "event.h"

#include "base/heap.h"

#include <stddef.h>

/* A zeroed struct is an empty agenda. */
struct agenda {
    /* sorted; the events are those from `begin` to `end`, which are both 0 when it is empty */
    struct event *list;
    size_t begin, end, list_capacity;
    struct event *heap;
    size_t count, heap_capacity;
    struct event *spare; /* memory for agenda_sort() */
    size_t spare_capacity;
    /* upper bound of the events that are likely; an array that outgrows AGENDA_SMALL is reserved
     * for so many at once */
    size_t room;
};
enum { AGENDA_SMALL = 4096 };

void agenda_free(struct agenda *a);

/* agenda_grow() makes room for one more event in the heap, agenda_grow_list() for one in the list.
 * They return -1 if memory is short. */
int agenda_grow(struct agenda *a);
int agenda_grow_list(struct agenda *a);

/* agenda_sort() sorts the list after agenda_collect(); -1 if memory is short. */
int agenda_sort(struct agenda *a);

/* agenda_collect() adds an event to an agenda from which none was taken yet. It keeps the first
 * AGENDA_INSERT events sorted; if there are more the caller must call agenda_sort() in the end. */
enum { AGENDA_INSERT = 8 };
static inline int agenda_collect(struct agenda *a, const struct event *e)
{
    if (a->end == a->list_capacity && agenda_grow_list(a) != 0) {
        return -1;
    }
    size_t i = a->end++;
    while (i > 0 && i < AGENDA_INSERT && event_before(e, &a->list[i - 1])) {
        a->list[i] = a->list[i - 1];
        i--;
    }
    a->list[i] = *e;
    return 0;
}

#define AGENDA_BEFORE(a, b, of) event_before(a, b)
HEAP_OF(agenda, struct event, 4, AGENDA_BEFORE)

static inline int agenda_push(struct agenda *a, const struct event *e)
{
    if (a->end == 0 || !event_before(e, &a->list[a->end - 1])) {
        if (a->end == a->list_capacity && agenda_grow_list(a) != 0) {
            return -1;
        }
        a->list[a->end++] = *e;
        return 0;
    }
    if (a->count == a->heap_capacity && agenda_grow(a) != 0) {
        return -1;
    }
    agenda_rise(a->heap, a->count++, e, NULL);
    return 0;
}

/* agenda_first() returns the event with the least key and leaves it there; NULL if there is
 * none. */
static inline const struct event *agenda_first(const struct agenda *a)
{
    if (a->begin < a->end && (a->count == 0 || event_before(&a->list[a->begin], &a->heap[0]))) {
        return &a->list[a->begin];
    }
    return a->count > 0 ? &a->heap[0] : NULL;
}

/* agenda_pop() removes the event with the least key and stores it in *e; false if there is none. */
static inline bool agenda_pop(struct agenda *a, struct event *e)
{
    if (a->begin < a->end && (a->count == 0 || event_before(&a->list[a->begin], &a->heap[0]))) {
        *e = a->list[a->begin++];
        if (a->begin == a->end) {
            a->begin = a->end = 0;
        }
        return true;
    }
    if (a->count == 0) {
        return false;
    }
    *e = a->heap[0];
    a->count--;
    agenda_sink(a->heap, a->count, &a->heap[a->count], NULL);
    return true;
}

#endif
