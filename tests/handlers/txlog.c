/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/txlog: transactions of three clients put and get at random; the log must hold
 * what they did, each access once, the data must be there, and the verdicts must be those
 * of a comparison of all accesses with each other. The same with atomics of all kinds on few
 * words, and lost updates one by one.
 *
 *      rank 3: the memory and the log       ranks 0 to 2: clients
 */
#include "kit.h"

#include "spin_handler.h"
#include "txlog.h"

enum { OWNER = 3, CLIENTS = 3, BITS = 7, TRANSACTIONS = 8, ACCESSES = 6 };
enum { EACH = TRANSACTIONS * ACCESSES, ALL = CLIENTS * EACH };

struct owner {
    unsigned char *memory;
    size_t length;
    void *log;
    uint64_t records;
};

static struct owner open_owner(struct kit *k, size_t length, uint64_t records)
{
    struct owner o = {kit_memory(length), length, kit_memory(txlog_size(records)), records};
    struct txlog_state state;
    ptl_handlers_t h;
    ptl_handle_me_t entry;
    txlog_handlers(records, o.log, &state, &h);
    ptl_me_t me = port_entry(&k->p, o.memory, length,
                             PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                 PTL_ME_EVENT_SUCCESS_DISABLE);
    me.match_bits = BITS;
    me.ignore_bits = TXLOG_IGNORE;
    OK(PtlMEAppendHandlers(k->p.ni, k->p.pt, &me, &h, PTL_PRIORITY_LIST, NULL, &entry));
    return o;
}

/* An access of a client. Every client has a part of the memory of its own, where it puts;
 * it gets from anywhere. Now and then it puts where all do. */
struct access {
    uint32_t transaction;
    bool put;
    size_t offset, length;
};

static struct access access_of(const struct kit *k, int client, int i, size_t part)
{
    uint64_t r = (uint64_t)(client * 1000 + i);
    struct access a = {.transaction = (uint32_t)(100 * client + i / ACCESSES + 1)};
    size_t longest = i % 5 == 0 ? 3 * k->packet : 100;
    a.put = splitmix(&r) % 2;
    a.length = splitmix(&r) % longest;
    a.offset = splitmix(&r) % (part - a.length);
    size_t where =
        a.put ? splitmix(&r) % 8 ? (size_t)client : CLIENTS : splitmix(&r) % (CLIENTS + 1);
    a.offset += where * part;
    return a;
}

static void run_client(struct kit *k, size_t part)
{
    unsigned char *data = kit_memory(part), *mine = kit_memory(part), *got = kit_memory(part);
    for (int i = 0; i < EACH; i++) {
        struct access a = access_of(k, k->p.rank, i, part);
        uint64_t bits = txlog_bits(a.transaction, BITS);
        bool own = a.offset / part == (size_t)k->p.rank;
        if (a.put) {
            ptest_fill(data, a.length, (unsigned)i);
            kit_put_once(k, data, a.length, OWNER, bits, a.offset, 0, PTL_NI_OK);
            if (own) {
                memcpy(mine + a.offset % part, data, a.length);
            }
        } else {
            kit_get_once(k, got, a.length, OWNER, bits, a.offset);
            if (own) {
                CHECK_SAME(got, mine + a.offset % part, a.length);
            }
        }
    }
    kit_get_once(k, got, part, OWNER, txlog_bits(9999, BITS), (size_t)k->p.rank * part);
    CHECK_SAME(got, mine, part);
}

/* ---- What the owner checks ---- */

static bool touch(const struct access *a, const struct access *b)
{
    for (size_t i = 0; i < a->length; i++) {
        if (a->offset + i >= b->offset && a->offset + i < b->offset + b->length) {
            return a->put || b->put;
        }
    }
    return false;
}

static bool conflicts(const struct access *all, uint32_t t, uint32_t with)
{
    for (int i = 0; i < ALL; i++) {
        for (int j = 0; j < ALL; j++) {
            if (all[i].transaction == t && all[j].transaction != t &&
                (with == 0 || all[j].transaction == with) && touch(&all[i], &all[j])) {
                return true;
            }
        }
    }
    return false;
}

