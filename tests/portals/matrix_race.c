/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries and messages that meet at any time: while one process sends a row of messages,
 * the other appends as many use-once entries to the priority list, in front of an overflow
 * entry for all. So a message finds its entry, or leaves a header that the entry finds,
 * perhaps while the data is still coming. Whichever it is:
 *
 *   the i-th message belongs to the i-th entry
 *   it gives PUT (GET) there; or PUT (GET) of the overflow list, and then ..._OVERFLOW
 *   its bytes are where the event says, and nowhere else
 */
#include "matrix_kit.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 16, LONG = 70000, ROWS = 25 };

static char of_move[MESSAGES], of_entry[MESSAGES], of_all;

struct row {
    uint64_t random;
    unsigned sent, appended;
    struct suite_move m[MESSAGES];
    bool landed[MESSAGES], told[MESSAGES]; /* in the overflow list; its entry knows */
};

static void draw_row(struct scene *s, struct row *r)
{
    static const size_t classes[] = {8, 1024, 5000, LONG};
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct suite_move *m = &r->m[i];
        bool get = matrix_random(&r->random) % 4 == 0;
        *m = suite_move_to(s, get ? CALL_GET : CALL_PUT);
        size_t class = classes[matrix_random(&r->random) % COUNT_OF(classes)];
        m->length = 1 + matrix_random(&r->random) % class;
        m->offset = (size_t)i * LONG;
        m->remote_offset = (size_t)i * LONG;
        m->user_ptr = &of_move[i];
        m->hdr_data = i;
        m->ack = PTL_ACK_REQ;
    }
}

static void append_next(struct scene *s, struct row *r)
{
    unsigned i = r->appended++;
    struct region *entry = &region[ENTRY];
    ptl_me_t me = suite_entry(s, region_start(entry), entry->length,
                              PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_USE_ONCE |
                                  PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE);
    suite_append(s, PTL_PRIORITY_LIST, &me, &of_entry[i]);
}

/* The message that an event is of: by where it lies. */
static unsigned message_of(const ptl_event_t *e)
{
    CHECK_EQ(e->remote_offset % LONG, 0);
    CHECK(e->remote_offset / LONG < MESSAGES);
    return (unsigned)(e->remote_offset / LONG);
}

static void take_event(struct scene *s, struct row *r, const ptl_event_t *e)
{
    unsigned i = message_of(e);
    const struct suite_move *m = &r->m[i];
    bool overflow = e->type == PTL_EVENT_PUT_OVERFLOW || e->type == PTL_EVENT_GET_OVERFLOW;
    struct region *at =
        &region[overflow || e->ptl_list == PTL_OVERFLOW_LIST ? OVERFLOW_ENTRY : ENTRY];
    struct landing l = {at,        m->remote_offset, m->length,
                        PTL_NI_OK, e->ptl_list,      e->ptl_list ? &of_all : &of_entry[i]};
    struct suite_event want =
        overflow ? landing_overflow(s, m, &l, &of_entry[i]) : landing_event(s, m, &l);
    suite_event_is(s, e, &want, __FILE__, __LINE__);
    if (overflow) {
        CHECK(r->landed[i] && !r->told[i]);
        r->told[i] = true;
        return;
    }
    CHECK(!r->landed[i] && !r->told[i]);
    r->landed[i] = e->ptl_list == PTL_OVERFLOW_LIST;
    r->told[i] = e->ptl_list == PTL_PRIORITY_LIST;
    if (m->call == CALL_PUT) {
        region_move(at, m->remote_offset, &region[PUT_SIDE], m->offset, m->length);
    }
}

static bool all_told(const struct row *r)
{
    for (unsigned i = 0; i < MESSAGES; i++) {
        if (!r->told[i]) {
            return false;
        }
    }
    return true;
}

