/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers by chance that are the same each time: what follows depends on random_state alone. */
#ifndef TESTS_HPU_CHANCE_H
#define TESTS_HPU_CHANCE_H

#include <stddef.h>
#include <stdint.h>

static uint64_t random_state;

static inline uint32_t next_random(void)
{
    random_state += 0x9e3779b97f4a7c15u;
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32 ^ z);
}

static inline uint32_t below(uint32_t bound)
{
    return next_random() % bound;
}

static inline void fill_random(void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((uint8_t *)bytes)[i] = (uint8_t)next_random();
    }
}

#endif
