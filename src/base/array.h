/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow, twice as large whenever they are full; and a search in sorted ones. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* array_grow() makes the array at `array` twice as large, or of `least` elements if it has none, or
 * of as many as are `needed`, and gives the new capacity; the old one if memory is short. */
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

/* ARRAY_HOLDS() is true if there is room for `needed` elements, once the array has grown if need
 * be; false: memory is short, and nothing has changed. ARRAY_ROOM() is that for one more element
 * than `count`. */
#define ARRAY_HOLDS(array, needed, capacity, least)                                                \
    ((needed) <= (capacity) ||                                                                     \
     ((capacity) = array_grow(&(array), (capacity), (needed), (least), sizeof(*(array))),          \
      (needed) <= (capacity)))
#define ARRAY_ROOM(array, count, capacity, least)                                                  \
    ARRAY_HOLDS(array, (uint64_t)(count) + 1, capacity, least)

/* ARRAY_FIRST() bisects the places 0 ... count - 1 for the first one, `i`, that meets a condition
 * which all behind it meet as well; `count` if there is none. */
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
