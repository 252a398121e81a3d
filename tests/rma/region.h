/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests of libpinwheel-rma have in common: an interface of some kind with a struct pw_rma, and
 * keys that go from one rank to the others by the harness's page.
 */
#ifndef REGION_H
#define REGION_H

#include "../process/port.h"

#include "pinwheel_rma.h"

#include <errno.h>
#include <string.h>

struct ends {
    struct port port;
    struct pw_rma *rma;
    struct pw_rma_region *region; /* of ends_serve(), at the rank that has it */
    struct pw_rma_key *key;       /* and its key, at each rank */
};

/* For calls of the library: they give 0, or the given negative errno. */
#define DONE(call) CHECK_EQ((int64_t)(call), 0)
#define REFUSED(call, code) CHECK_EQ((int64_t)(call), (int64_t) - (code))

static inline struct pw_rma *rma_open(const struct port *p)
{
    struct pw_rma *rma;
    struct pw_rma_config config = {1, &p->ni, &p->limits, PW_RMA_ANY_USER};
    DONE(pw_rma_open(&config, &rma));
    return rma;
}

static inline void ends_open(struct ends *e, unsigned kind, int rank, int size)
{
    port_open(&e->port, kind, rank, size);
    e->rma = rma_open(&e->port);
}

static inline void ends_close(struct ends *e)
{
    BARRIER();
    DONE(pw_rma_close(e->rma));
    port_close(&e->port);
}

enum { KEY_WORDS = PW_RMA_KEY / 8 };

/* Shows a region's key to the other ranks; they see it after a barrier. */
static inline void key_show(const struct pw_rma_region *region)
{
    uint64_t words[KEY_WORDS];
    DONE(pw_rma_key_pack(region, words, sizeof(words)));
    for (int i = 0; i < KEY_WORDS; i++) {
        ptest_show(i, words[i]);
    }
}

static inline void key_look(int rank, unsigned char *bytes)
{
    for (int i = 0; i < KEY_WORDS; i++) {
        uint64_t word = ptest_look(rank, i);
        memcpy(bytes + 8 * i, &word, 8);
    }
}

static inline struct pw_rma_key *key_of(struct pw_rma *rma, int rank)
{
    unsigned char bytes[PW_RMA_KEY];
    struct pw_rma_key *key;
    key_look(rank, bytes);
    DONE(pw_rma_key_open(rma, bytes, sizeof(bytes), &key));
    return key;
}

static inline struct pw_rma_region *region_of(struct pw_rma *rma, void *start, size_t length,
                                              unsigned access)
{
    struct pw_rma_region *region;
    DONE(pw_rma_register(rma, start, length, access, &region));
    return region;
}

/* Memory of the library, which peers map. */
static inline struct pw_rma_region *region_shared(struct pw_rma *rma, size_t length,
                                                  unsigned access, void *start)
{
    struct pw_rma_region *region;
    DONE(pw_rma_allocate(rma, length, access, (void **)start, &region));
    return region;
}

static inline uint64_t messages_of(struct pw_rma *rma)
{
    struct pw_rma_statistics s;
    pw_rma_statistics(rma, &s);
    return s.messages;
}

static inline void region_end(struct pw_rma_region *region)
{
    int rc;
    while ((rc = pw_rma_unregister(region)) == -EBUSY) {
        ptest_sleep_ms(1);
    }
    DONE(rc);
}

/* ends_serve() opens, and gives all ranks a key of `length` bytes at rank `target`. ends_served()
 * ends that when all of them have come to it. */
static inline void ends_serve(struct ends *e, unsigned kind, int rank, int size, int target,
                              void *start, size_t length, unsigned access)
{
    ends_open(e, kind, rank, size);
    e->region = NULL;
    if (rank == target) {
        e->region = region_of(e->rma, start, length, access);
        key_show(e->region);
    }
    BARRIER();
    e->key = key_of(e->rma, target);
}

static inline void ends_served(struct ends *e)
{
    pw_rma_key_close(e->key);
    BARRIER();
    if (e->region != NULL) {
        region_end(e->region);
    }
    ends_close(e);
}

/* Gives the bytes of a key the sum that they should have, as a forger would. */
static inline void key_forge(unsigned char *bytes)
{
    uint32_t s = 2166136261u;
    for (int i = 0; i < PW_RMA_KEY - 4; i++) {
        s = (s ^ bytes[i]) * 16777619u;
    }
    for (int i = 0; i < 4; i++) {
        bytes[PW_RMA_KEY - 4 + i] = (unsigned char)(s >> 8 * i);
    }
}

/* Offsets of fields of a key (lib/rma/wire.c). */
enum { KEY_VERSION = 4, KEY_RAIL = 5, KEY_ACCESS = 6, KEY_BITS = 16, KEY_LENGTH = 24, KEY_ID = 32 };

#endif
