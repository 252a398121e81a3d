/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locally managed offsets, generated. A row of messages lands in one entry, each behind
 * the one before, in all shapes of memory.
 *
 *   fill      until the entry is full: the last one is cut, those behind it have no room
 *   min_free  until less than min_free is left: AUTO_UNLINK, and what follows is dropped
 *   unlink    the same on the overflow list: AUTO_FREE when no header refers to it any more
 *   headers   unexpected headers that an entry takes when it is appended, with and without
 *             LOCAL_INC_UH_RLENGTH
 */
#include "matrix_kit.h"

#include <stdlib.h>
#include <string.h>

enum row { FILL, MIN_FREE, UNLINK, ROWS };
static const char *const row_name[ROWS] = {"fill", "min_free", "unlink"};
enum mix { PUTS, GETS, MIXED, MIXES };
static const char *const mix_name[MIXES] = {"puts", "gets", "mixed"};

struct row_case {
    enum row row;
    enum mix mix;
    enum shape shape;
    size_t piece;
};

enum { FULL_AFTER = 5, ASKED_FOR = 12345, ROW_OPTIONS = PTL_ME_OP_PUT | PTL_ME_OP_GET };
static char of_entry, of_later, of_move;

static struct suite_move piece(struct scene *s, const struct row_case *c, unsigned i)
{
    bool get = c->mix == GETS || (c->mix == MIXED && i % 2 == 1);
    struct suite_move m = suite_move_to(s, get ? CALL_GET : CALL_PUT);
    m.offset = i * c->piece;
    m.length = c->piece;
    m.remote_offset = ASKED_FOR; /* not looked at */
    m.user_ptr = &of_move + i;
    m.ack = PTL_ACK_REQ;
    return m;
}

/* Half a piece is left behind FULL_AFTER pieces; one piece earlier it is exactly this much, which
 * is enough. */
static size_t min_free(const struct row_case *c)
{
    return c->row == FILL ? 0 : c->piece + c->piece / 2;
}

static ptl_handle_me_t append_row(struct scene *s, const struct row_case *c, struct due *due)
{
    struct region *entry = &region[ENTRY];
    unsigned align = c->piece % 2 == 0 ? PTL_ME_MAY_ALIGN : 0; /* a permission, not used */
    ptl_me_t me = suite_entry(s, region_start(entry), region_units(entry),
                              ROW_OPTIONS | PTL_ME_MANAGE_LOCAL | region_option(entry) | align);
    me.min_free = min_free(c);
    ptl_handle_me_t handle =
        suite_append(s, c->row == UNLINK ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST, &me, &of_entry);
    due_add(due, entry_event(s, PTL_EVENT_LINK, &of_entry));
    TAKE(s->eq, due);
    return handle;
}

/* One message of the row, as both sides see it. */
static void run_piece(struct scene *s, const struct row_case *c, const struct suite_move *m,
                      const struct landing *l, bool last)
{
    struct due due = {0};
    struct region *md = &region[m->call == CALL_GET ? GET_SIDE : PUT_SIDE];
    if (s->initiator) {
        OK(suite_move(m));
        if (m->call == CALL_PUT) {
            due_add(&due, send_event(m));
        }
        due_add(&due, answer_event(m, l));
        TAKE(s->mdeq, &due);
    }
    if (s->target && l->fail == PTL_NI_OK) {
        due_add(&due, landing_event(s, m, l));
        due_then(&due);
        if (last) {
            due_add(&due, entry_event(s, PTL_EVENT_AUTO_UNLINK, &of_entry));
        }
        TAKE(s->eq, &due);
    }
    landing_move(m, md, md, &region[ENTRY], l);
}

/* A later entry takes the headers of the whole row, oldest first, and only then the
 * entry is free. */
