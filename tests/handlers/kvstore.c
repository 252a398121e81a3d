/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/kvstore: random requests of clients on keys of their own against an array,
 * with tables so crowded that the host has its share, or nearly all; clients that fight for the
 * same keys; full tables and full queues.
 *
 *      ranks 0 and 1: stores          ranks 2 and 3: clients
 */
#include "kit.h"

#include "kvstore.h"

#include <sched.h>

enum { STORE_BITS = 1, REPLY_BITS = 2, STORES = 2, KEY = 24, VALUE = 64, END = 3 };

/* ---- A store ---- */

struct store {
    struct kvstore_state shape;
    void *memory, *queue;
};

static struct store open_store(struct kit *k, uint64_t buckets, uint64_t nodes, uint32_t steps,
                               uint64_t slots)
{
    struct store s;
    ptl_handlers_t h;
    OK(kvstore_shape(&s.shape, buckets, nodes, KEY, VALUE, steps, slots, k->packet));
    s.memory = kit_memory(s.shape.memory);
    s.queue = kit_memory(s.shape.queue);
    kvstore_format(&s.shape, s.memory, s.queue);
    kvstore_handlers(&s.shape, s.queue, &h);
    kit_entry(k, s.memory, s.shape.memory, STORE_BITS, 0, PTL_CT_NONE, &h);
    return s;
}

/* The host's share, until all clients say that they have done. */
static void serve(struct kit *k, struct store *s, int clients)
{
    static struct kvstore_reply reply;
    ptl_handle_ct_t ct = port_ct(&k->p);
    ptl_handle_md_t md =
        port_quiet_md(&k->p, reply.value, sizeof(reply.value), PTL_MD_EVENT_CT_ACK, ct);
    uint64_t replies = 0;
    for (int ended = 0; ended < clients;) {
        ended = 0;
        for (int r = 0; r < k->p.size; r++) {
            ended += ptest_look(r, END) != 0;
        }
        if (!kvstore_serve(&s->shape, s->memory, s->queue, &reply)) {
            ptl_ct_event_t ignored;
            OK(PtlCTGet(ct, &ignored));
            sched_yield();
            continue;
        }
        OK(PtlPut(md, 0, reply.length, PTL_CT_ACK_REQ, reply.client, k->p.pt, reply.bits,
                  reply.offset, NULL, reply.hdr_data));
        kit_wait(ct, ++replies); /* the value may be overwritten now */
    }
    port_release(md);
}

/* ---- A client ---- */

struct client {
    struct kit *k;
    struct kit_sender sender;
    unsigned char *requests, *values; /* one a request under way */
    ptl_handle_eq_t eq;
};

enum { WINDOW = 8, REQUEST_MOST = 256 };

