/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A key-value store that the NIC serves: the handler of a request's packet executes insert, get,
 * update or delete in a hash table in host memory.
 *
 *      memory of the entry   | lock, first | lock, first | ...   buckets
 *                            | node | node | node | ...          chained, of one size
 *                            | head of the free nodes |
 *      handler host memory   | tail, head | slot | slot | ...    requests for the host
 *
 * A handler visits `steps` nodes at most, and tries to take a lock only a few times. If a request
 * takes longer the handler puts it into the queue, and the program executes it when it calls
 * kvstore_serve(), with the same locks. So a long chain never blocks an HPU.
 *
 * A request is a message of one packet. Any number of clients may send any number of requests at
 * once. A request that is sent before an earlier one was answered may be executed before that one.
 */
#ifndef HANDLERS_KVSTORE_H
#define HANDLERS_KVSTORE_H

#include "portals4.h"
#include "spin.h"

enum kvstore_op { KV_GET, KV_INSERT, KV_UPDATE, KV_DELETE, KV_OPS };

/* How a request has ended: the low byte of the reply's hdr_data. */
enum kvstore_status {
    KV_DONE,
    KV_MISSING, /* get, update, delete: the store does not have the key */
    KV_EXISTS,  /* insert: the store has the key already */
    KV_FULL,    /* insert: there is no free node */
    KV_BUSY     /* the host's queue is full: the client should send the request again */
};

enum { KV_PACKET = 4096 }; /* bytes of a request or a value, at most */

/* A request, as it is sent; the key follows, then the value of an insert or update. */
struct kvstore_request {
    ptl_process_t client; /* the process that gets the reply */
    uint64_t bits;        /* match bits of the reply; its portal table index is the store's */
    uint64_t offset;      /* offset of the reply in the client's entry */
    uint64_t tag;         /* 56 bits that the reply returns in hdr_data, above the status */
    uint16_t key_length, value_length;
    uint32_t op;
};

_Static_assert(sizeof(struct kvstore_request) == 40, "clients and stores agree on it");

/* HPU memory of the entry: the shape of the table, set by kvstore_shape(). */
struct kvstore_state {
    uint64_t buckets, nodes; /* number of buckets and of nodes */
    uint64_t node;           /* bytes of a node */
    /* offsets in the entry's memory of the nodes and of the head of the free ones */
    uint64_t nodes_at, free_at;
    uint64_t memory;      /* bytes of the entry's memory */
    uint64_t slots, slot; /* slots of the queue: their number, bytes of one */
    uint64_t queue;       /* bytes of the queue */
    uint32_t key_most, value_most;
    uint32_t steps; /* nodes that a handler visits, at most */
    uint32_t unused;
};

/* kvstore_shape() computes a shape with room for `slots` requests in the host's queue.
 * PTL_ARG_INVALID: a number is 0, a request with the longest key and value does not fit into a
 * packet, or there are 2^32 nodes or more. */
int kvstore_shape(struct kvstore_state *shape, uint64_t buckets, uint64_t nodes, uint32_t key_most,
                  uint32_t value_most, uint32_t steps, uint64_t slots, ptl_size_t packet);

/* kvstore_format() makes an empty store in shape->memory bytes at `memory`, with a queue of
 * shape->queue bytes at `queue`, both at multiples of 8. */
void kvstore_format(const struct kvstore_state *shape, void *memory, void *queue);

/* kvstore_handlers() fills in the handlers of the entry over `memory`. The shape must last until
 * the entry is appended. A message that is no valid request ends with PTL_NI_HANDLER_FAIL and has
 * no reply. */
void kvstore_handlers(const struct kvstore_state *shape, void *queue, ptl_handlers_t *handlers);

/* ---- The host's functions ---- */

/* A reply that the program must put to the client. */
struct kvstore_reply {
    ptl_process_t client;
    ptl_match_bits_t bits;
    ptl_size_t offset;
    ptl_hdr_data_t hdr_data;
    ptl_size_t length;
    uint8_t value[KV_PACKET];
};

/* kvstore_serve() executes the oldest request of the queue, and fills in its reply. False: the
 * queue is empty, or the lock of the request's bucket is taken and the program should try again.
 * Only one thread at a time may call it. */
bool kvstore_serve(const struct kvstore_state *shape, void *memory, void *queue,
                   struct kvstore_reply *reply);

/* kvstore_counts() returns how many requests handlers have answered, and how many they have put
 * into the queue. */
void kvstore_counts(const void *queue, uint64_t *done, uint64_t *handed_over);

/* ---- The client's functions ---- */

/* kvstore_hash() returns the hash of a key. With several stores the key belongs to store (hash >>
 * 32) mod their number; the lower half gives the bucket. */
uint64_t kvstore_hash(const void *key, uint64_t length);

/* kvstore_request() writes a request of at most KV_PACKET bytes to `packet` and returns its length.
 * The client's entry must have room for the value of the reply. */
uint64_t kvstore_request(void *packet, const struct kvstore_request *request, const void *key,
                         const void *value);

#endif
