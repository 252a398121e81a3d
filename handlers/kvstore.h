/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A key-value store that the NIC serves: insert, get, update and delete are done by the
 * handler of the request's packet, in a hash table in host memory.
 *
 *      memory of the entry   | lock, first | lock, first | ...   buckets
 *                            | node | node | node | ...          chained, of one size
 *                            | head of the free nodes |
 *      handler host memory   | tail, head | slot | slot | ...    requests for the host
 *
 * A handler walks `steps` nodes at most and asks for a lock a few times only. What takes
 * longer it hands over: the request goes into the queue, and the program does it when
 * it calls kvstore_serve(), with the same locks. So a long chain never holds an HPU up.
 *
 * Requests are messages of one packet. Any number of clients may send any number at once;
 * two requests of which one has not been answered may be done in either order.
 */
#ifndef HANDLERS_KVSTORE_H
#define HANDLERS_KVSTORE_H

#include "portals4.h"
#include "spin.h"

enum kvstore_op { KV_GET, KV_INSERT, KV_UPDATE, KV_DELETE, KV_OPS };

/* How a request ended: the low byte of the reply's hdr_data. */
enum kvstore_status {
    KV_DONE,
    KV_MISSING, /* get, update, delete: there is no such key */
    KV_EXISTS,  /* insert: there is one */
    KV_FULL,    /* insert: no node is left */
    KV_BUSY     /* the host's queue is full: ask again */
};

enum { KV_PACKET = 4096 }; /* a request or a value, at most */

/* A request, as it travels; the key follows, then the value of an insert or update. */
struct kvstore_request {
    ptl_process_t client; /* to whom the reply goes */
    uint64_t bits;        /* its match bits; the portal table index is the store's */
    uint64_t offset;      /* its place in the client's entry */
    uint64_t tag;         /* 56 bits that come back in hdr_data, above the status */
    uint16_t key_length, value_length;
    uint32_t op;
};

_Static_assert(sizeof(struct kvstore_request) == 40, "clients and stores agree on it");

/* HPU memory of the entry: the shape of the table, set by kvstore_shape(). */
struct kvstore_state {
    uint64_t buckets, nodes;    /* numbers of them */
    uint64_t node;              /* bytes of one */
    uint64_t nodes_at, free_at; /* in the entry's memory */
    uint64_t memory;            /* bytes of it */
    uint64_t slots, slot;       /* of the queue: number, bytes of one */
    uint64_t queue;             /* bytes of it */
    uint32_t key_most, value_most;
    uint32_t steps; /* nodes that a handler looks at, at most */
    uint32_t unused;
};

/* kvstore_shape() computes a shape: `slots` requests wait for the host at most. PTL_ARG_INVALID:
 * a number is 0, keys and values do not fit in a request of a packet, or there are
 * 2^32 nodes or more. */
int kvstore_shape(struct kvstore_state *shape, uint64_t buckets, uint64_t nodes, uint32_t key_most,
                  uint32_t value_most, uint32_t steps, uint64_t slots, ptl_size_t packet);

/* kvstore_format() makes an empty store: shape->memory bytes at `memory`, shape->queue at
 * `queue`, both at multiples of 8. */
void kvstore_format(const struct kvstore_state *shape, void *memory, void *queue);

/* kvstore_handlers() fills in the handlers of the entry over `memory`. The shape must
 * last until the entry is appended. A request that is none ends with
 * PTL_NI_HANDLER_FAIL and has no reply. */
void kvstore_handlers(const struct kvstore_state *shape, void *queue, ptl_handlers_t *handlers);

/* ---- The host's share ---- */

/* A reply that the program is to put. */
struct kvstore_reply {
    ptl_process_t client;
    ptl_match_bits_t bits;
    ptl_size_t offset;
    ptl_hdr_data_t hdr_data;
    ptl_size_t length;
    uint8_t value[KV_PACKET];
};

/* kvstore_serve() does the oldest request that was handed over, and fills in its reply.
 * False: none waits, or its bucket is in use; try again. One thread at a time. */
bool kvstore_serve(const struct kvstore_state *shape, void *memory, void *queue,
                   struct kvstore_reply *reply);

/* kvstore_counts() tells how many requests the NIC answered, and how many it handed over. */
void kvstore_counts(const void *queue, uint64_t *done, uint64_t *handed_over);

/* ---- The client's share ---- */

/* kvstore_hash() is the hash of a key: the store of many is (hash >> 32) mod their number,
 * the bucket is taken from the lower half. */
uint64_t kvstore_hash(const void *key, uint64_t length);

/* kvstore_request() writes a request of at most KV_PACKET bytes to `packet` and returns its
 * length. The client's entry must have room for a value. */
uint64_t kvstore_request(void *packet, const struct kvstore_request *request, const void *key,
                         const void *value);

#endif
