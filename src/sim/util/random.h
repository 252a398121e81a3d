/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers for generators, without state: a number is a function of a key and a count, and a
 * permutation is a function that gives any element, or the index of any element.
 */
#ifndef SIM_GOAL_RANDOM_H
#define SIM_GOAL_RANDOM_H

#include <stdint.h>

/* The finaliser of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom
 * number generators", 2014). */
static inline uint64_t goal_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns the random number with index `count` of the sequence of `key`. */
static inline uint64_t goal_random(uint64_t key, uint64_t count)
{
    return goal_mix(goal_mix(key) + (count + 1) * 0x9e3779b97f4a7c15u);
}

/* Maps 64 random bits to a number from 0 to `highest`. */
static inline uint64_t goal_scale(uint64_t bits, uint64_t highest)
{
    return highest == UINT64_MAX
               ? bits
               : (uint64_t)(((unsigned __int128)bits * ((unsigned __int128)highest + 1)) >> 64);
}

/* A permutation of 0 .. n-1: a Feistel network of four rounds (Luby, Rackoff,
 * "How to construct pseudorandom permutations", 1988) on the next even number of
 * bits, repeated until the result is below n. */
struct goal_permutation {
    uint64_t n;
    uint64_t key;
    unsigned half; /* bits */
};

static inline struct goal_permutation goal_permutation(uint64_t n, uint64_t key)
{
    struct goal_permutation p = {.n = n, .key = key, .half = 1};
    while ((UINT64_C(1) << (2 * p.half)) < n) {
        p.half++;
    }
    return p;
}

static inline uint64_t goal_permute(const struct goal_permutation *p, uint64_t i)
{
    uint64_t mask = (UINT64_C(1) << p->half) - 1;
    do {
        uint64_t left = i >> p->half, right = i & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t next = left ^ (goal_random(p->key + round, right) & mask);
            left = right;
            right = next;
        }
        i = left << p->half | right;
    } while (i >= p->n);
    return i;
}

static inline uint64_t goal_permute_back(const struct goal_permutation *p, uint64_t i)
{
    uint64_t mask = (UINT64_C(1) << p->half) - 1;
    do {
        uint64_t left = i >> p->half, right = i & mask;
        for (uint64_t round = 4; round-- > 0;) {
            uint64_t before = right ^ (goal_random(p->key + round, left) & mask);
            right = left;
            left = before;
        }
        i = left << p->half | right;
    } while (i >= p->n);
    return i;
}

#endif
