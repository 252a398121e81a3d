/* SPDX-License-Identifier: BSD-3-Clause */
/* Which entry a message takes: match bits, ignored bits, sources and their
 * wildcards, list order; checked against a plain walk down the list. */
#include "port.h"

#include <string.h>

static unsigned char to[64];

static ptl_me_t bits_entry(struct port *p, ptl_match_bits_t match, ptl_match_bits_t ignore)
{
    ptl_me_t me =
        port_entry(p, to, sizeof(to), PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
    me.match_bits = match;
    me.ignore_bits = ignore;
    return me;
}

static void put_bits(struct port *p, ptl_handle_md_t md, int target, ptl_match_bits_t bits,
                     int fail)
{
    OK(PtlPut(md, 0, 8, PTL_ACK_REQ, p->id[target], p->pt, bits, 0, NULL, bits));
    EVENT_FAIL(p->mdeq, PTL_EVENT_ACK, fail);
}

PTEST_MATCHING(bits, 1)
{
    static const struct {
        ptl_match_bits_t match, ignore, sent;
        bool matches;
    } table[] = {
        {0, 0, 0, true},
        {0, 0, 1, false},
        {0, 0, 1ull << 63, false},
        {1ull << 63, 0, 1ull << 63, true},
        {0x123456789abcdef0, 0, 0x123456789abcdef0, true},
        {0x123456789abcdef0, 0, 0x123456789abcdef1, false},
        {0x123456789abcdef0, 0xf, 0x123456789abcdeff, true},
        {0x123456789abcdeff, 0xf, 0x123456789abcdef0, true}, /* ignored bits of both */
        {0x123456789abcdef0, 0xf, 0x123456789abcdee0, false},
        {0, ~0ull, 0xffffffffffffffff, true},
        {0xffffffffffffffff, ~0ull, 0, true},
        {0, ~0ull - 1, 0xfffffffffffffffe, true},
        {0, ~0ull - 1, 1, false},
        {0xaa00, 0x00ff00ff00ff00ff, 0xaa55, true},
        {0xaa00, 0x00ff00ff00ff00ff, 0xab55, false},
        {0, 0xffffffff00000000, 0xffffffff, false},
        {0, 0x00000000ffffffff, 0xffffffff, true},
    };
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = port_md(&p, to, 8, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        ptl_me_t me = bits_entry(&p, table[i].match, table[i].ignore);
        ptl_handle_me_t handle = port_append(&p, &me, NULL);
        put_bits(&p, md, 0, table[i].sent, table[i].matches ? PTL_NI_OK : PTL_NI_DROPPED);
        if (table[i].matches) {
            ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
            CHECK_EQ(event.match_bits, table[i].sent);
        }
        port_unlink(&p, handle);
        put_bits(&p, md, 0, table[i].sent, PTL_NI_DROPPED);
    }
    port_close(&p);
}

/* On a non-matching interface match bits are nothing. */
PTEST(plain_interfaces_ignore_bits, 1)
{
    struct port p;
    port_open(&p, KIND_NL, rank, size);
    port_target(&p, to, sizeof(to), PTL_ME_OP_PUT, NULL);
    ptl_handle_md_t md = port_md(&p, to, 8, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    for (int i = 0; i < 64; i++) {
        put_bits(&p, md, 0, 1ull << i, PTL_NI_OK);
        EVENT(p.eq, PTL_EVENT_PUT);
    }
    port_close(&p);
}

/* The source of an entry, as rank or as nid and pid, each perhaps a wildcard. */
PTEST_MATCHING(sources, 3)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = port_md(&p, to, 8, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    for (int wanted = 0; wanted < 3; wanted++) {
        for (int wild = 0; wild < (port_logical(&p) ? 2 : 4); wild++) {
            bool any_pid = (wild & 1) != 0; /* or any rank */
            if (rank == 2) {
                ptl_me_t me = bits_entry(&p, 0, ~0ull);
                me.match_id = p.id[wanted];
                if (port_logical(&p) && any_pid) {
                    me.match_id.rank = PTL_RANK_ANY;
                } else if (!port_logical(&p)) {
                    me.match_id.phys.pid = any_pid ? PTL_PID_ANY : me.match_id.phys.pid;
                    me.match_id.phys.nid = wild & 2 ? PTL_NID_ANY : me.match_id.phys.nid;
                }
                ptl_handle_me_t handle = port_append(&p, &me, NULL);
                BARRIER();
                BARRIER();
                port_unlink(&p, handle);
                for (int r = 0; r < 2; r++) {
                    if (any_pid || r == wanted) {
                        EVENT(p.eq, PTL_EVENT_PUT);
                    }
                }
                NO_EVENT(p.eq);
                BARRIER();
                continue;
            }
            BARRIER();
            put_bits(&p, md, 2, 0, any_pid || rank == wanted ? PTL_NI_OK : PTL_NI_DROPPED);
            BARRIER();
            BARRIER();
        }
    }
    port_close(&p);
}

/* A model of the list: what a plain walk finds. */
enum { ENTRIES = 600, ROUNDS = 12, PUTS = 150 };

struct model_entry {
    ptl_me_t me;
    ptl_handle_me_t handle;
    bool linked, any;
    int source;
};

static struct model_entry model[ENTRIES];
static int entries;

static int model_find(ptl_match_bits_t bits, int source)
{
    for (int i = 0; i < entries; i++) {
        const struct model_entry *e = &model[i];
        if (e->linked && (e->any || e->source == source) &&
            ((bits ^ e->me.match_bits) & ~e->me.ignore_bits) == 0) {
            return i;
        }
    }
    return -1;
}

static const ptl_match_bits_t model_masks[] = {0,
                                               ~0ull,
                                               0xf,
                                               0xf0,
                                               0xf00,
                                               0xff,
                                               0xff0,
                                               ~0xfull,
                                               ~0xf00ull,
                                               0xffffffff00000000,
                                               0x0f0f0f0f0f0f0f0f,
                                               1};
enum { MASKS = sizeof(model_masks) / sizeof(model_masks[0]) };

static ptl_match_bits_t model_bits(uint64_t *seed)
{
    uint64_t r = splitmix(seed);
    return (r & 0x3) | (r & 0x30) | (r & 0x300) | (r & 0x1000 ? 1ull << 40 : 0);
}

static void model_append(struct port *p, uint64_t *seed)
{
    struct model_entry *e = &model[entries++];
    e->me = bits_entry(p, model_bits(seed), model_masks[splitmix(seed) % MASKS]);
    if (e->me.ignore_bits == ~0ull && splitmix(seed) % 8 != 0) {
        e->me.ignore_bits = 0; /* few that take all, or the rest would see nothing */
    }
    e->me.options |= splitmix(seed) % 4 != 0 ? PTL_ME_USE_ONCE : 0;
    e->me.options |= PTL_ME_EVENT_UNLINK_DISABLE;
    e->any = splitmix(seed) % 2 == 0;
    e->source = (int)(splitmix(seed) % 2);
    e->linked = true;
    if (!e->any) {
        e->me.match_id = p->id[e->source];
    }
    e->handle = port_append(p, &e->me, e);
}

/* Ranks 0 and 1 send in turn to rank 2. All three follow the same random
 * numbers, so that each knows what the others do; only rank 2 has the model. */
PTEST_MATCHING(list_order, 3)
{
    struct port p;
    uint64_t seed = 20;
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = port_md(&p, to, 8, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    for (int round = 0; round < ROUNDS; round++) {
        int source = round % 2, drops = 0, status = 0;
        if (rank == 2) {
            uint64_t own = (uint64_t)round + 1000;
            status = port_status(&p, PTL_SR_DROP_COUNT);
            for (int i = 0; i < ENTRIES / ROUNDS; i++) {
                model_append(&p, &own);
            }
            for (int i = round % 3; i < entries; i += 7) { /* and some go again */
                if (model[i].linked) {
                    OK(PtlMEUnlink(model[i].handle));
                    model[i].linked = false;
                }
            }
        }
        BARRIER();
        for (unsigned i = 0; i < PUTS; i++) {
            ptl_match_bits_t bits = model_bits(&seed);
            if (rank == source) {
                ptl_ack_req_t ack = i + 1 < PUTS ? PTL_NO_ACK_REQ : PTL_ACK_REQ;
                OK(PtlPut(md, 0, 8, ack, p.id[2], p.pt, bits, 0, NULL, i));
            }
            int found = rank == 2 ? model_find(bits, source) : -1;
            if (found >= 0) {
                ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
                CHECK_EQ(event.hdr_data, i);
                CHECK_EQ(event.match_bits, bits);
                CHECK_EQ((struct model_entry *)event.user_ptr - model, found);
                CHECK(port_is_from(&p, &event, source));
                model[found].linked = (model[found].me.options & PTL_ME_USE_ONCE) == 0;
            } else {
                drops++;
            }
        }
        if (rank == source) { /* the last one is answered, so all have been matched */
            ptl_event_t event;
            OK(PtlEQWait(p.mdeq, &event));
            CHECK_EQ(event.type, PTL_EVENT_ACK);
        }
        BARRIER();
        if (rank == 2) {
            NO_EVENT(p.eq);
            CHECK_EQ(port_status(&p, PTL_SR_DROP_COUNT), status + drops);
        }
        BARRIER();
    }
    port_close(&p);
}

/* LEs have no bits: the first one of the list takes all, in order. */
PTEST(plain_list_order, 2)
{
    enum { N = 50 };
    struct port p;
    ptl_handle_me_t handle[N];
    port_open(&p, KIND_NP, rank, size);
    ptl_handle_md_t md = port_quiet_md(&p, to, 8, 0, PTL_CT_NONE);
    if (rank == 1) {
        for (int i = 0; i < N; i++) {
            handle[i] = port_target(&p, to, sizeof(to),
                                    PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE,
                                    &handle[i]);
        }
        for (int i = 0; i < N; i += 3) {
            OK(PtlLEUnlink(handle[i]));
        }
    }
    BARRIER();
    for (int i = 0; i < N; i++) {
        if (i % 3 == 0) {
            continue;
        }
        if (rank == 0) {
            OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
        } else {
            ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
            CHECK_EQ(event.user_ptr, &handle[i]);
        }
    }
    port_close(&p);
}

/* A thousand exact entries and one behind them: no search may take the wrong. */
PTEST_MATCHING(long_list, 1)
{
    enum { N = 1000 };
    struct port p;
    uint64_t words[N], from = 0;
    port_open(&p, kind, rank, size);
    for (ptl_match_bits_t i = 0; i < N; i++) {
        ptl_me_t me = bits_entry(&p, i * 0x10001, 0);
        me.start = &words[i];
        me.length = 8;
        port_append(&p, &me, &words[i]);
    }
    ptl_me_t rest = bits_entry(&p, 0, ~0ull);
    port_append(&p, &rest, &rest);
    ptl_handle_md_t md = port_md(&p, &from, 8, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    for (ptl_match_bits_t n = 0; n < N; n++) {
        ptl_match_bits_t i = n * 77 % N;
        from = i;
        put_bits(&p, md, 0, i * 0x10001, PTL_NI_OK);
        ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_EQ(event.user_ptr, &words[i]);
        CHECK_EQ(words[i], i);
    }
    put_bits(&p, md, 0, 5, PTL_NI_OK);
    ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
    CHECK_EQ(event.user_ptr, &rest);
    port_close(&p);
}

/* Of two entries with one key, behind another one, the second takes what the first has no room
 * for, and no more: whatever was matched before, and whichever of them was linked first. */
struct taker {
    ptl_handle_me_t handle;
    size_t room;
};

static void link_taker(struct port *p, struct taker *t)
{
    ptl_me_t me =
        port_entry(p, to, t->room,
                   PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_NO_TRUNCATE | PTL_ME_EVENT_LINK_DISABLE);
    me.match_bits = 1;
    me.ignore_bits = 0;
    t->handle = port_append(p, &me, t);
}

/* Rank 0 puts and gets so many bytes; `first`, where rank 1 has it, is asked before `second`. */
static void ask_takers(struct port *p, ptl_handle_md_t md, const struct taker *first,
                       const struct taker *second)
{
    static const size_t lengths[] = {8, 16, 8, 64, 64, 8, 16, 16, 0, 8};
    for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t length = lengths[i / 2];
        bool get = i % 2 != 0;
        const struct taker *taker = length <= first->room ? first : second;
        int fail = taker != NULL && length <= taker->room ? PTL_NI_OK : PTL_NI_DROPPED;
        if (p->rank == 1 && fail == PTL_NI_OK) {
            ptl_event_t event = EVENT(p->eq, get ? PTL_EVENT_GET : PTL_EVENT_PUT);
            CHECK_EQ(event.user_ptr, taker);
            CHECK_EQ(event.mlength, length);
        }
        if (p->rank == 0 && get) {
            OK(PtlGet(md, 0, length, p->id[1], p->pt, 1, 0, NULL));
            EVENT_FAIL(p->mdeq, PTL_EVENT_REPLY, fail);
        } else if (p->rank == 0) {
            OK(PtlPut(md, 0, length, PTL_ACK_REQ, p->id[1], p->pt, 1, 0, NULL, 0));
            EVENT_FAIL(p->mdeq, PTL_EVENT_ACK, fail);
        }
    }
    NO_EVENT(p->eq);
    BARRIER();
}

PTEST_MATCHING(entries_that_refuse, 2)
{
    static struct taker narrow = {.room = 8}, wide = {.room = 64};
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_md_t md = port_md(&p, to, sizeof(to), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    if (rank == 1) {
        ptl_me_t other = bits_entry(&p, 7, 0);
        port_append(&p, &other, NULL);
        link_taker(&p, &narrow);
        link_taker(&p, &wide);
    }
    BARRIER();
    ask_takers(&p, md, &narrow, &wide);
    if (rank == 1) {
        port_unlink(&p, narrow.handle);
        link_taker(&p, &narrow);
    }
    BARRIER();
    ask_takers(&p, md, &wide, &narrow);
    if (rank == 1) {
        port_unlink(&p, wide.handle);
    }
    BARRIER();
    ask_takers(&p, md, &narrow, NULL);
    if (rank == 1) {
        port_unlink(&p, narrow.handle);
        link_taker(&p, &wide);
    }
    BARRIER();
    ask_takers(&p, md, &wide, NULL);
    port_close(&p);
}
