/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Order, generated: rows of random messages, none of which waits for the one before.
 *
 *   match   every message takes a use-once entry of its own: the i-th the i-th of the list
 *   data    all work on the same bytes, and give what they would one after the other, as far
 *           as the interface promises order (max_waw_ordered_size, max_war_ordered_size)
 *
 * Short ones pass long ones where they can: through another path, or because they need
 * no answer.
 */
#include "matrix_kit.h"

#include <stdlib.h>

enum { MESSAGES = 60, ROWS = 40, LONG = 9000, SHARED = 12000 };

static char of_move[MESSAGES], of_entry[MESSAGES];

struct row {
    struct suite_move m[MESSAGES];
    size_t at[MESSAGES]; /* of its own bytes in the put side and the get side */
};

static size_t draw_length(uint64_t *random, size_t most)
{
    static const size_t classes[] = {8, 100, 1100, 4200, LONG};
    size_t class = classes[matrix_random(random) % COUNT_OF(classes)];
    return matrix_random(random) % ((class < most ? class : most) + 1);
}

/* Draws the messages; those of the data row overlap in the entry. */
static void draw_row(struct scene *s, struct row *r, bool overlap)
{
    uint64_t random = (uint64_t)s->c->number;
    size_t total = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        enum suite_call call = (enum suite_call)(matrix_random(&random) % CALL_COUNT);
        struct suite_move *m = &r->m[i];
        *m = suite_move_to(s, call);
        size_t most = move_limit(s, call);
        m->length = draw_length(&random, most < LONG ? most : LONG);
        m->remote_offset = overlap ? matrix_random(&random) % (SHARED - m->length) : 0;
        m->user_ptr = &of_move[i];
        m->hdr_data = i;
        m->op = call == CALL_SWAP ? PTL_SWAP : matrix_random(&random) % 2 ? PTL_SUM : PTL_PROD;
        m->type = PTL_UINT8_T;
        m->ack = matrix_random(&random) % 2 ? PTL_ACK_REQ : PTL_NO_ACK_REQ;
        m->offset = m->get_offset = total;
        total += m->length;
    }
    region_make(&region[PUT_SIDE], PLAIN, total, (unsigned)s->c->number + 1);
    region_make(&region[GET_SIDE], PLAIN, total, 2);
}

static void bind_row(struct scene *s, struct row *r)
{
    struct region *put = &region[PUT_SIDE], *get = &region[GET_SIDE];
    ptl_handle_md_t put_md = suite_md(s, region_start(put), put->length, 0);
    ptl_handle_md_t get_md = suite_md(s, region_start(get), get->length, 0);
    for (unsigned i = 0; i < MESSAGES; i++) {
        r->m[i].get_md = get_md;
        r->m[i].md = r->m[i].call == CALL_GET ? get_md : put_md;
    }
}

static void send_row(struct scene *s, struct row *r, const struct landing *l)
{
    static struct due due;
    for (unsigned i = 0; i < MESSAGES; i++) {
        OK(suite_move(&r->m[i]));
    }
    due.n = due.group = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        if (move_puts(r->m[i].call)) {
            due_add(&due, send_event(&r->m[i]));
        }
        if (move_gets(r->m[i].call) || r->m[i].ack == PTL_ACK_REQ) {
            due_add(&due, answer_event(&r->m[i], &l[i]));
        }
    }
    TAKE(s->mdeq, &due);
}

static void order_body(struct scene *s, bool overlap)
{
    static struct row row;
    static struct due due;
    struct landing l[MESSAGES];
    struct watch w;
    struct region *entry = &region[ENTRY];
    draw_row(s, &row, overlap);
    region_make(entry, PLAIN, overlap ? SHARED : (size_t)MESSAGES * LONG, 3);
    watch_begin(&w, s);
    if (s->initiator) {
        bind_row(s, &row);
    }
    unsigned options = PTL_ME_OP_PUT | PTL_ME_OP_GET;
    for (unsigned i = 0; i < MESSAGES && s->target && !overlap; i++) {
        suite_target(s, PTL_PRIORITY_LIST, region_at(entry, (size_t)i * LONG), LONG,
                     options | PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE, &of_entry[i]);
    }
    if (s->target && overlap) {
        suite_target(s, PTL_PRIORITY_LIST, region_start(entry), SHARED,
                     options | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM, &of_entry[0]);
    }
    STEP();
    for (unsigned i = 0; i < MESSAGES; i++) {
        size_t at = overlap ? row.m[i].remote_offset : (size_t)i * LONG;
        l[i] = (struct landing){
            entry, at, row.m[i].length, PTL_NI_OK, PTL_PRIORITY_LIST, &of_entry[overlap ? 0 : i]};
        landing_move(&row.m[i], &region[PUT_SIDE], &region[GET_SIDE], entry, &l[i]);
        struct suite_event e = landing_event(s, &row.m[i], &l[i]);
        if (!overlap) {
            due_add(&due, e);
            l[i].offset = 0; /* in the entry of its own, as the initiator is told */
        }
    }
    if (s->initiator) {
        send_row(s, &row, l);
    }
    if (s->target && !overlap) {
        TAKE(s->eq, &due);
    }
    due.n = 0;
    WATCH_END(&w);
    if (s->initiator) {
        CHECK_REGION(&region[GET_SIDE]);
    }
    if (s->target) {
        COUNTED(s->ct, overlap ? MESSAGES : 0, 0);
        CHECK_REGION(entry);
    }
}

static void match_order(struct scene *s)
{
    order_body(s, false);
}

static void data_order(struct scene *s)
{
    if (s->limits.max_waw_ordered_size < LONG || s->limits.max_war_ordered_size < LONG) {
        suite_skip("the interface does not promise this order");
    }
    order_body(s, true);
}

GENERATE(orders)
{
    struct suite_case match = {
        .rule = "3.15: messages between two processes are matched in the order of the calls",
        .body = match_order};
    struct suite_case data = {
        .rule = "3.6: up to the limits of the interface, data is ordered as the messages are",
        .body = data_order};
    for (long row = 0; row < ROWS; row++) {
        match.number = data.number = row;
        suite_add_each(match, ALL_KINDS, SELF | PAIR, "order.match.row%ld", row);
        suite_add_each(data, ALL_KINDS, SELF | PAIR, "order.data.row%ld", row);
    }
}