static void take_headers(struct scene *s, const struct suite_move *m, const struct landing *l,
                         unsigned n)
{
    struct due due = {0};
    ptl_me_t me = suite_entry(s, NULL, 0, ROW_OPTIONS | PTL_ME_EVENT_LINK_DISABLE);
    suite_append(s, PTL_PRIORITY_LIST, &me, &of_later);
    for (unsigned i = 0; i < n; i++) {
        due_add(&due, landing_overflow(s, &m[i], &l[i], &of_later));
        due_then(&due);
    }
    due_add(&due, entry_event(s, PTL_EVENT_AUTO_FREE, &of_entry));
    TAKE(s->eq, &due);
}

/* A row under way: the messages so far, and where the next one lands. */
enum { IN_ROW = FULL_AFTER + 3 };
struct progress {
    struct suite_move m[IN_ROW];
    struct landing l[IN_ROW];
    ptl_handle_md_t put_md, get_md;
    ptl_handle_me_t handle;
    size_t at;
    unsigned landed;
    bool linked;
};

static void begin_row(struct scene *s, const struct row_case *c, struct progress *p)
{
    struct due due = {0};
    struct region *put = &region[PUT_SIDE], *get = &region[GET_SIDE];
    *p = (struct progress){.linked = true};
    if (s->initiator) {
        p->put_md = suite_md(s, region_start(put), region_units(put), 0);
        p->get_md = suite_md(s, region_start(get), region_units(get), 0);
    }
    if (s->target) {
        p->handle = append_row(s, c, &due);
    }
    STEP();
}

static void next_piece(struct scene *s, const struct row_case *c, struct progress *p, unsigned i)
{
    struct region *entry = &region[ENTRY];
    size_t left = entry->length - p->at;
    struct suite_move *m = &p->m[i];
    *m = piece(s, c, i);
    m->md = m->call == CALL_GET ? p->get_md : p->put_md;
    p->l[i] = (struct landing){entry,
                               p->at,
                               left < c->piece ? left : c->piece,
                               PTL_NI_OK,
                               c->row == UNLINK ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST,
                               &of_entry};
    if (!p->linked) {
        p->l[i].fail = PTL_NI_DROPPED;
        p->l[i].mlength = 0;
    }
    p->landed += p->linked;
    p->at += p->l[i].mlength;
    bool last = p->linked && entry->length - p->at < min_free(c);
    run_piece(s, c, m, &p->l[i], last);
    p->linked = p->linked && !last;
}

static void row_body(struct scene *s)
{
    const struct row_case *c = s->c->data;
    struct progress p;
    struct watch w;
    struct region *put = &region[PUT_SIDE], *get = &region[GET_SIDE], *entry = &region[ENTRY];
    region_make(put, PLAIN, IN_ROW * c->piece, 1);
    region_make(get, PLAIN, IN_ROW * c->piece, 2);
    region_make(entry, c->shape, FULL_AFTER * c->piece + c->piece / 2, 3);
    watch_begin(&w, s);
    begin_row(s, c, &p);
    for (unsigned i = 0; i < IN_ROW; i++) {
        next_piece(s, c, &p, i);
    }
    WATCH_END(&w, .drops = (int)(IN_ROW - p.landed));
    CHECK_EQ(p.landed, c->row == FILL ? IN_ROW : FULL_AFTER);
    if (s->initiator) {
        CHECK_REGION(put);
        CHECK_REGION(get);
    }
    if (s->target) {
        CHECK_REGION(entry);
        if (c->row == UNLINK) {
            take_headers(s, p.m, p.l, p.landed);
        }
        if (c->row != FILL) {
            CODE(suite_unlink_code(s, p.handle), PTL_ARG_INVALID);
        }
    }
    WATCH_END(&w, .drops = (int)(IN_ROW - p.landed));
}

/* ---- Headers taken by an append --------------------------------------------- */

struct headers_case {
    bool advance;  /* LOCAL_INC_UH_RLENGTH */
    unsigned free; /* min_free is reached by this header, counted from 1; 0: by none */
    bool once;
    size_t piece;
};

enum { HEADERS = 4, ROOM = 6 };

