/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limits in bytes and in parts, below, at and above; and what the features of an
 * interface promise.
 */
#include "limits_kit.h"

#include <string.h>
#include <sys/mman.h>

static unsigned char from[1 << 17], to[1 << 17];

static ptl_ni_limits_t wishes(void)
{
    ptl_ni_limits_t l = limits_with(LIMIT_OF(max_iovecs), 8);
    l.max_msg_size = 1000;
    l.max_atomic_size = 64;
    l.max_fetch_atomic_size = 48;
    return l;
}
static ptl_ni_limits_t small, small_volatile, small_messages;

/* ---- Bytes of one message -------------------------------------------------- */

/* number: the call, and 256 for the triggered one */
static enum suite_call call_of(const struct scene *s)
{
    return (enum suite_call)(s->c->number & 255);
}

static ptl_size_t limit_of(const struct scene *s)
{
    enum suite_call call = call_of(s);
    return call == CALL_PUT || call == CALL_GET ? s->limits.max_msg_size
           : call == CALL_ATOMIC                ? s->limits.max_atomic_size
                                                : s->limits.max_fetch_atomic_size;
}

static struct suite_move move_of(struct scene *s, ptl_handle_md_t md, ptl_handle_md_t get_md)
{
    struct suite_move m = suite_move_to(s, call_of(s));
    m.triggered = (s->c->number & 256) != 0;
    m.trigger = s->ct;
    m.md = md;
    m.get_md = get_md;
    m.op = m.call == CALL_SWAP ? PTL_SWAP : PTL_BXOR;
    m.type = PTL_UINT8_T;
    return m;
}

/* What the initiator hears of a message of this length. */
static void hears(struct scene *s, const struct suite_move *m, ptl_size_t length)
{
    bool puts = m->call != CALL_GET, replies = m->call != CALL_PUT && m->call != CALL_ATOMIC;
    if (puts && !replies) {
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(length));
    } else {
        EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(length));
    }
}

/* The limit and below is accepted and arrives; above it is refused and nothing arrives. */
static void message_sizes(struct scene *s)
{
    ptl_size_t limit = s->c->desired != NULL ? limit_of(s) : 0;
    if (s->target) {
        memset(to, 0, sizeof(to));
        suite_target(s, PTL_PRIORITY_LIST, to, sizeof(to), PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE);
        ptl_handle_md_t get_md =
            suite_md(s, from + sizeof(from) / 2, sizeof(from) / 2, PTL_MD_EVENT_SEND_DISABLE);
        struct suite_move m = move_of(s, md, get_md);
        m.ack = PTL_ACK_REQ;
        const ptl_size_t good[] = {0, 1, limit - 1, limit};
        const ptl_size_t bad[] = {limit + 1, limit + 2, 2 * limit, sizeof(from) / 2};
        for (int i = 0; i < 4; i++) {
            m.length = good[i];
            OK(suite_move(&m));
            hears(s, &m, good[i]);
        }
        for (int i = 0; i < 4; i++) {
            m.length = bad[i];
            INVALID(suite_move(&m));
        }
        NO_EVENT(s->mdeq);
    }
    STEP();
    if (s->target) {
        const ptl_size_t good[] = {0, 1, limit - 1, limit};
        int type = call_of(s) == CALL_PUT      ? PTL_EVENT_PUT
                   : call_of(s) == CALL_GET    ? PTL_EVENT_GET
                   : call_of(s) == CALL_ATOMIC ? PTL_EVENT_ATOMIC
                                               : PTL_EVENT_FETCH_ATOMIC;
        for (int i = 0; i < 4; i++) {
            EXPECT(s->eq, type, .rlength = IS(good[i]), .mlength = IS(good[i]));
        }
        NO_EVENT(s->eq);
    }
}

GENERATE(message_size_cases)
{
    static const char *const names[] = {"max_msg_size", "max_msg_size", "max_atomic_size",
                                        "max_fetch_atomic_size", "max_fetch_atomic_size"};
    small = wishes();
    for (int call = 0; call < CALL_COUNT; call++) {
        for (int triggered = 0; triggered < 2; triggered++) {
            suite_add_each((struct suite_case){.rule = "3.6: a message of the limit is carried, "
                                                       "one byte more gives PTL_ARG_INVALID",
                                               .body = message_sizes,
                                               .number = call | triggered << 8,
                                               .desired = &small},
                           ALL_KINDS, SELF | PAIR, "%s.%s%s", names[call],
                           triggered ? "triggered_" : "", suite_call_name[call]);
        }
    }
}

