/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers, the same on every machine: splitmix64 of Steele, Lea, Flood, "Fast splittable
 * pseudorandom number generators", 2014. */
#ifndef TESTS_SPLITMIX_H
#define TESTS_SPLITMIX_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* splitmix_below() is one of 0 ... bound - 1, or 0. */
static inline size_t splitmix_below(uint64_t *state, size_t bound)
{
    return bound > 0 ? (size_t)(splitmix(state) % bound) : 0;
}

#endif
