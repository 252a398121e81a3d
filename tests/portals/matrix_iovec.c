/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PTL_IOVEC, generated: puts and gets between an MD and an entry that are laid out in all
 * shapes of matrix_kit.h, with every shape of the other side. Offsets are bytes in the parts
 * laid end to end; the bytes between the parts belong to somebody else, and the list of parts
 * to the program again as soon as the call returns.
 *
 *   front    from byte 0 to byte 0
 *   middle   from within a part to within another, beyond the first packet
 *   beyond   the entry is too short: the message is cut
 */
#include "matrix_kit.h"

#include <stdlib.h>
#include <string.h>

enum where { AT_FRONT, AT_MIDDLE, BEYOND, WHERES };
static const char *const where_name[WHERES] = {"front", "middle", "beyond"};

struct iovec_case {
    enum suite_call call;
    enum shape md, entry;
    enum where where;
    size_t length;
};

enum { LOCAL_AT = 37, REMOTE_AT = 4093, BEHIND = 11, SHORT_AT = 500 };

static char of_move, of_entry;

/* Lays out both sides; gives the place in the entry and how much of the message fits. */
static struct landing lay_out(const struct iovec_case *c, size_t *local_at)
{
    bool middle = c->where == AT_MIDDLE, beyond = c->where == BEYOND;
    struct landing l = {&region[ENTRY], 0, c->length, PTL_NI_OK, PTL_PRIORITY_LIST, &of_entry};
    l.offset = middle ? REMOTE_AT : beyond ? SHORT_AT : 0;
    l.mlength = beyond ? c->length / 2 : c->length;
    *local_at = middle ? LOCAL_AT : 0;
    size_t md_length = *local_at + c->length + (middle ? BEHIND : 0);
    region_make(&region[PUT_SIDE], c->md, md_length, 1);
    region_make(&region[GET_SIDE], c->md, md_length, 2);
    region_make(&region[ENTRY], c->entry, l.offset + l.mlength + (middle ? BEHIND : 0), 3);
    return l;
}

/* A copy of the list of parts, which the library must not look at again. */
static ptl_iovec_t list[REGION_PARTS];

static void *list_of(struct region *r)
{
    return r->iovec ? memcpy(list, r->part, r->count * sizeof(list[0])) : region_start(r);
}

static void spoil_list(void)
{
    memset(list, 0x5a, sizeof(list));
}

static void iovec_body(struct scene *s)
{
    const struct iovec_case *c = s->c->data;
    struct due due = {0};
    struct watch w;
    struct suite_move m = suite_move_to(s, c->call);
    struct landing l = lay_out(c, &m.offset);
    struct region *md = &region[c->call == CALL_PUT ? PUT_SIDE : GET_SIDE], *entry = &region[ENTRY];
    m.length = c->length;
    m.remote_offset = l.offset;
    m.user_ptr = &of_move;
    m.ack = PTL_ACK_REQ;
    watch_begin(&w, s);
    if (s->initiator) {
        m.md = suite_md(s, list_of(md), region_units(md), region_option(md));
        spoil_list();
    }
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, list_of(entry), region_units(entry),
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | region_option(entry), &of_entry);
        spoil_list();
    }
    STEP();
    landing_move(&m, &region[PUT_SIDE], &region[GET_SIDE], entry, &l);
    if (s->initiator) {
        OK(suite_move(&m));
        if (c->call == CALL_PUT) {
            due_add(&due, send_event(&m));
        }
        due_add(&due, answer_event(&m, &l));
        TAKE(s->mdeq, &due);
    }
    if (s->target) {
        due_add(&due, landing_event(s, &m, &l));
        TAKE(s->eq, &due);
    }
    WATCH_END(&w);
    if (s->initiator) {
        CHECK_REGION(md);
    }
    if (s->target) {
        CHECK_REGION(entry);
    }
}

static void add(struct iovec_case c)
{
    static unsigned number;
    struct iovec_case *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        abort();
    }
    *copy = c;
    const char *rule =
        c.where == BEYOND ? "3.12: an entry of many parts truncates at the sum of their lengths"
        : c.call == CALL_PUT
            ? "3.10: PTL_IOVEC: a put gathers the parts of the MD and scatters to the entry"
            : "3.10: PTL_IOVEC: a get gathers the parts of the entry and scatters to the MD";
    suite_add_each((struct suite_case){.rule = rule, .body = iovec_body, .data = copy},
                   matrix_spread(ALL_KINDS, number++), SELF | PAIR, "iovec.%s.%s_%s.%s.%zu",
                   suite_call_name[c.call], shape_name[c.md], shape_name[c.entry],
                   where_name[c.where], c.length);
}

GENERATE(iovecs)
{
    static const size_t lengths[] = {0, 1, 100, 1024, 4097, 20000};
    for (enum shape md = 0; md < SHAPES; md++) {
        for (enum shape entry = 0; entry < SHAPES; entry++) {
            for (enum where where = 0; where < WHERES; where++) {
                for (size_t i = 0; i < COUNT_OF(lengths) && (md != PLAIN || entry != PLAIN); i++) {
                    add((struct iovec_case){CALL_PUT, md, entry, where, lengths[i]});
                    add((struct iovec_case){CALL_GET, md, entry, where, lengths[i]});
                }
            }
        }
    }
}