static struct client open_client(struct kit *k)
{
    struct client c = {.k = k,
                       .requests = kit_memory(WINDOW * REQUEST_MOST),
                       .values = kit_memory(WINDOW * VALUE)};
    c.sender = kit_sender(k, c.requests, WINDOW * REQUEST_MOST);
    ptl_me_t me =
        port_entry(&k->p, c.values, WINDOW * VALUE, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    me.match_bits = REPLY_BITS;
    me.ignore_bits = 0;
    port_append(&k->p, &me, NULL);
    return c;
}

static void ask(struct client *c, unsigned slot, enum kvstore_op op, const char *key,
                const void *value, size_t length)
{
    struct kvstore_request r = {.client = c->k->p.id[c->k->p.rank],
                                .bits = REPLY_BITS,
                                .offset = slot * VALUE,
                                .tag = slot,
                                .key_length = (uint16_t)strlen(key),
                                .value_length = (uint16_t)length,
                                .op = op};
    unsigned char *packet = c->requests + slot * REQUEST_MOST;
    uint64_t bytes = kvstore_request(packet, &r, key, value);
    int store = (int)((kvstore_hash(key, strlen(key)) >> 32) % STORES);
    kit_put(&c->sender, slot * REQUEST_MOST, bytes, store, STORE_BITS, 0, 0);
}

/* The next reply: its slot and how it ended; the value's length is *length. */
static unsigned answer(struct client *c, enum kvstore_status *status, size_t *length)
{
    ptl_event_t e = EVENT(c->k->p.eq, PTL_EVENT_PUT);
    *status = (enum kvstore_status)(e.hdr_data & 0xff);
    *length = e.mlength;
    CHECK(e.hdr_data >> 8 < WINDOW);
    CHECK_EQ(e.remote_offset, (e.hdr_data >> 8) * VALUE);
    return (unsigned)(e.hdr_data >> 8);
}

static enum kvstore_status ask_one(struct client *c, enum kvstore_op op, const char *key,
                                   const void *value, size_t length, size_t *found)
{
    enum kvstore_status status;
    ask(c, 0, op, key, value, length);
    CHECK_EQ(answer(c, &status, found), 0);
    return status;
}

static void end(struct kit *k)
{
    ptest_show(END, 1);
    BARRIER();
    ptest_show(END, 0);
    BARRIER();
}

/* ---- Random requests against an array ---- */

enum { KEYS = 150, REQUESTS = 3000 };

struct model {
    bool there[KEYS], busy[KEYS];
    size_t length[KEYS];
    unsigned seed[KEYS];
};

struct asked {
    int key;
    enum kvstore_op op;
    size_t length;
    unsigned seed;
};

static void ask_random(struct client *c, struct model *m, struct asked *a, unsigned slot,
                       uint64_t *random)
{
    char name[KEY + 1];
    unsigned char value[VALUE];
    do {
        a->key = (int)(splitmix(random) % KEYS);
    } while (m->busy[a->key]);
    m->busy[a->key] = true;
    a->op = (enum kvstore_op)(splitmix(random) % KV_OPS);
    a->length = a->op == KV_INSERT || a->op == KV_UPDATE ? splitmix(random) % (VALUE + 1) : 0;
    a->seed = (unsigned)splitmix(random);
    ptest_fill(value, a->length, a->seed);
    snprintf(name, sizeof(name), "key %d of client %d", a->key, c->k->p.rank);
    ask(c, slot, a->op, name, value, a->length);
}

static void check_answer(struct client *c, struct model *m, const struct asked *a, unsigned slot,
                         enum kvstore_status status, size_t length)
{
    int i = a->key;
    enum kvstore_status want = a->op == KV_INSERT ? m->there[i] ? KV_EXISTS : KV_DONE
                               : m->there[i]      ? KV_DONE
                                                  : KV_MISSING;
    CHECK_EQ(status, want);
    m->busy[i] = false;
    bool value = a->op == KV_GET && want == KV_DONE;
    CHECK_EQ(length, value ? m->length[i] : 0);
    if (value) {
        CHECK_FILL(c->values + slot * VALUE, length, m->seed[i]);
    } else if (want == KV_DONE) {
        m->there[i] = a->op != KV_DELETE;
        m->length[i] = a->length;
        m->seed[i] = a->seed;
    }
}

static void run_client(struct kit *k)
{
    static struct model m;
    struct client c = open_client(k);
    struct asked asked[WINDOW];
    uint64_t random = (uint64_t)k->p.rank;
    memset(&m, 0, sizeof(m));
    BARRIER();
    for (unsigned slot = 0; slot < WINDOW; slot++) {
        ask_random(&c, &m, &asked[slot], slot, &random);
    }
    for (int i = 0; i < REQUESTS; i++) {
        size_t length;
        enum kvstore_status status;
        unsigned slot = answer(&c, &status, &length);
        check_answer(&c, &m, &asked[slot], slot, status, length);
        if (i + WINDOW < REQUESTS) {
            ask_random(&c, &m, &asked[slot], slot, &random);
        }
    }
    kit_flush(&c.sender);
}

static void run_store(struct kit *k, uint64_t buckets, uint32_t steps)
{
    uint64_t done, handed_over;
    struct store s = open_store(k, buckets, 2 * KEYS, steps, 2 * WINDOW);
    BARRIER();
    serve(k, &s, k->p.size - STORES);
    end(k);
    kvstore_counts(s.queue, &done, &handed_over);
    CHECK(done + handed_over > REQUESTS / 2);
    CHECK((done > 100) == (steps > 0));
    CHECK(steps < 100 ? handed_over > 100 : handed_over < done); /* it may find locks taken */
}

static void random_requests(int rank, int size, uint64_t buckets, uint32_t steps)
{
    struct kit k;
    kit_open(&k, rank, size);
    if (rank < STORES) {
        run_store(&k, buckets, steps);
    } else {
        run_client(&k);
        end(&k);
    }
    kit_close(&k);
}

PTEST(by_the_nic, 4)
{
    random_requests(rank, size, 64, 1000);
}

PTEST(by_both, 4)
{
    random_requests(rank, size, 5, 8);
}

PTEST(by_the_host, 4)
{
    random_requests(rank, size, 1, 0);
}

/* ---- The same keys ---- */

/* All clients insert and delete the same few keys: of what they did, the number of
 * inserts less that of deletes is what is there at the end. */
PTEST(contention, 4)
{
    struct kit k;
    kit_open(&k, rank, size);
    enum { SHARED = 3, TRIES = 1500 };
    int64_t balance[SHARED] = {0};
    char name[KEY];
    if (rank < STORES) {
        struct store s = open_store(&k, 1, 4, 2, 64);
        BARRIER();
        serve(&k, &s, 2);
    } else {
        struct client c = open_client(&k);
        uint64_t random = (uint64_t)rank;
        BARRIER();
        for (int i = 0; i < TRIES; i++) {
            unsigned key = (unsigned)(splitmix(&random) % SHARED);
            bool in = splitmix(&random) % 2;
            size_t length;
            snprintf(name, sizeof(name), "shared %u", key);
            enum kvstore_status status =
                ask_one(&c, in ? KV_INSERT : KV_DELETE, name, "value", in ? 5 : 0, &length);
            CHECK(status == KV_DONE || status == (in ? KV_EXISTS : KV_MISSING));
            balance[key] += status == KV_DONE ? in ? 1 : -1 : 0;
        }
        for (int i = 0; i < SHARED; i++) {
            ptest_show(10 + i, (uint64_t)balance[i]);
        }
        ptest_show(9, 1); /* before the last look */
        while (ptest_look(2, 9) == 0 || ptest_look(3, 9) == 0) {
            ptest_sleep_ms(1);
        }
        for (int i = 0; i < SHARED; i++) {
            size_t length;
            uint64_t there = ptest_look(2, 10 + i) + ptest_look(3, 10 + i);
            snprintf(name, sizeof(name), "shared %d", i);
            CHECK(there <= 1);
            CHECK_EQ(ask_one(&c, KV_GET, name, NULL, 0, &length), there ? KV_DONE : KV_MISSING);
        }
    }
    end(&k);
    kit_close(&k);
}

/* ---- Full ---- */

PTEST(full, 3)
{
    struct kit k;
    kit_open(&k, rank, size);
    enum { NODES = 10 };
    if (rank < STORES) {
        struct store s = open_store(&k, 2, NODES, 100, 1);
        BARRIER();
        serve(&k, &s, 1);
    } else {
        struct client c = open_client(&k);
        size_t length;
        int there = 0, refused = 0;
        char name[KEY];
        BARRIER();
        for (int i = 0; i < 100; i++) {
            snprintf(name, sizeof(name), "%d", i);
            enum kvstore_status status = ask_one(&c, KV_INSERT, name, "x", 1, &length);
            there += status == KV_DONE;
            refused += status == KV_FULL;
        }
        CHECK_EQ(there, STORES * NODES);
        CHECK_EQ(refused, 100 - STORES * NODES);
        for (int i = 0; i < 100; i++) {
            snprintf(name, sizeof(name), "%d", i);
            there -= ask_one(&c, KV_DELETE, name, NULL, 0, &length) == KV_DONE;
        }
        CHECK_EQ(there, 0);
        CHECK_EQ(ask_one(&c, KV_INSERT, "again", "x", 1, &length), KV_DONE);
        CHECK_EQ(ask_one(&c, KV_INSERT, "", NULL, 0, &length), KV_DONE); /* no bytes: a key, too */
        CHECK_EQ(ask_one(&c, KV_GET, "", NULL, 0, &length), KV_DONE);
        CHECK_EQ(length, 0);
    }
    end(&k);
    kit_close(&k);
}

/* A host that does not serve: what is beyond the queue's slots is told at once. */
PTEST(busy, 3)
{
    struct kit k;
    kit_open(&k, rank, size);
    enum { SLOTS = 3 };
    if (rank < STORES) {
        struct store s = open_store(&k, 1, 8, 0, SLOTS);
        BARRIER();
        BARRIER();
        serve(&k, &s, 1);
    } else {
        struct client c = open_client(&k);
        enum kvstore_status status;
        size_t length;
        BARRIER();
        for (unsigned slot = 0; slot < WINDOW; slot++) {
            ask(&c, slot, KV_INSERT, "the same store", NULL, 0);
        }
        int done = 0; /* by who came first: the bucket was empty, there was no step to do */
        for (unsigned i = 0; i < WINDOW - SLOTS; i++) {
            answer(&c, &status, &length);
            CHECK(status == KV_BUSY || status == KV_DONE);
            done += status == KV_DONE;
        }
        CHECK_EQ(done, 1);
        BARRIER();
        for (unsigned i = 0; i < SLOTS; i++) {
            answer(&c, &status, &length);
            CHECK_EQ(status, KV_EXISTS);
        }
    }
    end(&k);
    kit_close(&k);
}

PTEST(refused, 3)
{
    struct kit k;
    kit_open(&k, rank, size);
    struct kvstore_state shape;
    INVALID(kvstore_shape(&shape, 0, 1, 1, 1, 1, 1, 4096));
    INVALID(kvstore_shape(&shape, 1, 0, 1, 1, 1, 1, 4096));
    INVALID(kvstore_shape(&shape, 1, 1, 0, 1, 1, 1, 4096));
    INVALID(kvstore_shape(&shape, 1, 1, 1, 1, 1, 0, 4096));
    INVALID(kvstore_shape(&shape, 1, 1, 100, 4096 - 139, 1, 1, 4096));
    INVALID(kvstore_shape(&shape, 1, UINT32_MAX, 1, 1, 1, 1, 4096));
    OK(kvstore_shape(&shape, 1, 1, 100, 4096 - 140, 1, 1, 4096));
    if (rank == 0) {
        open_store(&k, 2, 8, 4, 2);
    }
    BARRIER();
    if (rank == 2) {
        const struct kvstore_request bad[] = {
            {.op = KV_OPS, .key_length = 4},
            {.op = KV_GET, .key_length = KEY + 1},
            {.op = KV_INSERT, .value_length = VALUE + 1},
            {.op = KV_GET, .key_length = 5},
        };
        unsigned char packet[256] = {0};
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            memcpy(packet, &bad[i], sizeof(bad[i]));
            size_t length = i == 3 ? 44 : 40u + bad[i].key_length + bad[i].value_length;
            kit_put_once(&k, packet, length, 0, STORE_BITS, 0, 0, PTL_NI_HANDLER_FAIL);
        }
        kit_put_once(&k, packet, 39, 0, STORE_BITS, 0, 0, PTL_NI_HANDLER_FAIL);
    }
    BARRIER();
    for (int i = 0; rank == 0 && i < 5; i++) {
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
    }
    kit_close(&k);
}