/* The limits that an interface has without wishes, where they can be tried. */
static void default_atomic_sizes(struct scene *s)
{
    ptl_size_t limit = limit_of(s);
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, sizeof(to), PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    }
    STEP();
    if (s->initiator) {
        CHECK(limit + 8 <= sizeof(from) / 2);
        ptl_handle_md_t md = suite_md(s, from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE);
        ptl_handle_md_t get_md =
            suite_md(s, from + sizeof(from) / 2, sizeof(from) / 2, PTL_MD_EVENT_SEND_DISABLE);
        struct suite_move m = move_of(s, md, get_md);
        m.ack = PTL_ACK_REQ;
        m.type = PTL_UINT64_T;
        m.length = limit & ~(ptl_size_t)7;
        OK(suite_move(&m));
        hears(s, &m, m.length);
        m.length += 8;
        INVALID(suite_move(&m));
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, call_of(s) == CALL_ATOMIC ? PTL_EVENT_ATOMIC : PTL_EVENT_FETCH_ATOMIC,
               .mlength = IS(limit & ~(ptl_size_t)7));
        NO_EVENT(s->eq);
    }
}

GENERATE(default_sizes)
{
    small_messages = wishes();
    small_messages.max_msg_size = 1;
    for (int call = CALL_ATOMIC; call < CALL_COUNT; call++) {
        suite_add_each((struct suite_case){.rule = "3.6: max_msg_size is of puts and gets: an "
                                                   "atomic may be longer",
                                           .body = default_atomic_sizes,
                                           .number = call,
                                           .desired = &small_messages},
                       ALL_KINDS, SELF | PAIR, "atomic_above_message.%s", suite_call_name[call]);
        suite_add_each((struct suite_case){.rule = "3.6: an atomic of max_atomic_size (fetching: "
                                                   "max_fetch_atomic_size) is carried, not more",
                                           .body = default_atomic_sizes,
                                           .number = call},
                       ALL_KINDS, SELF | PAIR, "default_atomic_size.%s", suite_call_name[call]);
    }
}

/* ---- Parts ----------------------------------------------------------------- */

static void cut(ptl_iovec_t *parts, int n, unsigned char *memory)
{
    for (int i = 0; i < n; i++) {
        parts[i] = (ptl_iovec_t){memory + i * 16, 8};
    }
}

static ptl_handle_md_t parted_md(struct scene *s, ptl_iovec_t *parts, int n)
{
    return suite_md(s, parts, (ptl_size_t)n, PTL_IOVEC | PTL_MD_EVENT_SEND_DISABLE);
}

