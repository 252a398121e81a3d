/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data movement, generated: every call, kind of interface, list, size and kind of
 * acknowledgement, to oneself and to another process. Each case sends one message from the
 * middle of an MD to the middle of an entry and looks at all bytes of both sides, at all
 * events with all their fields, at all counters and at the status registers.
 *
 *   priority   the entry is on the priority list
 *   overflow   it is on the overflow list; afterwards one that is appended to the priority
 *              list takes the unexpected header
 */
#include "matrix_kit.h"

#include <stdlib.h>

enum { LOCAL_AT = 40, LOCAL_GET_AT = 56, REMOTE_AT = 72, BEHIND = 24, MIB = 1 << 20 };
#define BITS UINT64_C(0x0123456789abcdef)
#define HDR_DATA UINT64_C(0xfedcba9876543210)

static const char *const ack_name[] = {"no_ack", "ack", "ct_ack", "oc_ack"};

struct move_case {
    enum suite_call call;
    ptl_list_t list;
    size_t length;
    ptl_ack_req_t ack;
};

/* The pointers that events carry. */
static char of_move, of_entry, of_later;

/* What the MDs count: sends and answers of the put side, replies of the get side. */
struct counters {
    ptl_handle_ct_t put, get;
};

static struct suite_move fill_move(struct scene *s, const struct move_case *c,
                                   struct counters *counters)
{
    struct suite_move m = suite_move_to(s, c->call);
    m.length = c->length;
    m.ack = c->ack;
    m.bits = s->matching ? BITS : 0;
    m.remote_offset = REMOTE_AT;
    m.user_ptr = &of_move;
    m.hdr_data = HDR_DATA;
    m.op = c->call == CALL_SWAP ? PTL_SWAP : PTL_BXOR;
    m.type = PTL_UINT8_T; /* of which every length holds whole ones */
    m.offset = LOCAL_AT;
    m.get_offset = LOCAL_GET_AT;
    if (!s->initiator) {
        return m;
    }
    unsigned options = PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
    struct region *put = &region[PUT_SIDE], *get = &region[GET_SIDE];
    counters->put = suite_ct(s);
    counters->get = suite_ct(s);
    ptl_handle_md_t put_md =
        suite_md_with(s, region_start(put), region_units(put), options, s->mdeq, counters->put);
    m.get_md = suite_md_with(s, region_start(get), region_units(get),
                             options | PTL_MD_EVENT_CT_BYTES, s->mdeq, counters->get);
    m.md = c->call == CALL_GET ? m.get_md : put_md;
    return m;
}

static void append(struct scene *s, const struct move_case *c, struct due *due)
{
    unsigned options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM;
    struct region *entry = &region[ENTRY];
    ptl_me_t me = suite_entry(s, region_start(entry), entry->length, options);
    me.match_bits = BITS;
    me.ignore_bits = 0;
    suite_append(s, c->list, &me, &of_entry);
    due_add(due, entry_event(s, PTL_EVENT_LINK, &of_entry));
    TAKE(s->eq, due);
}

/* The entry appended now takes the header and is linked behind that. */
static void append_later(struct scene *s, const struct suite_move *m, const struct landing *l,
                         struct due *due)
{
    static char unused[16];
    ptl_me_t me = suite_entry(s, unused, sizeof(unused),
                              PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_OVERFLOW |
                                  PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES);
    me.ct_handle = suite_ct(s);
    me.match_bits = BITS;
    me.ignore_bits = 0;
    suite_append(s, PTL_PRIORITY_LIST, &me, &of_later);
    due_add(due, landing_overflow(s, m, l, &of_later));
    due_then(due);
    due_add(due, entry_event(s, PTL_EVENT_LINK, &of_later));
    TAKE(s->eq, due);
    COUNTED(me.ct_handle, l->mlength, 0);
}

static void initiator_events(struct scene *s, const struct suite_move *m, const struct landing *l,
                             struct due *due)
{
    if (move_puts(m->call)) {
        due_add(due, send_event(m));
    }
    if (move_gets(m->call) || m->ack == PTL_ACK_REQ) {
        due_add(due, answer_event(m, l));
    }
    TAKE(s->mdeq, due);
}

static void initiator_counts(const struct suite_move *m, const struct counters *counters)
{
    bool acked = m->call == CALL_PUT || m->call == CALL_ATOMIC;
    COUNTED(counters->put, move_puts(m->call) + (acked && m->ack != PTL_NO_ACK_REQ), 0);
    COUNTED(counters->get, move_gets(m->call) ? m->length : 0, 0);
}

