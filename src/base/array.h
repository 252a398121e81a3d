/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that double their capacity when they are full, and a binary search in sorted arrays. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* array_grow() reallocates the array at `array` to twice its capacity (to `least` elements if it
 * has none), or to `needed` elements if that is more. It returns the new capacity; if memory is
 * short the old one, and the array is as it was. */
static inline uint64_t array_grow(void *array, uint64_t capacity, uint64_t needed, uint64_t least,
                                  size_t size)
{
    void **at = array;
    uint64_t more = capacity > 0 ? 2 * capacity : least;
    more = more < needed ? needed : more;
    void *grown = more <= SIZE_MAX / size ? realloc(*at, more * size) : NULL;
    if (grown == NULL) {
        return capacity;
    }
    *at = grown;
    return more;
}

/* ARRAY_HOLDS() is true if the array has room for `needed` elements, and makes it grow first if it
 * has not; false if memory is short, and then nothing has changed. ARRAY_ROOM() does the same for
 * one element more than the `count` that the array holds. */
#define ARRAY_HOLDS(array, needed, capacity, least)                                                \
    ((needed) <= (capacity) ||                                                                     \
     ((capacity) = array_grow(&(array), (capacity), (needed), (least), sizeof(*(array))),          \
      (needed) <= (capacity)))
#define ARRAY_ROOM(array, count, capacity, least)                                                  \
    ARRAY_HOLDS(array, (uint64_t)(count) + 1, capacity, least)

/* ARRAY_FIRST() finds by bisection the first index `i` of 0 ... count - 1 for which the condition,
 * an expression in `i`, is true; `count` if there is none. The condition must be true for all
 * indices behind the first one as well. */
#define ARRAY_FIRST(i, count, condition)                                                           \
    ({                                                                                             \
        size_t from_ = 0, to_ = (count);                                                           \
        while (from_ < to_) {                                                                      \
            size_t i = from_ + (to_ - from_) / 2;                                                  \
            if (condition) {                                                                       \
                to_ = i;                                                                           \
            } else {                                                                               \
                from_ = i + 1;                                                                     \
            }                                                                                      \
        }                                                                                          \
        from_;                                                                                     \
    })

#endif