/* number: parts; at both sides, which move the pieces to where they belong */
static void parts_carried(struct scene *s)
{
    static ptl_iovec_t parts[4096];
    int n = s->c->number < 0 ? s->limits.max_iovecs + 1 + (int)s->c->number : (int)s->c->number;
    if (n > 4096 || n < 1) {
        suite_skip("so many parts are not tried");
    }
    suite_fill(from, (size_t)n * 16, 3);
    memset(to, 0, sizeof(to));
    if (s->target) {
        ptl_me_t me = suite_entry(s, parts, (ptl_size_t)n,
                                  PTL_IOVEC | PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        cut(parts, n, to);
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_size_t length = (ptl_size_t)n * 8;
        cut(parts, n, from);
        ptl_handle_md_t md = parted_md(s, parts, n);
        OK(PtlPut(md, 0, length, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(length));
        INVALID(PtlPut(md, 0, length + 1, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        INVALID(PtlPut(md, length, 1, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(n * 8));
        for (int i = 0; i < n; i++) {
            CHECK_EQ(memcmp(to + i * 16, from + i * 16, 8), 0);
            CHECK_BYTES(to + i * 16 + 8, 8, 0);
        }
    }
}

static void add_parts(long n, const ptl_ni_limits_t *desired, const char *name)
{
    suite_add_each((struct suite_case){.rule = "3.10: up to max_iovecs parts are one range; bytes "
                                               "between them are not touched",
                                       .body = parts_carried,
                                       .number = n,
                                       .desired = desired},
                   ALL_KINDS, SELF | PAIR, "max_iovecs.%s", name);
}

static void parts_limit(struct scene *s)
{
    ptl_iovec_t parts[16];
    ptl_handle_md_t md = 0x5a5a5a5a;
    ptl_handle_me_t entry = 0x5a5a5a5a;
    cut(parts, 16, from);
    for (int n = 0; n <= 16; n++) {
        int expected = n <= s->limits.max_iovecs ? PTL_OK : PTL_ARG_INVALID;
        ptl_md_t desc = {parts, (ptl_size_t)n, PTL_IOVEC, PTL_EQ_NONE, PTL_CT_NONE};
        ptl_me_t me = suite_entry(s, parts, (ptl_size_t)n, PTL_IOVEC | PTL_ME_OP_PUT);
        CODE(PtlMDBind(s->ni, &desc, &md), expected);
        CODE(suite_append_code(s, SUITE_PT, PTL_PRIORITY_LIST, &me, NULL, &entry), expected);
        if (expected == PTL_OK) {
            suite_own(s, MADE_MD, md);
            md = entry = 0x5a5a5a5a;
        }
        CHECK_EQ(md, 0x5a5a5a5a);
        CHECK_EQ(entry, 0x5a5a5a5a);
    }
}

GENERATE(part_cases)
{
    small = wishes();
    add_parts(1, &small, "one");
    add_parts(2, &small, "two");
    add_parts(-2, &small, "small_less_1");
    add_parts(-1, &small, "small");
    add_parts(500, NULL, "500");
    add_parts(4096, NULL, "4096");
    suite_add_each((struct suite_case){.rule = "3.10: more than max_iovecs parts give "
                                               "PTL_ARG_INVALID, up to that many PTL_OK",
                                       .body = parts_limit,
                                       .desired = &small},
                   ALL_KINDS, SELF, "max_iovecs.limit");
}

/* ---- Volatile -------------------------------------------------------------- */

/* number: 0 below, 1 at, 2 above max_volatile_size */
static void volatile_puts(struct scene *s)
{
    ptl_size_t limit = s->limits.max_volatile_size;
    ptl_size_t length = s->c->number == 0 ? limit / 2 : s->c->number == 1 ? limit : 4 * limit;
    bool promised = length <= limit;
    CHECK(limit > 0 && length <= sizeof(from));
    if (s->target) {
        memset(to, 0, sizeof(to));
        suite_target(s, PTL_PRIORITY_LIST, to, sizeof(to), PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, from, length, PTL_MD_VOLATILE | PTL_MD_EVENT_SEND_DISABLE);
        for (unsigned i = 0; i < 8; i++) {
            suite_fill(from, length, i);
            OK(PtlPut(md, 0, length, PTL_ACK_REQ, s->to, SUITE_PT, 0, i * length, NULL, i));
            if (promised) {
                memset(from, 0xee, length); /* before anybody can have looked */
            } else {
                EXPECT(s->mdeq, PTL_EVENT_ACK);
            }
        }
        for (unsigned i = 0; i < 8 && promised; i++) {
            EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(length));
        }
    }
    STEP();
    if (s->target) {
        for (unsigned i = 0; i < 8; i++) {
            EXPECT(s->eq, PTL_EVENT_PUT, .hdr_data = IS(i), .mlength = IS(length));
            CHECK_FILL(to + i * length, length, i);
        }
    }
}

GENERATE(volatile_cases)
{
    static const char *const names[] = {"below", "at", "above"};
    small_volatile = wishes();
    small_volatile.max_msg_size = 4096;
    for (int i = 0; i < 3; i++) {
        struct suite_case c = {.rule = "3.10: a PTL_MD_VOLATILE put of up to max_volatile_size "
                                       "leaves the buffer free on return; a longer one is accepted",
                               .body = volatile_puts,
                               .number = i};
        suite_add_each(c, ALL_KINDS, SELF | PAIR, "max_volatile_size.%s", names[i]);
        c.desired = &small_volatile;
        suite_add_each(c, ALL_KINDS, SELF | PAIR, "max_volatile_size.small_%s", names[i]);
    }
}

/* ---- Order ----------------------------------------------------------------- */

enum { ROUNDS = 20 };

/* number: 0 one byte, 1 half the limit, 2 the limit or what memory there is */
static ptl_size_t ordered_length(const struct scene *s, ptl_size_t limit)
{
    ptl_size_t top = limit < sizeof(to) ? limit : sizeof(to);
    return s->c->number == 0 ? 1 : s->c->number == 1 ? top / 2 : top;
}

static void put_after_put(struct scene *s)
{
    ptl_size_t length = ordered_length(s, s->limits.max_waw_ordered_size);
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, to, sizeof(to),
                     PTL_ME_OP_PUT | PTL_ME_EVENT_SUCCESS_DISABLE, NULL);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        STEP();
        if (s->initiator) {
            ptl_handle_md_t md = suite_md(s, from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE);
            static unsigned char second[sizeof(from)];
            ptl_handle_md_t last = suite_md(s, second, sizeof(second), PTL_MD_EVENT_SEND_DISABLE);
            suite_fill(from, length, 2 * round);
            suite_fill(second, length, 2 * round + 1);
            OK(PtlPut(md, 0, length, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            OK(PtlPut(last, 0, length, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            EXPECT(s->mdeq, PTL_EVENT_ACK);
            EXPECT(s->mdeq, PTL_EVENT_ACK);
        }
        STEP();
        if (s->target) {
            CHECK_FILL(to, length, 2 * round + 1);
        }
    }
}

static unsigned char got[sizeof(from)];

/* A put and a get of each round at one place, started in this order or the other; the
 * initiator then finds in `got` the pattern that `read` gives for the round. */
static void put_and_get(struct scene *s, ptl_size_t length, bool put_first, int read)
{
    if (s->target) {
        suite_fill(to, sizeof(to), ROUNDS);
        suite_target(s, PTL_PRIORITY_LIST, to, sizeof(to),
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_SUCCESS_DISABLE, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md =
            suite_md_with(s, from, sizeof(from), PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, s->mdct);
        ptl_handle_md_t back = suite_md(s, got, sizeof(got), 0);
        for (int round = 0; round < ROUNDS; round++) {
            suite_fill(from, length, (unsigned)round);
            memset(got, 0, length);
            if (put_first) {
                OK(PtlPut(md, 0, length, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            }
            OK(PtlGet(back, 0, length, s->to, SUITE_PT, 0, 0, NULL));
            if (!put_first) {
                OK(PtlPut(md, 0, length, PTL_CT_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
            }
            EXPECT(s->mdeq, PTL_EVENT_REPLY, .mlength = IS(length));
            EXPECT_CT(s->mdct, (ptl_size_t)round + 1, 0);
            CHECK_FILL(got, length, (unsigned)((round + read + ROUNDS + 1) % (ROUNDS + 1)));
        }
    }
}

static void get_after_put(struct scene *s)
{
    put_and_get(s, ordered_length(s, s->limits.max_waw_ordered_size), true, 0);
}

/* It reads what the round before, or at first the target, has put there. */
static void put_after_get(struct scene *s)
{
    put_and_get(s, ordered_length(s, s->limits.max_war_ordered_size), false, -1);
}

GENERATE(order_cases)
{
    static const char *const names[] = {"one_byte", "half", "at"};
    for (int i = 0; i < 3; i++) {
        struct suite_case c = {.rule = "3.6: of two puts of up to max_waw_ordered_size the second "
                                       "one's bytes stay",
                               .body = put_after_put,
                               .number = i};
        suite_add_each(c, ALL_KINDS, SELF | PAIR, "max_waw_ordered_size.put_%s", names[i]);
        c.rule = "3.6: a get behind a put of up to max_waw_ordered_size reads its bytes";
        c.body = get_after_put;
        suite_add_each(c, ALL_KINDS, SELF | PAIR, "max_waw_ordered_size.get_%s", names[i]);
        c.rule = "3.6: a put behind a get of up to max_war_ordered_size does not reach its bytes";
        c.body = put_after_get;
        suite_add_each(c, ALL_KINDS, SELF | PAIR, "max_war_ordered_size.%s", names[i]);
    }
}

/* ---- Features -------------------------------------------------------------- */

CASE(bind_inaccessible, ALL_KINDS, SELF | PAIR,
     "3.6: with PTL_TARGET_BIND_INACCESSIBLE entries may cover memory without access; a message "
     "to it ends with PTL_NI_SEGV")
{
    if ((s->limits.features & PTL_TARGET_BIND_INACCESSIBLE) == 0) {
        suite_skip("no such feature");
    }
    if (s->target) {
        unsigned char *two =
            mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(two != MAP_FAILED);
        /* inaccessible, not unmapped: the peer's segment could be mapped there */
        CHECK_EQ(mprotect(two + 4096, 4096, PROT_NONE), 0);
        suite_target(s, PTL_PRIORITY_LIST, two, 8192, PTL_ME_OP_PUT, NULL);
    }
    STEP();
    if (s->initiator) {
        ptl_handle_md_t md = suite_md(s, from, 8, PTL_MD_EVENT_SEND_DISABLE);
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(8));
        OK(PtlPut(md, 0, 8, PTL_ACK_REQ, s->to, SUITE_PT, 0, 4096, NULL, 0));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_SEGV);
    }
    STEP();
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(8));
        EXPECT(s->eq, PTL_EVENT_PUT, .fail = PTL_NI_SEGV);
    }
}
