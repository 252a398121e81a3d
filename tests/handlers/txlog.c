/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/txlog: transactions of three clients put and get at random; the log must hold
 * what they did, each access once, the data must be there, and the verdicts must be those
 * of a comparison of all accesses with each other.
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
