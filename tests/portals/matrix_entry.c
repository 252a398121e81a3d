/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a target hears, generated: every set of the options of an entry that mask events,
 * with every set of those that count, along each way of a message through the lists.
 *
 *   priority    to an entry that stays
 *   once        to one that the message uses up
 *   overflow    to the overflow list, then an entry takes the header and is linked
 *   twice       the same with entries that are used up, both of them
 *   headerless  to the overflow list with UNEXPECTED_HDR_DISABLE: no header, used up, free
 *   refused     to an entry of another user: nothing at all
 *   quiet       overflow, on a portal table entry without event queue: only counts
 */
#include "matrix_kit.h"

#include <stdlib.h>

enum way { PRIORITY, ONCE, OVERFLOWED, TWICE, HEADERLESS, REFUSED, QUIET, WAYS };
static const char *const way_name[WAYS] = {"priority",   "once",    "overflow", "twice",
                                           "headerless", "refused", "quiet"};

static const struct {
    unsigned option;
    char letter;
} masks[] = {{PTL_ME_EVENT_LINK_DISABLE, 'l'},
             {PTL_ME_EVENT_COMM_DISABLE, 'c'},
             {PTL_ME_EVENT_SUCCESS_DISABLE, 's'},
             {PTL_ME_EVENT_OVER_DISABLE, 'o'},
             {PTL_ME_EVENT_UNLINK_DISABLE, 'u'}},
  counts[] = {
      {PTL_ME_EVENT_CT_COMM, 'C'}, {PTL_ME_EVENT_CT_OVERFLOW, 'O'}, {PTL_ME_EVENT_CT_BYTES, 'B'}};
enum { MASK_SETS = 1 << COUNT_OF(masks), COUNT_SETS = 1 << COUNT_OF(counts), QUIET_PT = 20 };

struct entry_case {
    enum suite_call call;
    enum way way;
    unsigned options;
};

enum { LENGTH = 48, LANDS = 32 };

static char of_move, of_entry, of_later;

static bool has(const struct entry_case *c, unsigned option)
{
    return (c->options & option) != 0;
}

static bool overflows(const struct entry_case *c)
{
    return c->way == OVERFLOWED || c->way == TWICE || c->way == HEADERLESS || c->way == QUIET;
}

static ptl_pt_index_t index_of(const struct entry_case *c)
{
    return c->way == QUIET ? QUIET_PT : SUITE_PT;
}

static ptl_handle_ct_t append(struct scene *s, const struct entry_case *c, ptl_list_t list,
                              bool once, void *user_ptr)
{
    ptl_handle_me_t handle;
    struct region *entry = &region[ENTRY];
    ptl_me_t me = suite_entry(s, region_start(entry), region_units(entry),
                              c->options | PTL_ME_OP_PUT | PTL_ME_OP_GET);
    me.ct_handle = suite_ct(s);
    if (once) {
        me.options |= PTL_ME_USE_ONCE;
    }
    if (c->way == HEADERLESS && list == PTL_OVERFLOW_LIST) {
        me.options |= PTL_ME_UNEXPECTED_HDR_DISABLE;
    }
    if (c->way == REFUSED) {
        me.uid = s->uid + 1;
    }
    OK(suite_append_code(s, index_of(c), list, &me, user_ptr, &handle));
    return me.ct_handle;
}

/* Events that the options leave. */
static void due_link(struct scene *s, const struct entry_case *c, struct due *due, void *user_ptr)
{
    if (c->way != QUIET && !has(c, PTL_ME_EVENT_LINK_DISABLE)) {
        due_add(due, entry_event(s, PTL_EVENT_LINK, user_ptr));
    }
}

static void due_unlink(struct scene *s, const struct entry_case *c, struct due *due, int type,
                       void *user_ptr)
{
    if (!has(c, PTL_ME_EVENT_UNLINK_DISABLE)) {
        due_add(due, entry_event(s, type, user_ptr));
    }
}

