/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A key-value store; see kvstore.h.
 *
 * Handlers and the host run the same code on the table; struct table tells whether it accesses
 * memory by DMA or directly. Invariants:
 *
 * - A chain, and the contents of its nodes, are touched by the holder of its bucket's
 *   lock only.
 * - The free nodes are a stack; its head is {count of changes, number of the first node
 *   plus one}, swapped as one word, so that a head that was seen before is not taken for
 *   the same. A node's `next` may be read while another takes it: then the swap fails.
 * - A slot of the queue belongs to the handler whose swap moved `tail` over it, until it
 *   stores the ticket plus one in `ready`; then to the host, until that moves `head`.
 */
#include "kvstore.h"

#include "bytes.h"
#include "spin_handler.h"

enum { LOCK_TRIES = 8, NOT_YET = -1 };

struct bucket {
    uint64_t lock;
    uint64_t first; /* number of the first node of the chain + 1; 0: none */
};

struct node {
    uint64_t hash;
    uint32_t next; /* number of the next node + 1; 0: none */
    uint16_t key_length, value_length;
    /* key_most bytes for the key and value_most bytes for the value follow */
};

struct queue {
    uint64_t tail, head;
    uint64_t done; /* requests that handlers have answered */
    uint64_t unused;
};

struct slot {
    uint64_t ready; /* the slot's ticket + 1, when it is filled */
    uint64_t length;
    /* the request follows */
};

_Static_assert(sizeof(struct bucket) == 16 && sizeof(struct node) == 16 &&
                   sizeof(struct queue) == 32 && sizeof(struct slot) == 16,
               "all builds agree on the memory");

/* ---- Memory ---- */

struct table {
    const struct kvstore_state *s;
    uint8_t *memory; /* NULL: a handler runs the code, and uses DMA */
};

static void load(const struct table *t, uint64_t at, void *to, uint64_t length)
{
    if (t->memory != NULL) {
        bytes_copy(to, t->memory + at, length);
    } else {
        PtlHandlerDMAFromHostB(at, to, length, PTL_ME_HOST_MEM);
    }
}

static void store(const struct table *t, uint64_t at, const void *from, uint64_t length)
{
    if (t->memory != NULL) {
        bytes_copy(t->memory + at, from, length);
    } else {
        PtlHandlerDMAToHostB(from, at, length, PTL_ME_HOST_MEM);
    }
}

static bool swap(const struct table *t, uint64_t at, uint64_t expected, uint64_t desired)
{
    uint64_t found = expected;
    if (t->memory != NULL) { /* PtlHandlerCAS() works outside handlers, too */
        return PtlHandlerCAS((uint64_t *)(t->memory + at), expected, desired);
    }
    PtlHandlerDMACASB(at, &found, desired, PTL_ME_HOST_MEM);
    return found == expected;
}

/* Reads a word that others may be changing: by an atomic that adds 0, which reads all of it at
 * once. */
static uint64_t load_word(const struct table *t, uint64_t at)
{
    uint64_t found = 0;
    if (t->memory != NULL) {
        PtlHandlerFAdd((uint64_t *)(t->memory + at), &found, 0);
    } else {
        PtlHandlerDMACASB(at, &found, 0, PTL_ME_HOST_MEM);
    }
    return found;
}

static uint64_t node_at(const struct table *t, uint64_t number)
{
    return t->s->nodes_at + (number - 1) * t->s->node;
}

/* ---- Free nodes ---- */

/* Takes a free node for the caller, and returns its number, or 0 if none is left. */
static uint32_t take_node(const struct table *t)
{
    for (;;) {
        uint64_t head = load_word(t, t->s->free_at);
        struct node n;
        if ((uint32_t)head == 0) {
            return 0;
        }
        load(t, node_at(t, (uint32_t)head), &n, sizeof(n));
        if (swap(t, t->s->free_at, head, ((head >> 32) + 1) << 32 | n.next)) {
            return (uint32_t)head;
        }
    }
}