static void send_headers(struct scene *s, const struct headers_case *c, struct suite_move *m,
                         struct landing *l)
{
    struct due due = {0};
    ptl_handle_md_t md = PTL_INVALID_HANDLE;
    if (s->initiator) {
        md = suite_md(s, region_start(&region[PUT_SIDE]), region_units(&region[PUT_SIDE]), 0);
    }
    if (s->target) {
        struct region *over = &region[OVERFLOW_ENTRY];
        suite_target(s, PTL_OVERFLOW_LIST, region_start(over), region_units(over), PTL_ME_OP_PUT,
                     &of_entry);
    }
    STEP();
    for (unsigned i = 0; i < HEADERS + 1; i++) {
        m[i] = suite_move_to(s, CALL_PUT);
        m[i].md = md;
        m[i].length = c->piece;
        m[i].user_ptr = &of_move;
        m[i].ack = PTL_ACK_REQ;
        /* half of each is lost in the overflow entry: what counts is what was asked for */
        l[i] = (struct landing){&region[OVERFLOW_ENTRY], 0,        c->piece / 2, PTL_NI_OK,
                                PTL_OVERFLOW_LIST,       &of_entry};
    }
    for (unsigned i = 0; i < HEADERS; i++) {
        landing_move(&m[i], &region[PUT_SIDE], &region[PUT_SIDE], &region[OVERFLOW_ENTRY], &l[i]);
        if (s->initiator) {
            OK(suite_move(&m[i]));
            due_add(&due, send_event(&m[i]));
            due_add(&due, answer_event(&m[i], &l[i]));
            TAKE(s->mdeq, &due);
        }
        if (s->target) {
            due_add(&due, landing_event(s, &m[i], &l[i]));
            TAKE(s->eq, &due);
        }
    }
}

/* Appends the entry; gives how many headers it took, and whether it was linked. */
static unsigned append_to_headers(struct scene *s, const struct headers_case *c,
                                  const struct suite_move *m, const struct landing *l, bool *linked)
{
    struct due due = {0};
    struct region *entry = &region[ENTRY];
    unsigned taken = c->once ? 1 : c->advance && c->free != 0 ? c->free : HEADERS;
    *linked = !c->once && !(c->advance && c->free != 0);
    if (!s->target) {
        return taken;
    }
    unsigned options = PTL_ME_OP_PUT | PTL_ME_MANAGE_LOCAL | (c->once ? PTL_ME_USE_ONCE : 0) |
                       (c->advance ? PTL_ME_LOCAL_INC_UH_RLENGTH : 0) | region_option(entry);
    ptl_me_t me = suite_entry(s, region_start(entry), region_units(entry), options);
    /* `free` pieces leave less than this, one piece less leaves enough */
    me.min_free = c->free == 0 ? 0 : entry->length - c->free * c->piece + 1;
    suite_append(s, PTL_PRIORITY_LIST, &me, &of_later);
    for (unsigned i = 0; i < taken; i++) {
        due_add(&due, landing_overflow(s, &m[i], &l[i], &of_later));
        due_then(&due);
    }
    due_add(&due, entry_event(s, *linked ? PTL_EVENT_LINK : PTL_EVENT_AUTO_UNLINK, &of_later));
    TAKE(s->eq, &due);
    return taken;
}

/* The headers that nobody took are still there, oldest first. */
static void headers_left(struct scene *s, const struct suite_move *m, const struct landing *l,
                         unsigned taken)
{
    struct due due = {0};
    ptl_me_t all = suite_entry(s, NULL, 0, PTL_ME_OP_PUT);
    OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_DELETE, &all, &of_move));
    for (unsigned i = taken; i < HEADERS; i++) {
        due_add(&due, landing_overflow(s, &m[i], &l[i], &of_move));
        due_then(&due);
    }
    struct suite_event end = entry_event(s, PTL_EVENT_SEARCH, &of_move);
    end.fail = PTL_NI_NO_MATCH;
    if (taken == HEADERS) {
        due_add(&due, end);
    }
    TAKE(s->eq, &due);
}

