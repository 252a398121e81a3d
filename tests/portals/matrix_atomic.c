/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics, generated: every legal pair of operation and type, by every call that takes it, to
 * oneself and to another process, against the arithmetic of matrix_model.h. The forms:
 *
 *   each      every pair of values that the model has for the type, one element at a time;
 *             CSWAP... and MSWAP with every pair of target and operand
 *   several   some elements at once, from an unaligned place of the MD
 *   most      as many as the interface allows
 *   cut1,     the entry ends one byte, or all but one, behind the begin of an element: that one
 *   cutN      stays as it is
 *   parts     MDs and entry are PTL_IOVEC with parts that cut elements
 */
#include "matrix_kit.h"
#include "matrix_model.h"

#include <stdlib.h>

enum form { EACH, SEVERAL, MOST, CUT_ONE, CUT_MOST, PARTS, FORMS };
static const char *const form_name[FORMS] = {"each", "several", "most", "cut1", "cutN", "parts"};

struct atomic_case {
    enum suite_call call;
    ptl_op_t op;
    ptl_datatype_t type;
    enum form form;
};

enum { SOME = 5, MANY = 40, GET_AT = 7, PUT_AT = 3, SKIPPED = 2 };
#define HDR_DATA UINT64_C(0x1122334455667788)

static char of_move, of_entry;

/* CSWAP... and MSWAP take one element only. */
static bool takes_operand(ptl_op_t op)
{
    return op >= PTL_CSWAP && op <= PTL_MSWAP;
}

static size_t elements(const struct scene *s, const struct atomic_case *c)
{
    size_t most = move_limit(s, c->call) / suite_type_size(c->type);
    size_t wanted = c->form == MOST ? most : c->form == PARTS ? MANY : SOME;
    if (c->form == EACH) {
        return (size_t)model_values(c->op, c->type) * model_values(c->op, c->type);
    }
    if (takes_operand(c->op)) {
        return 1;
    }
    return wanted < most ? wanted : most;
}

/* Regions for `n` elements of which the message moves whole ones, `kept` bytes of the entry. */
static void make_regions(const struct atomic_case *c, size_t n, size_t kept)
{
    size_t size = suite_type_size(c->type);
    bool parts = c->form == PARTS;
    unsigned values = model_values(c->op, c->type);
    region_make(&region[PUT_SIDE], parts ? SMALL : PLAIN, PUT_AT + n * size, 1);
    region_make(&region[GET_SIDE], parts ? UNEVEN : PLAIN, GET_AT + n * size, 2);
    region_make(&region[ENTRY], parts ? SMALL : PLAIN, SKIPPED * size + kept, 3);
    for (size_t e = 0; e < n; e++) {
        unsigned char data[MODEL_ELEMENT], target[MODEL_ELEMENT];
        unsigned i = c->form == EACH ? (unsigned)(e / values) : (unsigned)e;
        unsigned j = c->form == EACH ? (unsigned)(e % values) : (unsigned)(3 * e + 1);
        model_value(c->op, c->type, i, target);
        model_value(c->op, c->type, takes_operand(c->op) ? i + j + 1 : j, data);
        region_put(&region[PUT_SIDE], PUT_AT + e * size, data, size);
        if ((e + 1) * size <= kept) {
            region_put(&region[ENTRY], (SKIPPED + e) * size, target, size);
        }
    }
}

static struct suite_move fill_move(struct scene *s, const struct atomic_case *c)
{
    struct suite_move m = suite_move_to(s, c->call);
    m.ack = c->call == CALL_ATOMIC ? PTL_ACK_REQ : PTL_NO_ACK_REQ;
    m.user_ptr = &of_move;
    m.hdr_data = HDR_DATA;
    m.op = c->op;
    m.type = c->type;
    if (s->initiator) {
        struct region *put = &region[PUT_SIDE], *get = &region[GET_SIDE];
        m.md = suite_md(s, region_start(put), region_units(put), region_option(put));
        m.get_md = suite_md(s, region_start(get), region_units(get), region_option(get));
    }
    return m;
}

