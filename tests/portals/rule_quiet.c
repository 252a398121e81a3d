/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 3.15, 3.16: small puts and atomics of a process on itself that are told by nothing but counts.
 * They are done where they are asked for, with what the one before found, or what was found when
 * they were armed: here all of that changes in between. Each case runs four ways: called, or armed
 * before the change and triggered behind it; a put, or an atomic.
 */
#include "rule_kit.h"

#include "spin.h"
#include "spin_handler.h"

#include <string.h>
#include <sys/mman.h>

enum { WORDS = 4, PAGE = 4096, LARGE = 9000 };
enum way { PUT, ATOMIC, ARMED_PUT, ARMED_ATOMIC, WAYS };
static const char *const way_name[WAYS] = {"put", "atomic", "armed_put", "armed_atomic"};

static uint64_t word[WORDS], from;

/* An entry at a word, and what it has counted. */
struct entry {
    ptl_handle_ct_t ct;
    ptl_size_t count;
    ptl_handle_me_t me;
};

/* The operation of a case, of 8 bytes. */
struct quiet {
    struct suite_move move;
    ptl_handle_ct_t trigger;
    ptl_size_t fired;
};

enum { COUNTS = PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE };

static struct entry entry_for(struct scene *s, void *at, ptl_match_bits_t bits,
                              ptl_match_bits_t ignore, unsigned options)
{
    struct entry e = {.ct = suite_ct(s)};
    ptl_me_t me = suite_entry(s, at, 8, COUNTS | options);
    me.ct_handle = e.ct;
    me.match_bits = bits;
    me.ignore_bits = ignore;
    e.me = suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
    return e;
}

static struct entry entry_at(struct scene *s, void *at, unsigned options)
{
    return entry_for(s, at, 0, ~0ull, options);
}

static struct quiet quiet_of(struct scene *s, ptl_handle_md_t md)
{
    long way = s->c->number;
    struct quiet q = {.move =
                          suite_move_to(s, way == PUT || way == ARMED_PUT ? CALL_PUT : CALL_ATOMIC),
                      .trigger = suite_ct(s)};
    q.move.md = md;
    q.move.length = 8;
    q.move.op = PTL_SUM;
    q.move.type = PTL_UINT64_T;
    q.move.triggered = way == ARMED_PUT || way == ARMED_ATOMIC;
    q.move.trigger = q.trigger;
    memset(word, 0, sizeof(word));
    from = 1;
    return q;
}

static struct quiet usual_of(struct scene *s)
{
    return quiet_of(s, suite_md_with(s, &from, 8, 0, PTL_EQ_NONE, PTL_CT_NONE));
}

/* What is to change does so between these two. */
static void begin(struct quiet *q)
{
    q->move.threshold = ++q->fired;
    if (q->move.triggered) {
        OK(suite_move(&q->move));
    }
}

static void end(struct quiet *q)
{
    if (!q->move.triggered) {
        OK(suite_move(&q->move));
    }
    OK(PtlCTInc(q->trigger, (ptl_ct_event_t){1, 0}));
}

/* It finds this entry, at this word. */
static void finds(struct scene *s, struct quiet *q, struct entry *e, uint64_t *at)
{
    uint64_t before = *at;
    end(q);
    EXPECT_CT(e->ct, ++e->count, 0);
    CHECK_EQ(*at, q->move.call == CALL_PUT ? from : before + from);
    from++;
}

static void finds_nothing(struct scene *s, struct quiet *q, ptl_sr_index_t reg)
{
    uint64_t before[WORDS];
    int count = suite_status(s, reg);
    memcpy(before, word, sizeof(word));
    end(q);
    EXPECT_STATUS(reg, count + 1);
    CHECK(memcmp(before, word, sizeof(word)) == 0);
}