static void move_body(struct scene *s)
{
    const struct move_case *c = s->c->data;
    struct due due = {0};
    struct counters counters = {PTL_CT_NONE, PTL_CT_NONE};
    struct watch w;
    if (c->length > move_limit(s, c->call)) {
        suite_skip("longer than the limit of this interface");
    }
    region_make(&region[PUT_SIDE], PLAIN, LOCAL_AT + c->length + BEHIND, 1);
    region_make(&region[GET_SIDE], PLAIN, LOCAL_GET_AT + c->length + BEHIND, 2);
    region_make(&region[ENTRY], PLAIN, REMOTE_AT + c->length + BEHIND, 3);
    watch_begin(&w, s);
    struct suite_move m = fill_move(s, c, &counters);
    if (c->call == CALL_GET) {
        m.offset = LOCAL_GET_AT;
    }
    struct landing l = {&region[ENTRY], REMOTE_AT, c->length, PTL_NI_OK, c->list, &of_entry};
    if (s->target) {
        append(s, c, &due);
    }
    STEP();
    landing_move(&m, &region[PUT_SIDE], &region[GET_SIDE], &region[ENTRY], &l);
    if (s->initiator) {
        OK(suite_move(&m));
        initiator_events(s, &m, &l, &due);
    }
    if (s->target) {
        due_add(&due, landing_event(s, &m, &l));
        TAKE(s->eq, &due);
    }
    WATCH_END(&w);
    if (s->initiator) {
        initiator_counts(&m, &counters);
        CHECK_REGION(&region[PUT_SIDE]);
        CHECK_REGION(&region[GET_SIDE]);
    }
    if (s->target) {
        COUNTED(s->ct, 1, 0);
        CHECK_REGION(&region[ENTRY]);
        if (c->list == PTL_OVERFLOW_LIST) {
            append_later(s, &m, &l, &due);
            CHECK_REGION(&region[ENTRY]);
        }
    }
    WATCH_END(&w);
}

/* ---- The matrix ------------------------------------------------------------- */

static const char *const rules[CALL_COUNT][2] = {
    {"3.15: a put leaves its bytes in the entry, SEND and the ack asked for at the initiator",
     "3.12: a put to the overflow list gives PUT now and PUT_OVERFLOW to a later entry"},
    {"3.15: a get brings the bytes of the entry, with REPLY and GET",
     "3.12: a get from the overflow list gives GET now and GET_OVERFLOW to a later entry"},
    {"3.15: an atomic works on the entry, SEND and the ack asked for at the initiator",
     "3.12: an atomic on the overflow list gives ATOMIC now and ATOMIC_OVERFLOW later"},
    {"3.15: a fetching atomic brings what was there before, with SEND, REPLY, FETCH_ATOMIC",
     "3.12: a fetching atomic on the overflow list gives FETCH_ATOMIC_OVERFLOW later"},
    {"3.15: a swap exchanges the bytes, with SEND, REPLY, FETCH_ATOMIC",
     "3.12: a swap on the overflow list gives FETCH_ATOMIC_OVERFLOW later"},
};

/* Around what the fabrics treat differently: nothing, what travels in the ring (1024), a
 * packet (4096), several. */
static const size_t sizes[] = {0,    1,    8,    63,   64,   1000,  1023,
                               1024, 1025, 4095, 4096, 4097, 20000, MIB};
enum { ATOMIC_MAX = 4096 };

static void add(enum suite_call call, ptl_list_t list, size_t length, ptl_ack_req_t ack)
{
    struct move_case *c = malloc(sizeof(*c));
    if (c == NULL) {
        abort();
    }
    *c = (struct move_case){call, list, length, ack};
    suite_add_each((struct suite_case){.rule = rules[call][list], .body = move_body, .data = c},
                   length == MIB ? MP | NL : ALL_KINDS, SELF | PAIR, "move.%s.%s.%zu.%s",
                   suite_call_name[call], list == PTL_PRIORITY_LIST ? "priority" : "overflow",
                   length, ack_name[ack]);
}

GENERATE(moves)
{
    for (enum suite_call call = CALL_PUT; call < CALL_COUNT; call++) {
        bool arithmetic = call != CALL_PUT && call != CALL_GET;
        for (ptl_list_t list = PTL_PRIORITY_LIST; list <= PTL_OVERFLOW_LIST; list++) {
            for (size_t i = 0; i < COUNT_OF(sizes); i++) {
                if (arithmetic && sizes[i] > ATOMIC_MAX) {
                    continue;
                }
                add(call, list, sizes[i], PTL_NO_ACK_REQ);
                /* acks do not depend on every size */
                bool acked = call == CALL_PUT || call == CALL_ATOMIC;
                for (ptl_ack_req_t ack = PTL_ACK_REQ; acked && ack <= PTL_OC_ACK_REQ; ack++) {
                    if (ack == PTL_ACK_REQ || i % 3 == 1 || sizes[i] == 0) {
                        add(call, list, sizes[i], ack);
                    }
                }
            }
        }
    }
}