/* One message of `n` elements from element `at` on, of which the first `whole` fit. */
static void send(struct scene *s, struct suite_move m, size_t at, size_t n, size_t whole)
{
    struct due due = {0};
    size_t size = suite_type_size(m.type);
    m.offset = PUT_AT + at * size;
    m.get_offset = GET_AT + at * size;
    m.remote_offset = (SKIPPED + at) * size;
    m.length = n * size;
    struct landing l = {&region[ENTRY], m.remote_offset,   whole * size,
                        PTL_NI_OK,      PTL_PRIORITY_LIST, &of_entry};
    if (s->initiator) {
        OK(suite_move(&m));
        due_add(&due, send_event(&m));
        due_add(&due, answer_event(&m, &l));
        TAKE(s->mdeq, &due);
    }
    if (s->target) {
        due_add(&due, landing_event(s, &m, &l));
        TAKE(s->eq, &due);
    }
    /* behind the message: padding is whatever it came to be */
    landing_move(&m, &region[PUT_SIDE], &region[GET_SIDE], &region[ENTRY], &l);
}

static void send_each(struct scene *s, struct suite_move m, size_t n)
{
    unsigned values = model_values(m.op, m.type);
    for (size_t e = 0; e < n; e++) {
        unsigned char operand[MODEL_ELEMENT];
        model_value(m.op, m.type, (unsigned)(e % values), operand);
        m.operand = takes_operand(m.op) ? operand : NULL;
        send(s, m, e, 1, 1);
    }
}

static void atomic_body(struct scene *s)
{
    const struct atomic_case *c = s->c->data;
    struct watch w;
    unsigned char operand[MODEL_ELEMENT];
    size_t size = suite_type_size(c->type), n = elements(s, c);
    bool cut = c->form == CUT_ONE || c->form == CUT_MOST;
    size_t whole = !cut ? n : takes_operand(c->op) ? 0 : n - 2;
    size_t extra = c->form == CUT_ONE ? 1 : c->form == CUT_MOST ? size - 1 : 0;
    make_regions(c, n, whole * size + extra);
    watch_begin(&w, s);
    struct suite_move m = fill_move(s, c);
    if (s->target) {
        struct region *entry = &region[ENTRY];
        suite_target(s, PTL_PRIORITY_LIST, region_start(entry), region_units(entry),
                     PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES |
                         region_option(entry),
                     &of_entry);
    }
    STEP();
    if (c->form == EACH) {
        send_each(s, m, n);
    } else {
        model_value(c->op, c->type, 0, operand);
        m.operand = takes_operand(c->op) ? operand : NULL;
        send(s, m, 0, n, whole);
    }
    WATCH_END(&w);
    if (s->initiator) {
        CHECK_REGION(&region[PUT_SIDE]);
        CHECK_REGION(&region[GET_SIDE]);
    }
    if (s->target) {
        CHECK_REGION(&region[ENTRY]);
        COUNTED(s->ct, whole * size, 0);
    }
}

/* ---- The matrix ------------------------------------------------------------- */

static const char *rule(const struct atomic_case *c)
{
    switch (c->form) {
    case CUT_ONE:
    case CUT_MOST:
        return "3.15: an entry that ends within an element is left as it is there";
    case PARTS:
        return "3.15: elements may be cut by the parts of a PTL_IOVEC, on every side";
    case MOST:
        return "3.15: an atomic may be as long as the limit of the interface";
    default:
        return takes_operand(c->op)
                   ? "3.15: a conditional swap compares its operand with each target value"
                   : "3.15: the operation is done element by element";
    }
}

static bool exists(const struct atomic_case *c)
{
    bool one = takes_operand(c->op);
    switch (c->form) {
    case SEVERAL:
    case MOST:
        return !one;
    case CUT_ONE:
    case CUT_MOST:
        return suite_type_size(c->type) > (c->form == CUT_ONE ? 1 : 2);
    default:
        return true;
    }
}

static void add(struct atomic_case c)
{
    static unsigned number;
    if (!exists(&c)) {
        return;
    }
    struct atomic_case *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        abort();
    }
    *copy = c;
    suite_add_each((struct suite_case){.rule = rule(&c), .body = atomic_body, .data = copy},
                   matrix_spread(ALL_KINDS, number++), SELF | PAIR, "%s.%s.%s.%s",
                   suite_call_name[c.call], suite_op_name[c.op], suite_type_name[c.type],
                   form_name[c.form]);
}

GENERATE(atomics)
{
    for (enum suite_call call = CALL_ATOMIC; call < CALL_COUNT; call++) {
        for (ptl_op_t op = 0; op < PTL_OP_LAST; op++) {
            for (ptl_datatype_t type = 0; type < PTL_DATATYPE_LAST; type++) {
                for (enum form form = 0; suite_legal(call, op, type) && form < FORMS; form++) {
                    add((struct atomic_case){call, op, type, form});
                }
            }
        }
    }
}
