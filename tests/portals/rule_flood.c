/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 3.7: flow control under pressure. Four members send to member 0 faster than it takes
 * events, and send again what was refused:
 *
 *   sender   puts WINDOW messages; takes their acks; those refused come again, in order
 *   target   takes what is in the queue; at PT_DISABLED it makes room and calls PtlPTEnable
 *
 * hdr_data: who sent it, the how-manyeth put of that sender it is, and which message. So the
 * target sees that nothing is lost or comes twice, that what is accepted of one sender is in
 * the order of its puts, and that PT_DISABLED comes once between two PtlPTEnable.
 */
#include "rule_kit.h"

#include <string.h>

enum { MEMBERS = 5, EACH = 120, WINDOW = 12, EVENTS = 8, LONG = 30000 };
enum { REFUSED = 0, DONE = 1 }; /* words that senders show */
enum way { STAYS, ONCE, OVERFLOW_LIST, TWO_INDEXES };

static unsigned char data[LONG];

static ptl_size_t length_of(uint64_t which)
{
    static const ptl_size_t length[] = {8, 0, 100, LONG, 1024, 5000, 8, 16};
    return length[which % 8];
}

/* ---- Sender ---------------------------------------------------------------- */

static void send_all(struct scene *s, ptl_pt_index_t pt)
{
    ptl_handle_md_t md = rule_md(s, data, LONG);
    uint64_t todo[WINDOW], tries = 0, next = 0, refused = 0;
    for (int count = 0; next < EACH || count > 0;) {
        while (count < WINDOW && next < EACH) {
            todo[count++] = next++;
        }
        for (int i = 0; i < count; i++) {
            uint64_t hdr = (uint64_t)crowd.rank << 56 | tries++ << 16 | todo[i];
            OK(PtlPut(md, 0, length_of(todo[i]), PTL_ACK_REQ, s->to, pt, todo[i], 0,
                      (void *)(uintptr_t)i, hdr));
        }
        bool good[WINDOW] = {false};
        for (int i = 0; i < count; i++) {
            ptl_event_t e;
            OK(PtlEQWait(s->mdeq, &e));
            CHECK_EQ(e.type, PTL_EVENT_ACK);
            CHECK_EQ(e.user_ptr, i); /* acks come in the order of the puts */
            CHECK(e.ni_fail_type == PTL_NI_OK || e.ni_fail_type == PTL_NI_PT_DISABLED);
            good[i] = e.ni_fail_type == PTL_NI_OK;
            CHECK(!good[i] || e.mlength == length_of(todo[i]));
        }
        int left = 0;
        for (int i = 0; i < count; i++) {
            if (!good[i]) {
                todo[left++] = todo[i];
                refused++;
            }
        }
        count = left;
        crowd_show(REFUSED, refused);
    }
    crowd_show(DONE, 1);
}

/* ---- Target ---------------------------------------------------------------- */

struct taken {
    bool seen[CROWD][EACH];
    uint64_t tries[CROWD]; /* the last put that was accepted, plus one */
    int count;
    bool closed[2]; /* PT_DISABLED has told of the index */
};

static void take_message(struct taken *t, uint64_t hdr, ptl_size_t mlength)
{
    unsigned rank = (unsigned)(hdr >> 56), which = hdr & 0xffff;
    uint64_t tries = (hdr >> 16) & 0xffffffffff;
    CHECK(rank > 0 && rank < MEMBERS && which < EACH);
    CHECK(!t->seen[rank][which]);
    CHECK(tries >= t->tries[rank]);
    CHECK_EQ(mlength, length_of(which));
    t->seen[rank][which] = true;
    t->tries[rank] = tries + 1;
    t->count++;
}

/* Something for a message to land in. */
static void post_one(struct scene *s)
{
    suite_target(s, PTL_PRIORITY_LIST, data, LONG,
                 PTL_ME_OP_PUT | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, NULL);
}

static void make_room(struct scene *s, enum way way, const ptl_pt_index_t *pt, int which)
{
    for (int i = 0; i < 6 && way == ONCE; i++) {
        post_one(s);
    }
    OK(PtlPTEnable(s->ni, pt[which]));
}