/* Sends and appends, each process what is its part, now and then looking for events. */
static void run_row(struct scene *s, struct row *r)
{
    uint64_t pace = r->random + (uint64_t)s->rank, end = suite_deadline();
    while (s->initiator && !s->target && r->sent < MESSAGES) {
        OK(suite_move(&r->m[r->sent++]));
    }
    while (s->target && !(all_told(r) && r->appended == MESSAGES)) {
        ptl_event_t event;
        unsigned draw = (unsigned)(matrix_random(&pace) % 4);
        if (draw == 0 && r->appended < MESSAGES) {
            append_next(s, r);
        } else if (draw == 1 && s->initiator && r->sent < MESSAGES) {
            OK(suite_move(&r->m[r->sent++]));
        } else if (PtlEQGet(s->eq, &event) == PTL_OK) {
            take_event(s, r, &event);
        } else if (suite_now_ms() > end) {
            FAIL("not all messages have come");
        }
    }
}

/* A get brought the bytes of the one entry or of the other. */
static void check_gets(const struct row *r)
{
    static unsigned char found[LONG], one[LONG], other[LONG];
    for (unsigned i = 0; i < MESSAGES; i++) {
        const struct suite_move *m = &r->m[i];
        if (m->call != CALL_GET) {
            continue;
        }
        region_forgive(&region[GET_SIDE], m->offset, m->length);
        region_wanted(&region[GET_SIDE], m->offset, found, m->length);
        region_wanted(&region[ENTRY], m->remote_offset, one, m->length);
        region_wanted(&region[OVERFLOW_ENTRY], m->remote_offset, other, m->length);
        CHECK(memcmp(found, one, m->length) == 0 || memcmp(found, other, m->length) == 0);
    }
    CHECK_REGION(&region[GET_SIDE]);
}

static void race_body(struct scene *s)
{
    static struct row row;
    struct row *r = &row;
    struct due due = {0};
    struct watch w;
    memset(r, 0, sizeof(*r));
    r->random = (uint64_t)s->c->number;
    draw_row(s, r);
    for (unsigned i = 0; i < REGIONS; i++) {
        region_make(&region[i], PLAIN, (size_t)MESSAGES * LONG, i + 1);
    }
    watch_begin(&w, s);
    if (s->initiator) {
        ptl_size_t length = region[PUT_SIDE].length;
        ptl_handle_md_t put = suite_md(s, region_start(&region[PUT_SIDE]), length, 0);
        ptl_handle_md_t get = suite_md(s, region_start(&region[GET_SIDE]), length, 0);
        for (unsigned i = 0; i < MESSAGES; i++) {
            r->m[i].md = r->m[i].call == CALL_GET ? get : put;
        }
    }
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, region_start(&region[OVERFLOW_ENTRY]),
                     region[OVERFLOW_ENTRY].length, PTL_ME_OP_PUT | PTL_ME_OP_GET, &of_all);
    }
    STEP();
    run_row(s, r);
    for (unsigned i = 0; s->initiator && i < MESSAGES; i++) {
        struct landing l = {&region[ENTRY], r->m[i].remote_offset, r->m[i].length,
                            PTL_NI_OK,      PTL_PRIORITY_LIST,     &of_all};
        if (r->m[i].call == CALL_PUT) {
            due_add(&due, send_event(&r->m[i]));
        }
        struct suite_event answer = answer_event(&r->m[i], &l);
        answer.list.looked_at = false; /* either */
        due_add(&due, answer);
    }
    TAKE(s->mdeq, &due);
    WATCH_END(&w);
    if (s->initiator) {
        check_gets(r);
    }
    if (s->target) {
        CHECK_REGION(&region[ENTRY]);
        CHECK_REGION(&region[OVERFLOW_ENTRY]);
    }
}

GENERATE(races)
{
    for (long row = 0; row < ROWS; row++) {
        suite_add_each(
            (struct suite_case){.rule = "3.12: an entry that is appended while a message comes "
                                        "takes it, by the one list or the other",
                                .body = race_body,
                                .number = row},
            ALL_KINDS, SELF | PAIR, "race.row%ld", row);
    }
}
