/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The small kernels with which PsPIN was measured (Di Girolamo et al., ISCA'21). Each does one
 * simple operation on each packet.
 *
 *      copy       packet ──► its place in the entry's memory
 *      aggregate  packet ──► sum of its 32-bit words ──► added to the host's sum
 *      histogram  packet ──► counts of its 32-bit words ──► added to the host's bins
 *      reduce     packet ──► added to a vector in HPU memory; after the last message that
 *                            goes to the host, in one transfer
 *      filter     packet ──► records whose key is in a set ──► gathered, behind those
 *                            that other packets have left in host memory
 *
 * All but copy serve any number of messages of any senders at once: handlers update shared memory
 * atomically or under a lock, packet by packet.
 */
#ifndef HANDLERS_PSPIN_H
#define HANDLERS_PSPIN_H

#include "portals4.h"
#include "spin.h"

/* ---- copy ---- */

/* pspin_copy_handlers() fills in handlers that write a message to the start of the entry. A message
 * that is longer than the entry ends with PTL_NI_HANDLER_SEGV. */
void pspin_copy_handlers(ptl_handlers_t *handlers);

/* ---- aggregate ---- */

/* The handler host memory, zeroed by the host; the sum is valid when all messages are complete. */
struct pspin_sum {
    uint64_t sum;   /* modulo 2^64 */
    uint64_t words; /* words that were added */
};

/* A message that is no whole number of words ends with PTL_NI_HANDLER_FAIL; its other packets may
 * have been added. The same holds for histogram, and for records with filter. */
void pspin_aggregate_handlers(struct pspin_sum *sum, ptl_handlers_t *handlers);

/* ---- histogram ---- */

enum { PSPIN_BINS = 1024 };

/* The handler host memory, zeroed by the host. */
struct pspin_histogram {
    uint64_t bin[PSPIN_BINS]; /* counts of the words 0 to PSPIN_BINS - 1 */
    uint64_t beyond;          /* count of larger words */
    uint64_t lock;            /* held while a handler adds to the counts: host_lock.h */
};

void pspin_histogram_handlers(struct pspin_histogram *histogram, ptl_handlers_t *handlers);

/* ---- reduce ---- */

enum { PSPIN_REDUCE_LOCKS = 4 };

/* HPU memory; the vector follows, with 8 bytes for each element. */
struct pspin_reduce_state {
    uint64_t elements; /* elements of the vector; the host sets it */
    /* messages that are added up to a result; the host sets it */
    uint64_t messages;
    /* messages that are complete; completion handlers count them */
    uint64_t complete;
    /* each for a part of the packets: 1 while one of them is being added */
    uint64_t lock[PSPIN_REDUCE_LOCKS];
    uint64_t unused;
};

/* pspin_reduce_memory() returns the size of the HPU memory, which the host zeroes. */
uint64_t pspin_reduce_memory(uint64_t elements);

/* pspin_reduce_handlers() fills in the handlers of an entry that adds up `messages` messages
 * of `elements` 64-bit integers and then writes the sum to `result`. A message of another
 * length ends with PTL_NI_HANDLER_FAIL and does not count. */
void pspin_reduce_handlers(uint64_t elements, uint64_t messages, ptl_handle_hpu_mem_t memory,
                           uint64_t *result, struct pspin_reduce_state *state,
                           ptl_handlers_t *handlers);

/* ---- filter ---- */

enum { PSPIN_SLOTS = 1024, PSPIN_KEYS = 768, PSPIN_RECORD = 64 };

/* HPU memory: the set of keys, which the host makes with pspin_filter_add() and which is constant
 * then. */
struct pspin_filter_state {
    uint64_t slot[PSPIN_SLOTS]; /* keys, each at its hash or in a slot behind it; 0: empty */
    uint64_t keys;
    uint64_t zero;   /* 1: the key 0 is in the set */
    uint64_t record; /* bytes of a record: 8, 16, 32 or 64; its key comes first */
    uint64_t room;   /* records that the host has room for */
};

/* The handler host memory: this, then the records. */
struct pspin_kept {
    uint64_t records; /* records that passed, also those for which there was no room */
    uint64_t unused[7];
};

/* pspin_filter_start() makes an empty set. PTL_ARG_INVALID: records cannot have this size. */
int pspin_filter_start(struct pspin_filter_state *state, uint64_t record);

/* pspin_filter_add() adds a key. PTL_NO_SPACE: the set has PSPIN_KEYS keys. */
int pspin_filter_add(struct pspin_filter_state *state, uint64_t key);

/* pspin_filter_handlers() fills in the handlers of an entry that keeps the records whose keys are
 * in the set: up to `room` of them, behind *kept, which is zeroed before. The records of a packet
 * stay together and in order; packets may come in any order. */
void pspin_filter_handlers(struct pspin_filter_state *state, struct pspin_kept *kept, uint64_t room,
                           ptl_handlers_t *handlers);

#endif