static void give_node(const struct table *t, uint32_t number)
{
    struct node n = {0, 0, 0, 0};
    uint64_t head;
    do {
        head = load_word(t, t->s->free_at);
        n.next = (uint32_t)head;
        store(t, node_at(t, number), &n, sizeof(n));
    } while (!swap(t, t->s->free_at, head, ((head >> 32) + 1) << 32 | number));
}

/* ---- Requests ---- */

/* The place of a key in a chain. */
struct place {
    uint32_t number; /* node of the key; 0: the chain does not have the key */
    uint32_t before; /* the node before it; 0: it is the first of its bucket */
    struct node node;
};

static const uint8_t *key_of(const struct kvstore_request *r)
{
    return (const uint8_t *)(r + 1);
}

static bool same_key(const struct table *t, uint64_t at, const struct kvstore_request *r)
{
    const uint8_t *key = key_of(r);
    uint8_t part[64];
    for (uint64_t done = 0; done < r->key_length; done += sizeof(part)) {
        uint64_t n = smaller(sizeof(part), r->key_length - done);
        load(t, at + sizeof(struct node) + done, part, n);
        if (!bytes_equal(part, key + done, n)) {
            return false;
        }
    }
    return true;
}

/* Searches the chain of a bucket for a key; false if that takes more than `steps` nodes. */
static bool find(const struct table *t, uint64_t bucket, uint64_t hash,
                 const struct kvstore_request *r, uint64_t steps, struct place *p)
{
    uint64_t first;
    load(t, bucket + sizeof(uint64_t), &first, sizeof(first));
    p->before = 0;
    for (p->number = (uint32_t)first; p->number != 0; p->number = p->node.next) {
        if (steps-- == 0) {
            return false;
        }
        uint64_t at = node_at(t, p->number);
        load(t, at, &p->node, sizeof(p->node));
        if (p->node.hash == hash && p->node.key_length == r->key_length && same_key(t, at, r)) {
            return true;
        }
        p->before = p->number;
    }
    return true;
}

static void write_value(const struct table *t, struct place *p, const struct kvstore_request *r)
{
    uint64_t at = node_at(t, p->number);
    p->node.value_length = r->value_length;
    store(t, at, &p->node, sizeof(p->node));
    store(t, at + sizeof(struct node) + t->s->key_most, key_of(r) + r->key_length, r->value_length);
}

static int insert(const struct table *t, uint64_t bucket, uint64_t hash,
                  const struct kvstore_request *r)
{
    uint64_t first;
    struct place p = {.number = take_node(t)};
    if (p.number == 0) {
        return KV_FULL;
    }
    load(t, bucket + sizeof(uint64_t), &first, sizeof(first));
    p.node.hash = hash;
    p.node.next = (uint32_t)first;
    p.node.key_length = r->key_length;
    store(t, node_at(t, p.number) + sizeof(struct node), key_of(r), r->key_length);
    write_value(t, &p, r);
    first = p.number;
    store(t, bucket + sizeof(uint64_t), &first, sizeof(first));
    return KV_DONE;
}

static void take_out(const struct table *t, uint64_t bucket, const struct place *p)
{
    uint64_t next = p->node.next;
    if (p->before == 0) {
        store(t, bucket + sizeof(uint64_t), &next, sizeof(next));
    } else {
        store(t, node_at(t, p->before) + offsetof(struct node, next), &p->node.next,
              sizeof(p->node.next));
    }
    give_node(t, p->number);
}

/* Executes a request, with the lock of the bucket held. */
static int obey(const struct table *t, uint64_t bucket, uint64_t hash,
                const struct kvstore_request *r, uint64_t steps, uint8_t *value, uint64_t *length)
{
    struct place p;
    if (!find(t, bucket, hash, r, steps, &p)) {
        return NOT_YET;
    }
    if (r->op == KV_INSERT) {
        return p.number != 0 ? KV_EXISTS : insert(t, bucket, hash, r);
    }
    if (p.number == 0) {
        return KV_MISSING;
    }
    if (r->op == KV_GET) {
        *length = p.node.value_length;
        load(t, node_at(t, p.number) + sizeof(struct node) + t->s->key_most, value, *length);
    } else if (r->op == KV_UPDATE) {
        write_value(t, &p, r);
    } else {
        take_out(t, bucket, &p);
    }
    return KV_DONE;
}

