/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * d-ary heaps (priority queues) in an array that the caller owns and lets grow; place 0 holds the
 * first item of the order. The children of place i are the places branches * i + 1 ... branches * i
 * + branches.
 *
 * HEAP_OF(name, type, branches, before) makes two inline functions, where before(a, b, of) says
 * whether *a comes before *b; `of` is passed through:
 *
 *   name_rise(heap, count, item, of)   adds an item to a heap of `count` items; the array has room
 *   name_sink(heap, count, item, of)   puts an item into a heap of `count` places, of which place 0
 *                                      is free: the last item, after the first was taken out
 */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#define HEAP_OF(name, type, branches, before)                                                      \
    static inline type *name##_least(type *heap, size_t begin, size_t count, const void *of)       \
    {                                                                                              \
        type *least = &heap[begin];                                                                \
        _Pragma("GCC unroll 4") for (size_t i = 1; i < count; i++)                                 \
        {                                                                                          \
            least = before(&heap[begin + i], least, of) ? &heap[begin + i] : least;                \
        }                                                                                          \
        return least;                                                                              \
    }                                                                                              \
    static inline void name##_rise(type *heap, size_t count, const type *item, const void *of)     \
    {                                                                                              \
        size_t i = count;                                                                          \
        while (i > 0 && before(item, &heap[(i - 1) / (branches)], of)) {                           \
            heap[i] = heap[(i - 1) / (branches)];                                                  \
            i = (i - 1) / (branches);                                                              \
        }                                                                                          \
        heap[i] = *item;                                                                           \
    }                                                                                              \
    static inline void name##_sink(type *heap, size_t count, const type *item, const void *of)     \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (size_t child = 1; child < count; child = (branches)*i + 1) {                          \
            type *least = child + (branches) <= count                                              \
                              ? name##_least(heap, child, (branches), of)                          \
                              : name##_least(heap, child, count - child, of);                      \
            if (!before(least, item, of)) {                                                        \
                break;                                                                             \
            }                                                                                      \
            heap[i] = *least;                                                                      \
            i = (size_t)(least - heap);                                                            \
        }                                                                                          \
        heap[i] = *item;                                                                           \
    }

#endif