static void due_arrival(struct scene *s, const struct entry_case *c, struct due *due,
                        const struct suite_move *m, const struct landing *l)
{
    bool masked = has(c, PTL_ME_EVENT_COMM_DISABLE) || has(c, PTL_ME_EVENT_SUCCESS_DISABLE);
    if (c->way == QUIET || c->way == REFUSED) {
        return;
    }
    if (!masked) {
        due_add(due, landing_event(s, m, l));
    }
    due_then(due);
    if (c->way == ONCE || c->way == TWICE || c->way == HEADERLESS) {
        due_unlink(s, c, due, PTL_EVENT_AUTO_UNLINK, &of_entry);
    }
    due_then(due);
    if (c->way == HEADERLESS) {
        due_unlink(s, c, due, PTL_EVENT_AUTO_FREE, &of_entry);
    }
}

/* An entry for the priority list is appended behind the message. */
static void due_later(struct scene *s, const struct entry_case *c, struct due *due,
                      const struct suite_move *m, const struct landing *l)
{
    if (c->way == HEADERLESS) {
        due_link(s, c, due, &of_later);
        return;
    }
    bool masked = has(c, PTL_ME_EVENT_OVER_DISABLE) || has(c, PTL_ME_EVENT_SUCCESS_DISABLE);
    if (c->way != QUIET && !masked) {
        due_add(due, landing_overflow(s, m, l, &of_later));
    }
    due_then(due);
    if (c->way == TWICE) {
        due_unlink(s, c, due, PTL_EVENT_AUTO_UNLINK, &of_later);
        due_unlink(s, c, due, PTL_EVENT_AUTO_FREE, &of_entry);
    } else {
        due_link(s, c, due, &of_later);
    }
}

static ptl_size_t counted_as(const struct entry_case *c, unsigned option)
{
    return !has(c, option) ? 0 : has(c, PTL_ME_EVENT_CT_BYTES) ? LANDS : 1;
}

static void send(struct scene *s, const struct suite_move *m, const struct landing *l)
{
    struct due due = {0};
    OK(suite_move(m));
    if (move_puts(m->call)) {
        due_add(&due, send_event(m));
    }
    due_add(&due, answer_event(m, l));
    TAKE(s->mdeq, &due);
}

static struct suite_move fill_move(struct scene *s, const struct entry_case *c)
{
    struct suite_move m = suite_move_to(s, c->call);
    m.length = LENGTH;
    m.pt = index_of(c);
    m.user_ptr = &of_move;
    m.ack = PTL_ACK_REQ;
    m.op = PTL_SUM;
    m.type = PTL_INT32_T;
    if (s->initiator) {
        struct region *put = &region[PUT_SIDE], *get = &region[GET_SIDE];
        ptl_handle_md_t put_md = suite_md(s, region_start(put), LENGTH, 0);
        m.get_md = suite_md(s, region_start(get), LENGTH, 0);
        m.md = c->call == CALL_GET ? m.get_md : put_md;
    }
    return m;
}

