/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The atomics that compilers emit calls of, where the core has no instruction: those of 8 bytes,
 * and of 1 and 2, by the names of C11 and by the older ones. All ignore the memory order that they
 * are given: each is sequentially consistent.
 *
 *      load of 8, exchange of 8    a call each (calls.h)
 *      all others                  a load, then compare-and-swap until no other HPU came in between
 *
 * Larger objects have none: libatomic uses locks for these, and handlers have none. This file also
 * has the divisions of 64 bits, to end a handler where C leaves the result undefined.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stubs of calls.S. */
uint64_t pinwheel_load_8(const volatile void *p);
uint64_t pinwheel_exchange_8(volatile void *p, uint64_t value);
uint8_t pinwheel_cas_1(volatile void *p, uint32_t expected, uint32_t desired);
uint16_t pinwheel_cas_2(volatile void *p, uint32_t expected, uint32_t desired);
uint64_t pinwheel_cas_8(volatile void *p, uint64_t expected, uint64_t desired);

#define LOAD_1(p) (*(const volatile uint8_t *)(p))
#define LOAD_2(p) (*(const volatile uint16_t *)(p))
#define LOAD_8(p) pinwheel_load_8(p)

/* fetch_NAME() changes the value and returns the old one, NAME_fetch() the new one. */
#define CHANGE(size, type, name, result)                                                           \
    type fetch_##name##_##size(volatile void *p, type with,                                        \
                               int order) __asm__("__atomic_fetch_" #name "_" #size);              \
    type fetch_##name##_##size(volatile void *p, type with, int order)                             \
    {                                                                                              \
        type found = LOAD_##size(p), was;                                                          \
        while ((was = pinwheel_cas_##size(p, found, (type)(result))) != found) {                   \
            found = was;                                                                           \
        }                                                                                          \
        return found;                                                                              \
    }                                                                                              \
    type sync_fetch_##name##_##size(volatile void *p,                                              \
                                    type with) __asm__("__sync_fetch_and_" #name "_" #size);       \
    type sync_fetch_##name##_##size(volatile void *p, type with)                                   \
    {                                                                                              \
        return fetch_##name##_##size(p, with, 0);                                                  \
    }                                                                                              \
    type sync_##name##_fetch_##size(volatile void *p,                                              \
                                    type with) __asm__("__sync_" #name "_and_fetch_" #size);       \
    type sync_##name##_fetch_##size(volatile void *p, type with)                                   \
    {                                                                                              \
        type found = fetch_##name##_##size(p, with, 0);                                            \
        return (type)(result);                                                                     \
    }

#define EXCHANGE(size, type)                                                                       \
    type exchange_##size(volatile void *p, type with,                                              \
                         int order) __asm__("__atomic_exchange_" #size);                           \
    type sync_exchange_##size(volatile void *p,                                                    \
                              type with) __asm__("__sync_lock_test_and_set_" #size);               \
    type sync_exchange_##size(volatile void *p, type with)                                         \
    {                                                                                              \
        return exchange_##size(p, with, 0);                                                        \
    }                                                                                              \
    void store_##size(volatile void *p, type with, int order) __asm__("__atomic_store_" #size);    \
    void store_##size(volatile void *p, type with, int order)                                      \
    {                                                                                              \
        exchange_##size(p, with, 0);                                                               \
    }                                                                                              \
    void sync_release_##size(volatile void *p) __asm__("__sync_lock_release_" #size);              \
    void sync_release_##size(volatile void *p)                                                     \
    {                                                                                              \
        exchange_##size(p, 0, 0);                                                                  \
    }                                                                                              \
    type load_##size(const volatile void *p, int order) __asm__("__atomic_load_" #size);           \
    type load_##size(const volatile void *p, int order)                                            \
    {                                                                                              \
        return LOAD_##size(p);                                                                     \
    }

#define COMPARE(size, type)                                                                        \
    bool compare_##size(volatile void *p, void *expected, type desired, int success,               \
                        int failure) __asm__("__atomic_compare_exchange_" #size);                  \
    bool compare_##size(volatile void *p, void *expected, type desired, int success, int failure)  \
    {                                                                                              \
        type *wanted = expected, found = pinwheel_cas_##size(p, *wanted, desired);                 \
        if (found == *wanted) {                                                                    \
            return true;                                                                           \
        }                                                                                          \
        *wanted = found;                                                                           \
        return false;                                                                              \
    }                                                                                              \
    type sync_val_##size(volatile void *p, type expected,                                          \
                         type desired) __asm__("__sync_val_compare_and_swap_" #size);              \
    type sync_val_##size(volatile void *p, type expected, type desired)                            \
    {                                                                                              \
        return pinwheel_cas_##size(p, expected, desired);                                          \
    }                                                                                              \
    bool sync_bool_##size(volatile void *p, type expected,                                         \
                          type desired) __asm__("__sync_bool_compare_and_swap_" #size);            \
    bool sync_bool_##size(volatile void *p, type expected, type desired)                           \
    {                                                                                              \
        return pinwheel_cas_##size(p, expected, desired) == expected;                              \
    }

#define ALL(size, type)                                                                            \
    EXCHANGE(size, type)                                                                           \
    COMPARE(size, type)                                                                            \
    CHANGE(size, type, add, found + with)                                                          \
    CHANGE(size, type, sub, found - with)                                                          \
    CHANGE(size, type, or, found | with)                                                           \
    CHANGE(size, type, and, found &with)                                                           \
    CHANGE(size, type, xor, found ^ with)                                                          \
    CHANGE(size, type, nand, ~(found & with))

ALL(1, uint8_t)
ALL(2, uint16_t)
ALL(8, uint64_t)

uint8_t exchange_1(volatile void *p, uint8_t with, int order)
{
    uint8_t found = LOAD_1(p), was;
    while ((was = pinwheel_cas_1(p, found, with)) != found) {
        found = was;
    }
    return found;
}

uint16_t exchange_2(volatile void *p, uint16_t with, int order)
{
    uint16_t found = LOAD_2(p), was;
    while ((was = pinwheel_cas_2(p, found, with)) != found) {
        found = was;
    }
    return found;
}

uint64_t exchange_8(volatile void *p, uint64_t with, int order)
{
    return pinwheel_exchange_8(p, with);
}

bool is_lock_free(size_t size, const volatile void *p) __asm__("__atomic_is_lock_free");
bool is_lock_free(size_t size, const volatile void *p)
{
    return size == 1 || size == 2 || size == 4 || size == 8;
}

/* ---- Divisions of 64 bits ---- */

int64_t __real___divdi3(int64_t a, int64_t b);
int64_t __real___moddi3(int64_t a, int64_t b);
int64_t __wrap___divdi3(int64_t a, int64_t b);
int64_t __wrap___moddi3(int64_t a, int64_t b);

/* The one quotient that does not fit ends the handler, as that of 32 bits does. */
static inline void end_overflow(int64_t a, int64_t b)
{
    if (b == -1 && a == INT64_MIN) {
        __asm__ volatile("div zero, %0, %1" ::"r"(INT32_MIN), "r"(-1));
    }
}

int64_t __wrap___divdi3(int64_t a, int64_t b)
{
    end_overflow(a, b);
    return __real___divdi3(a, b);
}

int64_t __wrap___moddi3(int64_t a, int64_t b)
{
    end_overflow(a, b);
    return __real___moddi3(a, b);
}