static void check_records(struct kit *k, const struct owner *o, const struct access *all)
{
    const struct txlog *head = o->log;
    const struct txlog_record *r = (const struct txlog_record *)(head + 1);
    bool seen[ALL] = {false};
    CHECK_EQ(head->taken, ALL + CLIENTS); /* and each client's last look */
    for (uint64_t i = 0; i < ALL + CLIENTS; i++) {
        int j = 0;
        CHECK_EQ(r[i].ready, 1);
        if (r[i].transaction == 9999) {
            continue;
        }
        while (j < ALL &&
               (seen[j] || all[j].transaction != r[i].transaction || all[j].offset != r[i].offset ||
                all[j].length != r[i].length || all[j].put != (r[i].type == PTL_REQUEST_PUT))) {
            j++;
        }
        CHECK(j < ALL);
        CHECK_EQ(r[i].source.rank, j / EACH);
        seen[j] = true;
    }
}

static void check_verdicts(struct owner *o, struct access *all)
{
    int alone = 0, conflicting = 0;
    txlog_forget(o->log, o->records, 9999);
    for (int i = 0; i < ALL; i += ACCESSES) {
        uint32_t t = all[i].transaction, with = 0;
        enum txlog_verdict verdict = txlog_judge(o->log, o->records, t, &with);
        bool want = conflicts(all, t, 0);
        CHECK_EQ(verdict, want ? TXLOG_CONFLICT : TXLOG_ALONE);
        if (want) {
            CHECK(conflicts(all, t, with));
        }
        alone += !want;
        conflicting += want;
        if (i % 2 == 0) { /* it ends, and is in nobody's way any more */
            txlog_forget(o->log, o->records, t);
            for (int j = i; j < i + ACCESSES; j++) {
                all[j].length = 0;
            }
        }
    }
    CHECK(alone > 0 && conflicting > 0);
}

PTEST(transactions, 4)
{
    struct kit k;
    kit_open(&k, rank, size);
    size_t part = 12 * k.packet;
    if (rank == OWNER) {
        static struct access all[ALL];
        struct owner o = open_owner(&k, (CLIENTS + 1) * part, ALL + CLIENTS);
        for (int i = 0; i < ALL; i++) {
            all[i] = access_of(&k, i / EACH, i % EACH, part);
        }
        BARRIER();
        BARRIER();
        check_records(&k, &o, all);
        check_verdicts(&o, all);
    } else {
        BARRIER();
        run_client(&k, part);
        BARRIER();
    }
    kit_close(&k);
}

