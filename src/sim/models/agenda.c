/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of a rank's events in one window; see agenda.h. */
#include "agenda.h"

#include "sim/util/reserve.h"

#include <stdlib.h>
#include <string.h>

static void release(struct event *events, size_t capacity)
{
    if (capacity > AGENDA_SMALL) {
        sim_unreserve(events, capacity * sizeof(*events));
    } else {
        free(events);
    }
}

static int grow(const struct agenda *a, struct event **events, size_t *capacity)
{
    size_t more = *capacity > 0 ? 2 * *capacity : 64;
    more = more > AGENDA_SMALL && more < a->room ? a->room : more;
    size_t bytes = more * sizeof(**events);
    struct event *new = more > AGENDA_SMALL ? sim_reserve(bytes) : malloc(bytes);
    if (new == NULL) {
        return -1;
    }
    if (*capacity > 0) {
        memcpy(new, *events, *capacity * sizeof(*new));
    }
    release(*events, *capacity);
    *events = new;
    *capacity = more;
    return 0;
}

int agenda_grow(struct agenda *a)
{
    return grow(a, &a->heap, &a->heap_capacity);
}

int agenda_grow_list(struct agenda *a)
{
    if (a->begin >= a->end / 2 && a->begin > 0) {
        memmove(a->list, a->list + a->begin, (a->end - a->begin) * sizeof(*a->list));
        a->end -= a->begin;
        a->begin = 0;
        return 0;
    }
    return grow(a, &a->list, &a->list_capacity);
}

void agenda_free(struct agenda *a)
{
    release(a->list, a->list_capacity);
    release(a->heap, a->heap_capacity);
    release(a->spare, a->spare_capacity);
    *a = (struct agenda){0};
}

/* Returns the end of the run of events, in the order of their keys, that begins at `begin`. */
static size_t run_end(const struct event *e, size_t begin, size_t count)
{
    size_t end = begin + 1;
    while (end < count && !event_before(&e[end], &e[end - 1])) {
        end++;
    }
    return end;
}

static void merge(struct event *to, const struct event *a, size_t a_count, const struct event *b,
                  size_t b_count)
{
    while (a_count > 0 && b_count > 0) {
        if (event_before(b, a)) {
            *to++ = *b++;
            b_count--;
        } else {
            *to++ = *a++;
            a_count--;
        }
    }
    memcpy(to, a, a_count * sizeof(*a));
    memcpy(to + a_count, b, b_count * sizeof(*b));
}

static void reverse(struct event *e, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct event other = e[i];
        e[i] = e[count - 1 - i];
        e[count - 1 - i] = other;
    }
}

static void swap_lists(struct agenda *a)
{
    struct event *list = a->list;
    size_t capacity = a->list_capacity;
    a->list = a->spare;
    a->list_capacity = a->spare_capacity;
    a->spare = list;
    a->spare_capacity = capacity;
}

/* Merge sort: merges neighbouring runs until one is left. The events of a rank are chained last
 * event first, so the list is often a single descending run: it is turned round first. The first
 * events, which agenda_collect() has sorted already, are turned round before, so that this turns
 * them back. */
int agenda_sort(struct agenda *a)
{
    reverse(a->list, a->end < AGENDA_INSERT ? a->end : AGENDA_INSERT);
    reverse(a->list, a->end);
    while (run_end(a->list, 0, a->end) < a->end) {
        while (a->spare_capacity < a->end) {
            if (grow(a, &a->spare, &a->spare_capacity) != 0) {
                return -1;
            }
        }
        const struct event *from = a->list;
        struct event *to = a->spare;
        for (size_t begin = 0, end; begin < a->end; begin = end) {
            size_t middle = run_end(from, begin, a->end);
            end = middle < a->end ? run_end(from, middle, a->end) : middle;
            merge(to + begin, from + begin, middle - begin, from + middle, end - middle);
        }
        swap_lists(a);
    }
    return 0;
}