static void entry_body(struct scene *s)
{
    const struct entry_case *c = s->c->data;
    struct due due = {0};
    struct watch w;
    bool refused = c->way == REFUSED, once = c->way == ONCE || c->way == TWICE;
    ptl_list_t list = overflows(c) ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST;
    struct landing l = {&region[ENTRY], 0, LANDS, PTL_NI_OK, list, &of_entry};
    if (refused) {
        l.fail = PTL_NI_PERM_VIOLATION;
        l.mlength = 0;
    }
    region_make(&region[PUT_SIDE], PLAIN, LENGTH, 1);
    region_make(&region[GET_SIDE], PLAIN, LENGTH, 2);
    region_make(&region[ENTRY], PLAIN, LANDS, 3);
    watch_begin(&w, s);
    struct suite_move m = fill_move(s, c);
    ptl_handle_ct_t first = PTL_CT_NONE, later = PTL_CT_NONE;
    if (s->target) {
        if (c->way == QUIET) {
            suite_pt(s, 0, PTL_EQ_NONE, QUIET_PT);
        }
        first = append(s, c, list, once || c->way == HEADERLESS, &of_entry);
        due_link(s, c, &due, &of_entry);
        TAKE(s->eq, &due);
    }
    STEP();
    landing_move(&m, &region[PUT_SIDE], &region[GET_SIDE], &region[ENTRY], &l);
    if (s->initiator) {
        send(s, &m, &l);
    }
    if (s->target) {
        due_arrival(s, c, &due, &m, &l);
        TAKE(s->eq, &due);
    }
    WATCH_END(&w, .permissions = refused);
    if (s->target) {
        COUNTED(first, refused ? 0 : counted_as(c, PTL_ME_EVENT_CT_COMM), 0);
        CHECK_REGION(&region[ENTRY]);
        if (overflows(c)) {
            later = append(s, c, PTL_PRIORITY_LIST, once, &of_later);
            due_later(s, c, &due, &m, &l);
            TAKE(s->eq, &due);
            COUNTED(later, c->way == HEADERLESS ? 0 : counted_as(c, PTL_ME_EVENT_CT_OVERFLOW), 0);
            COUNTED(first, counted_as(c, PTL_ME_EVENT_CT_COMM), 0);
        }
    }
    WATCH_END(&w, .permissions = refused);
    if (s->initiator) {
        CHECK_REGION(&region[GET_SIDE]);
    }
}

/* ---- The matrix ------------------------------------------------------------- */

static const char *const rules[WAYS] = {
    "3.12: an entry's options mask its LINK and communication events, and choose its counts",
    "3.13: an entry used up gives AUTO_UNLINK behind its event, unless masked",
    "3.13: ..._OVERFLOW, masked by OVER_DISABLE, and CT_OVERFLOW belong to the later entry",
    "3.13: AUTO_FREE of an overflow entry comes when its last header is taken, unless masked",
    "3.12: an overflow entry with UNEXPECTED_HDR_DISABLE keeps no header and is free at once",
    "3.12: a message refused at its entry gives no event and no count at the target",
    "3.14: entries count although their portal table entry has no event queue"};

static unsigned pick(char *letters, unsigned set, const void *table, unsigned size)
{
    const struct {
        unsigned option;
        char letter;
    } *choice = table;
    unsigned options = 0;
    for (unsigned i = 0; i < size; i++) {
        if (set >> i & 1) {
            options |= choice[i].option;
            *letters++ = choice[i].letter;
        }
    }
    *letters = '\0';
    return options;
}

static void add(enum suite_call call, enum way way, unsigned mask_set, unsigned count_set)
{
    static unsigned number;
    char mask_letters[8], count_letters[8];
    struct entry_case *c = malloc(sizeof(*c));
    if (c == NULL) {
        abort();
    }
    *c = (struct entry_case){call, way,
                             pick(mask_letters, mask_set, masks, COUNT_OF(masks)) |
                                 pick(count_letters, count_set, counts, COUNT_OF(counts))};
    suite_add_each((struct suite_case){.rule = rules[way], .body = entry_body, .data = c},
                   matrix_spread(ALL_KINDS, number++), SELF | PAIR, "entry.%s.%s.%s%s",
                   suite_call_name[call], way_name[way],
                   mask_set + count_set == 0 ? "none" : mask_letters, count_letters);
}

GENERATE(entries)
{
    for (enum way way = 0; way < WAYS; way++) {
        for (unsigned set = 0; set < MASK_SETS * COUNT_SETS; set++) {
            unsigned mask_set = set / COUNT_SETS, count_set = set % COUNT_SETS;
            add(CALL_PUT, way, mask_set, count_set);
            /* the others share the machinery: a part of the sets, another one for each */
            for (enum suite_call call = CALL_GET; call <= CALL_FETCH; call++) {
                if ((mask_set + count_set + call) % 4 == 0) {
                    add(call, way, mask_set, count_set);
                }
            }
        }
    }
}