/* Takes the lock, executes a request and returns its status; NOT_YET if that took too many steps or
 * tries. */
static int do_request(const struct table *t, const struct kvstore_request *r, uint64_t steps,
                      uint8_t *value, uint64_t *length)
{
    uint64_t hash = kvstore_hash(key_of(r), r->key_length);
    uint64_t bucket = (uint32_t)hash % t->s->buckets * sizeof(struct bucket);
    for (unsigned i = 0; i < LOCK_TRIES; i++) {
        if (swap(t, bucket, 0, 1)) {
            int status = obey(t, bucket, hash, r, steps, value, length);
            swap(t, bucket, 1, 0);
            return status;
        }
        PtlHandlerYield();
    }
    return NOT_YET;
}

/* ---- On the NIC ---- */

static uint64_t slot_at(const struct kvstore_state *s, uint64_t ticket)
{
    return sizeof(struct queue) + ticket % s->slots * s->slot;
}

static uint64_t queue_word(uint64_t at)
{
    uint64_t found = 0;
    PtlHandlerDMACASB(at, &found, 0, PTL_HANDLER_HOST_MEM);
    return found;
}

/* Puts a request into the host's queue; false if that is full. `head` is read before `tail`: it can
 * only grow meanwhile, so the queue is never taken for emptier than it is. */