static void receive_all(struct scene *s, enum way way, const ptl_pt_index_t *pt)
{
    static struct taken t;
    memset(&t, 0, sizeof(t));
    for (int r = 1; r < MEMBERS; r++) { /* none is taken before each sender was refused */
        while (crowd_look(r, REFUSED) == 0 && crowd_look(r, DONE) == 0) {
            rule_nudge(s, 1);
        }
    }
    int pt_disabled = 0;
    while (t.count < EACH * (MEMBERS - 1)) {
        ptl_event_t e;
        unsigned ignored;
        int code = PtlEQPoll(&s->eq, 1, 5000, &e, &ignored);
        CODE(code, PTL_OK); /* never PTL_EQ_DROPPED */
        if (e.type == PTL_EVENT_PT_DISABLED) {
            int which = e.pt_index == pt[0] ? 0 : 1;
            CHECK_EQ(e.pt_index, pt[which]);
            CHECK(!t.closed[which]);
            t.closed[which] = true;
            pt_disabled++;
            if (pt_disabled % 3 == 0 && (way == STAYS || way == ONCE)) {
                NO_EVENT(s->eq); /* not once more, and no message either */
                rule_nudge(s, 2);
            }
            t.closed[which] = false;
            make_room(s, way, pt, which);
        } else if (way == OVERFLOW_LIST && e.type == PTL_EVENT_PUT) {
            CHECK_EQ(e.ptl_list, PTL_OVERFLOW_LIST);
            ptl_me_t me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT | PTL_ME_USE_ONCE);
            me.match_bits = e.match_bits;
            me.match_id = e.initiator;
            me.ignore_bits = 0;
            OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_DELETE, &me, NULL));
        } else {
            CHECK_EQ(e.type, way == OVERFLOW_LIST ? PTL_EVENT_PUT_OVERFLOW : PTL_EVENT_PUT);
            CHECK_EQ(e.ni_fail_type, PTL_NI_OK);
            take_message(&t, e.hdr_data, e.mlength);
            if (way == ONCE) {
                post_one(s);
            }
        }
    }
    CHECK(pt_disabled > 0);
    for (int r = 1; r < MEMBERS; r++) {
        CHECK(crowd_look(r, REFUSED) > 0 || crowd_look(r, DONE) == 1);
        crowd_await(s, r, DONE, 1);
    }
}

static void flood(struct scene *s, enum way way)
{
    ptl_pt_index_t pt[2] = {SUITE_PT, 11};
    suite_pt(s, PTL_PT_FLOWCTRL, s->eq, pt[1]);
    if (s->target) {
        for (int i = 0; i < (way == TWO_INDEXES ? 2 : 1); i++) {
            ptl_me_t me = suite_entry(s, data, LONG, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
            ptl_handle_me_t entry;
            if (way == ONCE) {
                post_one(s);
            } else {
                OK(suite_append_code(s, pt[i],
                                     way == OVERFLOW_LIST ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST,
                                     &me, NULL, &entry));
            }
        }
    }
    crowd_step(s);
    if (s->target) {
        receive_all(s, way, pt);
        ptl_event_t e;
        int code = PtlEQGet(s->eq, &e);
        CHECK(code == PTL_EQ_EMPTY || (code == PTL_OK && e.type == PTL_EVENT_PT_DISABLED));
    } else {
        send_all(s, pt[way == TWO_INDEXES ? crowd.rank % 2 : 0]);
    }
}

static void flood_stays(struct scene *s)
{
    flood(s, STAYS);
}

static void flood_once(struct scene *s)
{
    flood(s, ONCE);
}

static void flood_overflow(struct scene *s)
{
    flood(s, OVERFLOW_LIST);
}

static void flood_two(struct scene *s)
{
    flood(s, TWO_INDEXES);
}

CASE(flood_small_queue, ALL_KINDS, BARE,
     "3.7: several peers flood an index whose queue is small: nothing lost, nothing twice, each "
     "peer's in order, PT_DISABLED once a time")
{
    crowd_run(s, MEMBERS, PTL_PT_FLOWCTRL, EVENTS, NULL, flood_stays);
}

CASE(
    flood_no_entries, ALL_KINDS, BARE,
    "3.7: several peers send more than there are use-once entries: what finds none is refused, and "
    "arrives once later")
{
    crowd_run(s, MEMBERS, PTL_PT_FLOWCTRL, 4 * EVENTS, NULL, flood_once);
}

CASE(flood_headers, MATCHING_KINDS, BARE,
     "3.7: several peers send more unexpected messages than there are headers: what finds no room "
     "is refused, and arrives once later")
{
    static ptl_ni_limits_t few;
    few = rule_some_limits();
    few.max_unexpected_headers = 5;
    crowd_run(s, MEMBERS, PTL_PT_FLOWCTRL, 4 * EVENTS, &few, flood_overflow);
}

CASE(flood_two_indexes, ALL_KINDS, BARE,
     "3.7: two flow-controlled indexes share a small queue: neither loses an event")
{
    crowd_run(s, MEMBERS, PTL_PT_FLOWCTRL, EVENTS, NULL, flood_two);
}