static void headers_body(struct scene *s)
{
    const struct headers_case *c = s->c->data;
    struct suite_move m[HEADERS + 1];
    struct landing l[HEADERS + 1];
    struct due due = {0};
    struct watch w;
    bool linked;
    region_make(&region[PUT_SIDE], PLAIN, c->piece, 1);
    region_make(&region[OVERFLOW_ENTRY], PLAIN, c->piece / 2, 2);
    region_make(&region[ENTRY], c->free % 2 == 0 ? PLAIN : UNEVEN, ROOM * c->piece, 3);
    watch_begin(&w, s);
    send_headers(s, c, m, l);
    WATCH_END(&w);
    unsigned taken = append_to_headers(s, c, m, l, &linked);
    STEP();
    if (linked) { /* the next message lands behind what the headers asked for, or in front */
        l[HEADERS] = (struct landing){&region[ENTRY],    c->advance ? HEADERS * c->piece : 0,
                                      c->piece,          PTL_NI_OK,
                                      PTL_PRIORITY_LIST, &of_later};
        landing_move(&m[HEADERS], &region[PUT_SIDE], &region[PUT_SIDE], &region[ENTRY],
                     &l[HEADERS]);
        if (s->initiator) {
            OK(suite_move(&m[HEADERS]));
            due_add(&due, send_event(&m[HEADERS]));
            due_add(&due, answer_event(&m[HEADERS], &l[HEADERS]));
            TAKE(s->mdeq, &due);
        }
        if (s->target) {
            due_add(&due, landing_event(s, &m[HEADERS], &l[HEADERS]));
            /* min_free counts from here on, whoever advanced the offset */
            TAKE(s->eq, &due);
        }
    }
    WATCH_END(&w);
    if (s->target) {
        headers_left(s, m, l, taken);
        CHECK_REGION(&region[ENTRY]);
        CHECK_REGION(&region[OVERFLOW_ENTRY]);
    }
    WATCH_END(&w);
}

/* ---- The matrix ------------------------------------------------------------- */

static const char *const row_rule[ROWS] = {
    "3.12: with MANAGE_LOCAL messages land one behind the other until the entry is full",
    "3.12: an entry with less than min_free left is unlinked, with AUTO_UNLINK",
    "3.12: an overflow entry below min_free is unlinked, and free when its headers are taken"};

static void *keep(const void *c, size_t size)
{
    void *copy = malloc(size);
    if (copy == NULL) {
        abort();
    }
    return memcpy(copy, c, size);
}

static void add_row(struct row_case c)
{
    suite_add_each(
        (struct suite_case){.rule = row_rule[c.row], .body = row_body, .data = keep(&c, sizeof(c))},
        MATCHING_KINDS, SELF | PAIR, "manage.%s.%s.%s.%zu", row_name[c.row], mix_name[c.mix],
        shape_name[c.shape], c.piece);
}

static void add_headers(struct headers_case c)
{
    const char *rule =
        c.advance ? "3.12: with LOCAL_INC_UH_RLENGTH headers advance the offset by their rlength"
                  : "3.12: without LOCAL_INC_UH_RLENGTH headers do not advance the offset";
    suite_add_each(
        (struct suite_case){.rule = rule, .body = headers_body, .data = keep(&c, sizeof(c))},
        MATCHING_KINDS, SELF | PAIR, "manage.headers.%s.%s.free%u.%zu",
        c.advance ? "advance" : "stay", c.once ? "once" : "all", c.free, c.piece);
}

GENERATE(manages)
{
    static const size_t pieces[] = {2, 7, 100, 1500, 4096};
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        for (enum shape shape = 0; shape < SHAPES; shape++) {
            for (enum row row = 0; row < ROWS; row++) {
                for (enum mix mix = 0; mix < MIXES; mix++) {
                    add_row((struct row_case){row, mix, shape, pieces[i]});
                }
            }
        }
        for (unsigned free = 0; free <= HEADERS; free++) {
            add_headers((struct headers_case){true, free, false, pieces[i]});
        }
        add_headers((struct headers_case){false, 0, false, pieces[i]});
        add_headers((struct headers_case){false, 0, true, pieces[i]});
        add_headers((struct headers_case){true, 0, true, pieces[i]});
    }
}