static void goes(struct scene *s)
{
    struct quiet q = usual_of(s);
    struct entry a = entry_at(s, &word[0], PTL_ME_OP_PUT), b = entry_at(s, &word[1], PTL_ME_OP_PUT);
    begin(&q);
    finds(s, &q, &a, &word[0]);
    begin(&q);
    suite_unlink(s, a.me);
    finds(s, &q, &b, &word[1]);
    begin(&q);
    suite_unlink(s, b.me);
    finds_nothing(s, &q, PTL_SR_DROP_COUNT);
    begin(&q);
    struct entry c = entry_at(s, &word[2], PTL_ME_OP_PUT);
    finds(s, &q, &c, &word[2]);
    begin(&q);
    a = entry_at(s, &word[0], PTL_ME_OP_PUT);
    finds(s, &q, &c, &word[2]);
    begin(&q);
    suite_unlink(s, c.me);
    finds(s, &q, &a, &word[0]);
    EXPECT_CT(b.ct, b.count, 0);
    EXPECT_CT(c.ct, c.count, 0);
}

static void bits(struct scene *s)
{
    struct quiet q = usual_of(s);
    struct entry e[WORDS];
    for (unsigned i = 0; i < WORDS; i++) {
        e[i] = entry_for(s, &word[i], i, i == WORDS - 1 ? ~0ull : 0, PTL_ME_OP_PUT);
    }
    for (unsigned i = 0; i < 5 * WORDS; i++) {
        unsigned at = i % WORDS;
        q.move.bits = at == WORDS - 1 ? 1000 + i : at;
        begin(&q);
        finds(s, &q, &e[at], &word[at]);
    }
}

static void closed(struct scene *s)
{
    struct quiet q = usual_of(s);
    struct entry a = entry_at(s, &word[0], PTL_ME_OP_PUT);
    for (int round = 0; round < 3; round++) {
        begin(&q);
        finds(s, &q, &a, &word[0]);
        begin(&q);
        OK(PtlPTDisable(s->ni, SUITE_PT));
        finds_nothing(s, &q, PTL_SR_DROP_COUNT);
        begin(&q);
        OK(PtlPTEnable(s->ni, SUITE_PT));
        finds(s, &q, &a, &word[0]);
    }
}