/* What there is no record for has no effect, and no verdict hides it. */
PTEST(overflow, 4)
{
    struct kit k;
    kit_open(&k, rank, size);
    enum { RECORDS = 5 };
    struct owner o = {0};
    unsigned char data[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t with;
    if (rank == OWNER) {
        o = open_owner(&k, 64, RECORDS);
    }
    BARRIER();
    if (rank == 0) {
        for (int i = 0; i < RECORDS + 2; i++) {
            kit_put_once(&k, data, 8, OWNER, txlog_bits(1, BITS), (uint64_t)i * 8, 0,
                         i < RECORDS ? PTL_NI_OK : PTL_NI_HANDLER_FAIL);
        }
        ptl_handle_md_t md = port_md(&k.p, data, 8, 0, PTL_CT_NONE);
        OK(PtlGet(md, 0, 8, k.p.id[OWNER], k.p.pt, txlog_bits(1, BITS), 0, NULL));
        EVENT_FAIL(k.p.mdeq, PTL_EVENT_REPLY, PTL_NI_HANDLER_FAIL);
        port_release(md);
    }
    BARRIER();
    if (rank == OWNER) {
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        EVENT_FAIL(k.p.eq, PTL_EVENT_GET, PTL_NI_HANDLER_FAIL);
        CHECK_BYTES(o.memory, RECORDS * 8, 1);
        CHECK_BYTES(o.memory + RECORDS * 8, 64 - RECORDS * 8, 0);
        CHECK_EQ(txlog_judge(o.log, RECORDS, 1, &with), TXLOG_OVERFLOWED);
        txlog_reset(o.log, RECORDS);
        CHECK_EQ(txlog_judge(o.log, RECORDS, 1, &with), TXLOG_ALONE);
    }
    BARRIER();
    if (rank == 1) {
        kit_put_once(&k, data, 8, OWNER, txlog_bits(2, BITS), 56, 0, PTL_NI_OK);
    }
    BARRIER();
    if (rank == OWNER) {
        CHECK_BYTES(o.memory + 56, 8, 1);
        CHECK_EQ(txlog_judge(o.log, RECORDS, 2, &with), TXLOG_ALONE);
    }
    kit_close(&k);
}

/* ---- Atomics ---- */

enum { WORDS = 24, WORD = 8, TOUCHES = 3, TOUCHING = 16 * TOUCHES };

enum way { GET, PUT, ATOMIC, FETCH, SWAP, CSWAP, MSWAP, WAYS };

static const uint32_t type_of[WAYS] = {
    [GET] = PTL_REQUEST_GET,       [PUT] = PTL_REQUEST_PUT,
    [ATOMIC] = PTL_REQUEST_ATOMIC, [FETCH] = PTL_REQUEST_FETCH_ATOMIC,
    [SWAP] = PTL_REQUEST_SWAP,     [CSWAP] = PTL_REQUEST_SWAP,
    [MSWAP] = PTL_REQUEST_SWAP};

/* One access to `count` words, which is over when this returns. An operand is no part of it. */
static void touch_words(struct kit *k, uint64_t *two, enum way way, uint32_t transaction,
                        size_t word, size_t count)
{
    ptl_process_t to = k->p.id[OWNER];
    uint64_t bits = txlog_bits(transaction, BITS), operand = 0;
    size_t at = word * WORD, length = count * WORD;
    ptl_op_t op = way == CSWAP ? PTL_CSWAP_NE : way == MSWAP ? PTL_MSWAP : PTL_SWAP;
    if (way == GET) {
        kit_get_once(k, two, length, OWNER, bits, at);
        return;
    }
    if (way == PUT) {
        kit_put_once(k, two, length, OWNER, bits, at, 0, PTL_NI_OK);
        return;
    }
    ptl_handle_md_t md =
        port_md(&k->p, two, 2 * WORDS * WORD, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    if (way == ATOMIC) {
        OK(PtlAtomic(md, 0, length, PTL_ACK_REQ, to, k->p.pt, bits, at, NULL, 0, PTL_SUM,
                     PTL_UINT64_T));
        EVENT(k->p.mdeq, PTL_EVENT_ACK);
    } else if (way == FETCH) {
        OK(PtlFetchAtomic(md, WORDS * WORD, md, 0, length, to, k->p.pt, bits, at, NULL, 0, PTL_SUM,
                          PTL_UINT64_T));
        EVENT(k->p.mdeq, PTL_EVENT_REPLY);
    } else {
        OK(PtlSwap(md, WORDS * WORD, md, 0, length, to, k->p.pt, bits, at, NULL, 0,
                   op == PTL_SWAP ? NULL : &operand, op, PTL_UINT64_T));
        EVENT(k->p.mdeq, PTL_EVENT_REPLY);
    }
    port_release(md);
}

/* The i-th of a client: few words, one at a time where an operand asks for it, so that neighbours
 * are touched by others. */
static enum way way_of(int client, int i, struct access *a)
{
    uint64_t r = (uint64_t)(client * 7919 + i);
    enum way way = splitmix(&r) % 2 ? GET : (enum way)(splitmix(&r) % WAYS);
    size_t count = way >= SWAP ? 1 : 1 + splitmix(&r) % 2;
    *a = (struct access){.transaction = (uint32_t)(100 * client + i / TOUCHES + 1),
                         .put = way != GET,
                         .offset = splitmix(&r) % (WORDS - count + 1) * WORD,
                         .length = count * WORD};
    return way;
}

static bool is_logged(const struct owner *o, const struct access *a, uint32_t type)
{
    const struct txlog_record *r = (const struct txlog_record *)((const struct txlog *)o->log + 1);
    for (int i = 0; i < CLIENTS * TOUCHING; i++) {
        if (r[i].transaction == a->transaction && r[i].offset == a->offset &&
            r[i].length == a->length && r[i].type == type) {
            return true;
        }
    }
    return false;
}

/* What is no read is a conflict, with whoever has touched the same bytes, and with nobody else. */
PTEST(atomics, 4)
{
    struct kit k;
    kit_open(&k, rank, size);
    if (rank == OWNER) {
        static struct access all[ALL]; /* those without length touch nothing */
        struct owner o = open_owner(&k, (WORDS + 1) * WORD, CLIENTS * TOUCHING);
        BARRIER();
        BARRIER();
        for (int i = 0; i < CLIENTS * TOUCHING; i++) {
            enum way way = way_of(i / TOUCHING, i % TOUCHING, &all[i]);
            CHECK(is_logged(&o, &all[i], type_of[way]));
        }
        int alone = 0, conflicting = 0;
        for (int i = 0; i < CLIENTS * TOUCHING; i += TOUCHES) {
            uint32_t with = 0;
            bool want = conflicts(all, all[i].transaction, 0);
            CHECK_EQ(txlog_judge(o.log, o.records, all[i].transaction, &with),
                     want ? TXLOG_CONFLICT : TXLOG_ALONE);
            CHECK(!want || conflicts(all, all[i].transaction, with));
            alone += !want;
            conflicting += want;
            txlog_forget(o.log, o.records, all[i].transaction);
            for (int j = i; j < i + TOUCHES; j++) {
                all[j].length = 0;
            }
        }
        CHECK(alone > 0 && conflicting > 0);
    } else {
        uint64_t *two = kit_memory(2 * WORDS * WORD);
        BARRIER();
        for (int i = 0; i < TOUCHING; i++) {
            struct access a;
            enum way way = way_of(rank, i, &a);
            touch_words(&k, two, way, a.transaction, a.offset / WORD, a.length / WORD);
        }
        BARRIER();
    }
    kit_close(&k);
}

/* Somebody changes a word between the get and the put of a transaction, one time by each way:
 * its update would be lost. Who has only read the word beside it is in nobody's way. */
PTEST(lost_update, 4)
{
    struct kit k;
    kit_open(&k, rank, size);
    struct owner o = {0};
    uint64_t *two = kit_memory(2 * WORDS * WORD);
    if (rank == OWNER) {
        o = open_owner(&k, (WORDS + 1) * WORD, 4 * WAYS);
    }
    BARRIER();
    for (enum way way = GET; way < WAYS; way++) {
        uint32_t reads = 10 * way + 1, changes = 10 * way + 2, beside = 10 * way + 3, with = 0;
        if (rank == 0) {
            touch_words(&k, two, GET, reads, 2 * way, 1);
        }
        BARRIER();
        if (rank == 1) {
            touch_words(&k, two, way, changes, 2 * way, 1);
        }
        BARRIER();
        if (rank == 2) {
            touch_words(&k, two, GET, beside, 2 * way + 1, 1);
        }
        BARRIER();
        if (rank == OWNER) {
            enum txlog_verdict want = way == GET ? TXLOG_ALONE : TXLOG_CONFLICT;
            CHECK_EQ(txlog_judge(o.log, o.records, reads, &with), want);
            CHECK_EQ(txlog_judge(o.log, o.records, changes, &with), want);
            CHECK_EQ(txlog_judge(o.log, o.records, beside, &with), TXLOG_ALONE);
        }
        BARRIER();
        if (rank == 0) {
            touch_words(&k, two, PUT, reads, 2 * way, 1);
        }
        BARRIER();
        if (rank == OWNER) {
            CHECK_EQ(txlog_judge(o.log, o.records, reads, &with), TXLOG_CONFLICT);
            CHECK_EQ(with, changes);
        }
    }
    kit_close(&k);
}