static bool hand_over(const struct kvstore_state *s, const void *request, uint64_t length)
{
    uint64_t ticket, found;
    do {
        uint64_t head = queue_word(offsetof(struct queue, head));
        ticket = found = queue_word(offsetof(struct queue, tail));
        if (ticket - head >= s->slots) {
            return false;
        }
        PtlHandlerDMACASB(offsetof(struct queue, tail), &found, ticket + 1, PTL_HANDLER_HOST_MEM);
    } while (found != ticket);
    uint64_t at = slot_at(s, ticket), before = 0;
    PtlHandlerDMAToHostB(&length, at + offsetof(struct slot, length), sizeof(length),
                         PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAToHostB(request, at + sizeof(struct slot), length, PTL_HANDLER_HOST_MEM);
    /* the host has set `ready` to 0 */
    PtlHandlerDMACASB(at, &before, ticket + 1, PTL_HANDLER_HOST_MEM);
    return true;
}

static bool is_request(const struct kvstore_state *s, const ptl_payload_t *p)
{
    const struct kvstore_request *r = (const struct kvstore_request *)p->base;
    return p->offset == 0 && p->length >= sizeof(*r) && r->op < KV_OPS &&
           r->key_length <= s->key_most && r->value_length <= s->value_most &&
           p->length == sizeof(*r) + r->key_length + r->value_length;
}

__handler static int kvstore_packet(const ptl_payload_t p, void *state)
{
    const struct kvstore_state *s = state;
    const struct kvstore_request *r = (const struct kvstore_request *)p.base;
    uint8_t value[KV_PACKET];
    uint64_t length = 0;
    if (!is_request(s, &p)) {
        return FAIL;
    }
    int status = do_request(&(struct table){s, NULL}, r, s->steps, value, &length);
    if (status == NOT_YET && hand_over(s, r, p.length)) {
        return SUCCESS;
    }
    status = status == NOT_YET ? KV_BUSY : status;
    PtlHandlerDMAFetchAddB(offsetof(struct queue, done), 1, NULL, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    int rc = PtlHandlerPutFromDevice(value, length, PTL_NO_ACK_REQ, r->client, r->bits, r->offset,
                                     NULL, r->tag << 8 | (uint64_t)status);
    return rc == PTL_OK ? SUCCESS : FAIL;
}
PTL_HANDLER(kvstore_packet);

/* ---- The host's functions ---- */

int kvstore_shape(struct kvstore_state *shape, uint64_t buckets, uint64_t nodes, uint32_t key_most,
                  uint32_t value_most, uint32_t steps, uint64_t slots, ptl_size_t packet)
{
    uint64_t request = sizeof(struct kvstore_request) + (uint64_t)key_most + value_most;
    if (buckets == 0 || nodes == 0 || slots == 0 || key_most == 0 || key_most > UINT16_MAX ||
        value_most > UINT16_MAX || request > smaller(packet, KV_PACKET) || nodes >= UINT32_MAX ||
        buckets > UINT32_MAX || slots > UINT32_MAX) {
        return PTL_ARG_INVALID;
    }
    bytes_zero(shape, sizeof(*shape));
    shape->buckets = buckets;
    shape->nodes = nodes;
    shape->key_most = key_most;
    shape->value_most = value_most;
    shape->steps = steps;
    shape->slots = slots;
    shape->node = (sizeof(struct node) + (uint64_t)key_most + value_most + 7) / 8 * 8;
    shape->nodes_at = buckets * sizeof(struct bucket);
    shape->free_at = shape->nodes_at + nodes * shape->node;
    shape->memory = shape->free_at + sizeof(uint64_t);
    shape->slot = (sizeof(struct slot) + request + 7) / 8 * 8;
    shape->queue = sizeof(struct queue) + slots * shape->slot;
    return PTL_OK;
}

void kvstore_format(const struct kvstore_state *shape, void *memory, void *queue)
{
    struct table t = {shape, memory};
    bytes_zero(memory, shape->memory);
    bytes_zero(queue, shape->queue);
    for (uint64_t number = shape->nodes; number > 0; number--) {
        give_node(&t, (uint32_t)number);
    }
}

void kvstore_handlers(const struct kvstore_state *shape, void *queue, ptl_handlers_t *handlers)
{
    *handlers = (ptl_handlers_t){
        .payload_handler = kvstore_packet,
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_initial_state = shape,
        .hpu_initial_length = sizeof(*shape),
        .handler_host_mem = queue,
        .handler_host_length = shape->queue,
    };
}

bool kvstore_serve(const struct kvstore_state *shape, void *memory, void *queue,
                   struct kvstore_reply *reply)
{
    struct queue *q = queue;
    /* only this thread changes `head` */
    uint64_t ticket = __atomic_load_n(&q->head, __ATOMIC_RELAXED);
    struct slot *slot = (struct slot *)((uint8_t *)queue + slot_at(shape, ticket));
    if (__atomic_load_n(&slot->ready, __ATOMIC_ACQUIRE) != ticket + 1) {
        return false;
    }
    const struct kvstore_request *r = (const struct kvstore_request *)(slot + 1);
    reply->length = 0;
    int status =
        do_request(&(struct table){shape, memory}, r, UINT64_MAX, reply->value, &reply->length);
    if (status == NOT_YET) {
        return false;
    }
    reply->client = r->client;
    reply->bits = r->bits;
    reply->offset = r->offset;
    reply->hdr_data = r->tag << 8 | (uint64_t)status;
    __atomic_store_n(&slot->ready, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&q->head, ticket + 1, __ATOMIC_SEQ_CST);
    return true;
}

void kvstore_counts(const void *queue, uint64_t *done, uint64_t *handed_over)
{
    const struct queue *q = queue;
    *done = __atomic_load_n(&q->done, __ATOMIC_RELAXED);
    *handed_over = __atomic_load_n(&q->tail, __ATOMIC_RELAXED);
}

/* FNV-1a, then another mixing step: the upper bits of FNV-1a depend too little on short keys. */
uint64_t kvstore_hash(const void *key, uint64_t length)
{
    const uint8_t *k = key;
    uint64_t h = 0xcbf29ce484222325u;
    for (uint64_t i = 0; i < length; i++) {
        h = (h ^ k[i]) * 0x100000001b3u;
    }
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

uint64_t kvstore_request(void *packet, const struct kvstore_request *request, const void *key,
                         const void *value)
{
    uint8_t *to = packet;
    bytes_copy(to, request, sizeof(*request));
    bytes_copy(to + sizeof(*request), key, request->key_length);
    bytes_copy(to + sizeof(*request) + request->key_length, value, request->value_length);
    return sizeof(*request) + request->key_length + request->value_length;
}
