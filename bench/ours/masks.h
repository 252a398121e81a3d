/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Match bits as Open MPI's receives make them: bits 63-60 protocol, 59-48
 * communicator, 47-24 source, 23-0 tag. Every receive ignores the protocol bits; that
 * of any source ignores the source bits as well, that of any tag the tag bits. The
 * other half of the masks is there to make eight.
 */
#ifndef BENCH_OURS_MASKS_H
#define BENCH_OURS_MASKS_H

#include <stdint.h>

#define MASKS_PROTOCOL 0xf000000000000000u
#define MASKS_SOURCE 0x0000ffffff000000u
#define MASKS_TAG 0x00000000007fffffu
#define MASKS_TAG_ALL 0x0000000000ffffffu

static const uint64_t masks_eight[] = {
    MASKS_PROTOCOL,
    MASKS_PROTOCOL | MASKS_SOURCE,
    MASKS_PROTOCOL | MASKS_TAG,
    MASKS_PROTOCOL | MASKS_SOURCE | MASKS_TAG,
    0,
    MASKS_SOURCE,
    MASKS_TAG_ALL,
    MASKS_SOURCE | MASKS_TAG_ALL,
};

enum { MASKS = sizeof(masks_eight) / sizeof(masks_eight[0]) };

/* masks_bits() are distinct in communicator, source and tag, so that up to 4,096
 * entries differ under any of the masks. */
static inline uint64_t masks_bits(uint64_t entry)
{
    return UINT64_C(1) << 60 | entry << 48 | entry << 24 | entry;
}

/* masks_random() steps a generator of pseudo-random numbers, whose state is never 0. */
static inline uint64_t masks_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 20;
}

#endif