static void refused(struct scene *s)
{
    struct quiet q = usual_of(s);
    struct entry a = entry_at(s, &word[0], PTL_ME_OP_PUT);
    begin(&q);
    finds(s, &q, &a, &word[0]);
    begin(&q);
    suite_unlink(s, a.me);
    struct entry b = entry_at(s, &word[1], PTL_ME_OP_GET);
    finds_nothing(s, &q, PTL_SR_OPERATION_VIOLATIONS);
    suite_unlink(s, b.me);
    ptl_me_t me = suite_entry(s, &word[1], 8, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    me.uid = s->uid + 1;
    suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
    begin(&q);
    finds_nothing(s, &q, PTL_SR_PERMISSION_VIOLATIONS);
}

static void told(struct scene *s)
{
    struct quiet q = usual_of(s);
    int type = q.move.call == CALL_PUT ? PTL_EVENT_PUT : PTL_EVENT_ATOMIC;
    struct entry a = entry_at(s, &word[0], PTL_ME_OP_PUT);
    begin(&q);
    finds(s, &q, &a, &word[0]);
    begin(&q);
    suite_unlink(s, a.me);
    ptl_me_t me = suite_entry(s, &word[1], 8, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    suite_append(s, PTL_PRIORITY_LIST, &me, (void *)5);
    end(&q);
    EXPECT(s->eq, type, .user_ptr = IS(5), .mlength = IS(8));
    NO_EVENT(s->eq);
}

static void uncounted(struct scene *s)
{
    struct quiet q = usual_of(s);
    struct entry a = entry_at(s, &word[0], PTL_ME_OP_PUT);
    ptl_me_t me = suite_entry(s, &word[1], 8, COUNTS | PTL_ME_OP_PUT);
    OK(PtlCTAlloc(s->ni, &me.ct_handle));
    begin(&q);
    finds(s, &q, &a, &word[0]);
    suite_unlink(s, a.me);
    suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
    begin(&q);
    end(&q);
    EXPECT_CT(me.ct_handle, 1, 0);
    begin(&q);
    OK(PtlCTFree(me.ct_handle));
    ptl_handle_ct_t next = suite_ct(s);
    uint64_t before = word[1];
    end(&q);
    EXPECT_CT(next, 0, 0);
    CHECK_EQ(word[1], q.move.call == CALL_PUT ? from : before + from);
}

static void bytes(struct scene *s)
{
    struct quiet q = usual_of(s);
    struct entry a = entry_at(s, &word[0], PTL_ME_OP_PUT | PTL_ME_EVENT_CT_BYTES);
    begin(&q);
    end(&q);
    EXPECT_CT(a.ct, 8, 0);
    q.move.remote_offset = 4; /* of a put half, of an atomic nothing */
    begin(&q);
    end(&q);
    EXPECT_CT(a.ct, q.move.call == CALL_PUT ? 12 : 8, 0);
    CHECK_EQ(word[1], 0);
}

/* What begins behind the end of an entry that does not truncate is for the next one, also when it
 * has no bytes. */
static void beyond(struct scene *s)
{
    struct quiet q = usual_of(s);
    struct entry a = entry_at(s, &word[0], PTL_ME_OP_PUT | PTL_ME_NO_TRUNCATE);
    struct entry b = entry_at(s, &word[1], PTL_ME_OP_PUT);
    begin(&q);
    finds(s, &q, &a, &word[0]);
    q.move.length = 0;
    q.move.remote_offset = 9;
    begin(&q);
    end(&q);
    EXPECT_CT(b.ct, 1, 0);
    EXPECT_CT(a.ct, a.count, 0);
    CHECK_EQ(word[1], 0);
}

static void sends(struct scene *s)
{
    static const unsigned options[] = {0, PTL_MD_EVENT_SEND_DISABLE, PTL_MD_EVENT_SUCCESS_DISABLE};
    struct quiet q = usual_of(s);
    struct entry a = entry_at(s, &word[0], PTL_ME_OP_PUT);
    q.move.user_ptr = (void *)7;
    for (unsigned i = 0; i < 3; i++) {
        q.move.md = suite_md(s, &from, 8, options[i]);
        begin(&q);
        finds(s, &q, &a, &word[0]);
        if (options[i] == 0) {
            EXPECT(s->mdeq, PTL_EVENT_SEND, .mlength = IS(8), .user_ptr = IS(7));
        }
        NO_EVENT(s->mdeq);
    }
    for (unsigned i = 0; i < 2; i++) {
        ptl_handle_ct_t ct = suite_ct(s);
        q.move.md =
            suite_md_with(s, &from, 8, PTL_MD_EVENT_CT_SEND | (i == 0 ? 0 : PTL_MD_EVENT_CT_BYTES),
                          PTL_EQ_NONE, ct);
        begin(&q);
        finds(s, &q, &a, &word[0]);
        EXPECT_CT(ct, i == 0 ? 1 : 8, 0);
    }
}

static void segv(struct scene *s)
{
    uint64_t *bad = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(bad != MAP_FAILED);
    struct quiet q = quiet_of(s, suite_md(s, bad, 8, 0));
    struct entry a = entry_at(s, &word[0], PTL_ME_OP_PUT);
    begin(&q);
    end(&q);
    EXPECT(s->mdeq, PTL_EVENT_SEND, .fail = PTL_NI_SEGV);
    CHECK_EQ(word[0], 0);
    EXPECT_CT(a.ct, 0, 1);
    suite_unlink(s, a.me);
    struct entry b = entry_at(s, bad, PTL_ME_OP_PUT);
    q.move.md = suite_md_with(s, &from, 8, 0, PTL_EQ_NONE, PTL_CT_NONE);
    begin(&q);
    end(&q);
    EXPECT_CT(b.ct, 0, 1);
    CHECK_EQ(mprotect(bad, PAGE, PROT_READ | PROT_WRITE), 0);
    begin(&q);
    end(&q);
    EXPECT_CT(b.ct, 1, 1);
    CHECK_EQ(*bad, from);
}

/* What is long goes the fabric's way; what comes behind it must not be there first. */
static void order(struct scene *s)
{
    enum { ROUNDS = 50 };
    static uint64_t long_from[LARGE / 8], long_to[LARGE / 8];
    struct quiet q = usual_of(s);
    ptl_handle_md_t md = suite_md_with(s, long_from, LARGE, 0, PTL_EQ_NONE, PTL_CT_NONE);
    ptl_me_t me = suite_entry(s, long_to, LARGE, COUNTS | PTL_ME_OP_PUT);
    suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
    ptl_size_t count = 0;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        long_from[0] = 1000 * round;
        from = round;
        for (unsigned i = 0; i < round % 4; i++) {
            OK(PtlPut(md, 0, LARGE, PTL_NO_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            count++;
        }
        uint64_t before = round % 4 == 0 ? long_to[0] : 1000 * round;
        for (unsigned i = 0; i < 3; i++) {
            begin(&q);
            end(&q);
        }
        count += 3;
        EXPECT_CT(s->ct, count, 0);
        CHECK_EQ(long_to[0], q.move.call == CALL_PUT ? from : before + 3 * from);
    }
}

/* ---- An entry with handlers on the same index ---- */

__handler static int yielding(ptl_size_t dropped, bool flow_control, void *state)
{
    (void)dropped, (void)flow_control, (void)state;
    for (int i = 0; i < 20; i++) {
        PtlHandlerYield();
    }
    return SUCCESS;
}

static void handlers(struct scene *s)
{
    struct quiet q = usual_of(s);
    ptl_handlers_t h = {.completion_handler = yielding, .hpu_mem = PTL_HPU_MEM_NONE};
    ptl_handle_md_t md = suite_md_with(s, &word[1], 8, 0, PTL_EQ_NONE, PTL_CT_NONE);
    struct entry a = entry_for(s, &word[0], 0, 0, PTL_ME_OP_PUT);
    for (int round = 0; round < 3; round++) {
        begin(&q);
        finds(s, &q, &a, &word[0]);
        ptl_me_t me = suite_entry(s, &word[0], 8, COUNTS | PTL_ME_OP_PUT);
        me.match_bits = 2;
        me.ignore_bits = 0;
        me.ct_handle = suite_ct(s);
        ptl_handle_me_t entry;
        begin(&q);
        OK(PtlMEAppendHandlers(s->ni, SUITE_PT, &me, &h, PTL_PRIORITY_LIST, NULL, &entry));
        word[0] = 0;
        word[1] = 100;
        OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, s->to, SUITE_PT, 2, 0, NULL, 0));
        end(&q);
        EXPECT_CT(a.ct, ++a.count, 0);
        EXPECT_CT(me.ct_handle, 1, 0);
        CHECK_EQ(word[0], q.move.call == CALL_PUT ? from : 100 + from);
        suite_unlink(s, entry);
    }
}

GENERATE(register_ways)
{
    static const struct {
        const char *name, *rule;
        void (*body)(struct scene *s);
        unsigned kinds;
    } cases[] = {
        {"goes", "3.12: an entry is found until it is unlinked, then the next one that matches",
         goes, ALL_KINDS},
        {"bits", "3.12: each header finds the first entry that it matches", bits, MATCHING_KINDS},
        {"closed", "3.7: what comes to a disabled index is dropped and counted", closed, ALL_KINDS},
        {"refused", "3.12: what an entry does not permit is not done, and counted", refused,
         ALL_KINDS},
        {"told", "3.13: an entry that wants events has them, whatever was there before it", told,
         ALL_KINDS},
        {"uncounted", "3.14: what would count in a counter that was freed counts nowhere",
         uncounted, ALL_KINDS},
        {"bytes", "3.14: PTL_ME_EVENT_CT_BYTES counts what has arrived", bytes, ALL_KINDS},
        {"beyond", "3.12: with NO_TRUNCATE all of a message is in the entry, also of an empty one",
         beyond, MATCHING_KINDS},
        {"sends", "3.13: SEND is posted and counted as the MD wants it", sends, ALL_KINDS},
        {"segv", "3.13: memory that is not there is told at both ends, and nothing is done", segv,
         ALL_KINDS},
        {"order", "3.5: what a process sends to itself arrives in its order", order, ALL_KINDS},
        {"handlers", "3.5: it does not pass a message that is with its handlers", handlers,
         MATCHING_KINDS},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int way = 0; way < WAYS; way++) {
            suite_add_each(
                (struct suite_case){.rule = cases[i].rule, .body = cases[i].body, .number = way},
                cases[i].kinds, SELF, "quiet_%s_%s", cases[i].name, way_name[way]);
        }
    }
}
