/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong arguments of data movement: a row spoils one, for each of the five calls and their
 * triggered forms that have it. The last part tries every (call, operation, type).
 */
#include "args_call.h"

#include <string.h>

#define ROWS(table_) ((int)(sizeof(table_) / sizeof((table_)[0])))

/* Which calls a row is for. */
enum {
    PUT = 1 << CALL_PUT,
    GET = 1 << CALL_GET,
    ATOMIC = 1 << CALL_ATOMIC,
    FETCH = 1 << CALL_FETCH,
    SWAP = 1 << CALL_SWAP,
    ACKED = PUT | ATOMIC,
    TWO_SIDED = FETCH | SWAP,
    TYPED = ATOMIC | FETCH | SWAP,
    EVERY = PUT | GET | TYPED
};

static const char *const functions[2][CALL_COUNT] = {
    {"PtlPut", "PtlGet", "PtlAtomic", "PtlFetchAtomic", "PtlSwap"},
    {"PtlTriggeredPut", "PtlTriggeredGet", "PtlTriggeredAtomic", "PtlTriggeredFetchAtomic",
     "PtlTriggeredSwap"},
};

/* ---- Ranges ---------------------------------------------------------------- */

/* The MDs of args_fill() are 1024 bytes, the length is 8. */
static void offset_at_end(struct scene *s, struct suite_move *m)
{
    m->offset = 1024;
}
static void offset_one_too_far(struct scene *s, struct suite_move *m)
{
    m->offset = 1017;
}
static void offset_max(struct scene *s, struct suite_move *m)
{
    m->offset = PTL_SIZE_MAX;
}
static void offset_wraps(struct scene *s, struct suite_move *m)
{
    m->offset = PTL_SIZE_MAX - 7;
}
static void get_offset_at_end(struct scene *s, struct suite_move *m)
{
    m->get_offset = 1024;
}
static void get_offset_one_too_far(struct scene *s, struct suite_move *m)
{
    m->get_offset = 1017;
}
static void get_offset_wraps(struct scene *s, struct suite_move *m)
{
    m->get_offset = PTL_SIZE_MAX - 7;
}
static void length_beyond_md(struct scene *s, struct suite_move *m)
{
    m->length = 1032;
}
static void length_max(struct scene *s, struct suite_move *m)
{
    m->length = PTL_SIZE_MAX - 7;
}
static void empty_beyond_md(struct scene *s, struct suite_move *m)
{
    m->length = 0;
    m->offset = 1025;
}

/* MDs of the whole address space: only the limit is in the way. */
static void whole_space(struct scene *s, struct suite_move *m)
{
    m->md = suite_md(s, NULL, PTL_SIZE_MAX, 0);
    m->get_md = suite_md(s, NULL, PTL_SIZE_MAX, 0);
    m->offset = (ptl_size_t)args_from;
    m->get_offset = (ptl_size_t)args_from;
}

static void length_above_limit(struct scene *s, struct suite_move *m)
{
    whole_space(s, m);
    m->length = m->call == CALL_PUT || m->call == CALL_GET ? s->limits.max_msg_size + 1
                : m->call == CALL_ATOMIC                   ? s->limits.max_atomic_size + 8
                                                           : s->limits.max_fetch_atomic_size + 8;
    if (m->call == CALL_SWAP) {
        m->op = PTL_SWAP; /* CSWAP has one element */
    }
    m->length &= m->call == CALL_PUT || m->call == CALL_GET ? PTL_SIZE_MAX : ~(ptl_size_t)7;
}

/* ---- Targets --------------------------------------------------------------- */

static void rank_is_map_size(struct scene *s, struct suite_move *m)
{
    m->to.rank = (ptl_rank_t)s->map_size;
}
static void rank_int_max(struct scene *s, struct suite_move *m)
{
    m->to.rank = 0x7fffffffu;
}
static void rank_any(struct scene *s, struct suite_move *m)
{
    m->to.rank = PTL_RANK_ANY;
}
static void rank_any_less_1(struct scene *s, struct suite_move *m)
{
    m->to.rank = PTL_RANK_ANY - 1;
}
static void pid_zero(struct scene *s, struct suite_move *m)
{
    m->to.phys.pid = 0;
}
static void pid_any(struct scene *s, struct suite_move *m)
{
    m->to.phys.pid = PTL_PID_ANY;
}
static void pid_65536(struct scene *s, struct suite_move *m)
{
    m->to.phys.pid = 65536;
}
static void pid_max(struct scene *s, struct suite_move *m)
{
    m->to.phys.pid = 0xffffffffu;
}
static void nid_any(struct scene *s, struct suite_move *m)
{
    m->to.phys.nid = PTL_NID_ANY;
}

static void index_65536(struct scene *s, struct suite_move *m)
{
    m->pt = 65536;
}
static void index_any(struct scene *s, struct suite_move *m)
{
    m->pt = PTL_PT_ANY;
}

/* ---- Acknowledgements ------------------------------------------------------ */

static void ack_4(struct scene *s, struct suite_move *m)
{
    m->ack = 4;
}
static void ack_5(struct scene *s, struct suite_move *m)
{
    m->ack = 5;
}
static void ack_128(struct scene *s, struct suite_move *m)
{
    m->ack = 128;
}
static void ack_255(struct scene *s, struct suite_move *m)
{
    m->ack = 255;
}
static void ack_without_queue(struct scene *s, struct suite_move *m)
{
    m->md = suite_md_with(s, args_from, 1024, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, s->mdct);
    m->ack = PTL_ACK_REQ;
}
static void ct_ack_without_counter(struct scene *s, struct suite_move *m)
{
    m->md = suite_md_with(s, args_from, 1024, 0, s->mdeq, PTL_CT_NONE);
    m->ack = PTL_CT_ACK_REQ;
}
static void ack_of_unreliable(struct scene *s, struct suite_move *m)
{
    m->md = suite_md(s, args_from, 1024, PTL_MD_UNRELIABLE);
    m->ack = PTL_ACK_REQ;
}

/* ---- Elements -------------------------------------------------------------- */

static void half_an_element(struct scene *s, struct suite_move *m)
{
    m->length = 4;
}
static void one_and_a_half(struct scene *s, struct suite_move *m)
{
    m->length = 12;
}
static void two_elements(struct scene *s, struct suite_move *m)
{
    m->length = 16;
}
static void two_elements_mswap(struct scene *s, struct suite_move *m)
{
    m->op = PTL_MSWAP;
    m->length = 16;
}
static void no_element(struct scene *s, struct suite_move *m)
{
    m->length = 0;
}
static void operand_null_mswap(struct scene *s, struct suite_move *m)
{
    m->op = PTL_MSWAP;
    m->operand = NULL;
}

static void operand_unmapped(struct scene *s, struct suite_move *m)
{
    m->operand = (void *)16;
}

struct row {
    const char *parameter, *way;
    unsigned calls, kinds;
    void (*spoil)(struct scene *s, struct suite_move *m);
    const char *rule;
};

static const char range[] = "3.15: a range that leaves the MD gives PTL_ARG_INVALID";
static const char limit[] = "3.15: a length above its limit gives PTL_ARG_INVALID";
static const char no_rank[] = "3.15: a rank outside the map gives PTL_ARG_INVALID";
static const char no_id[] = "3.15: a physical id that nobody can have gives PTL_ARG_INVALID";
static const char no_index[] = "3.15: an index that no portal table has gives PTL_ARG_INVALID";
static const char no_ack[] = "3.15: an unknown ack request gives PTL_ARG_INVALID";
static const char elements[] = "3.15: a length that is no multiple of the type gives "
                               "PTL_ARG_INVALID";
static const char one_element[] = "3.15: CSWAP and MSWAP work on exactly one element";

static const struct row rows[] = {
    {"local_offset", "at_end", EVERY, ALL_KINDS, offset_at_end, range},
    {"local_offset", "one_too_far", EVERY, ALL_KINDS, offset_one_too_far, range},
    {"local_offset", "max", EVERY, ALL_KINDS, offset_max, range},
    {"local_offset", "wraps", EVERY, ALL_KINDS, offset_wraps, range},
    {"local_offset", "empty_beyond", PUT | GET, ALL_KINDS, empty_beyond_md, range},
    {"local_get_offset", "at_end", TWO_SIDED, ALL_KINDS, get_offset_at_end, range},
    {"local_get_offset", "one_too_far", TWO_SIDED, ALL_KINDS, get_offset_one_too_far, range},
    {"local_get_offset", "wraps", TWO_SIDED, ALL_KINDS, get_offset_wraps, range},
    {"length", "beyond_md", PUT | GET | ATOMIC | FETCH, ALL_KINDS, length_beyond_md, range},
    {"length", "max", EVERY, ALL_KINDS, length_max, range},
    {"length", "above_limit", EVERY, ALL_KINDS, length_above_limit, limit},
    {"target_id", "rank_is_map_size", EVERY, LOGICAL_KINDS, rank_is_map_size, no_rank},
    {"target_id", "rank_int_max", EVERY, LOGICAL_KINDS, rank_int_max, no_rank},
    {"target_id", "rank_any", EVERY, LOGICAL_KINDS, rank_any, no_rank},
    {"target_id", "rank_any_less_1", EVERY, LOGICAL_KINDS, rank_any_less_1, no_rank},
    {"target_id", "pid_zero", EVERY, PHYSICAL_KINDS, pid_zero, no_id},
    {"target_id", "pid_any", EVERY, PHYSICAL_KINDS, pid_any, no_id},
    {"target_id", "pid_65536", EVERY, PHYSICAL_KINDS, pid_65536, no_id},
    {"target_id", "pid_max", EVERY, PHYSICAL_KINDS, pid_max, no_id},
    {"target_id", "nid_any", EVERY, PHYSICAL_KINDS, nid_any, no_id},
    {"pt_index", "65536", EVERY, ALL_KINDS, index_65536, no_index},
    {"pt_index", "any", EVERY, ALL_KINDS, index_any, no_index},
    {"ack_req", "4", ACKED, ALL_KINDS, ack_4, no_ack},
    {"ack_req", "5", ACKED, ALL_KINDS, ack_5, no_ack},
    {"ack_req", "128", ACKED, ALL_KINDS, ack_128, no_ack},
    {"ack_req", "255", ACKED, ALL_KINDS, ack_255, no_ack},
    {"ack_req", "ack_without_queue", ACKED, ALL_KINDS, ack_without_queue,
     "3.15: PTL_ACK_REQ needs an event queue in the MD"},
    {"ack_req", "ct_ack_without_counter", ACKED, ALL_KINDS, ct_ack_without_counter,
     "3.15: PTL_CT_ACK_REQ needs a counter in the MD"},
    {"ack_req", "ack_of_unreliable", ACKED, ALL_KINDS, ack_of_unreliable,
     "3.10: PTL_ACK_REQ does not go with PTL_MD_UNRELIABLE"},
    {"length", "half_an_element", TYPED, ALL_KINDS, half_an_element, elements},
    {"length", "one_and_a_half", TYPED, ALL_KINDS, one_and_a_half, elements},
    {"length", "two_elements_cswap", SWAP, ALL_KINDS, two_elements, one_element},
    {"length", "two_elements_mswap", SWAP, ALL_KINDS, two_elements_mswap, one_element},
    {"length", "no_element_cswap", SWAP, ALL_KINDS, no_element, one_element},
    {"operand", "null_mswap", SWAP, ALL_KINDS, operand_null_mswap,
     "3.15: an operation that needs an operand refuses a null one"},
    {"operand", "unmapped_cswap", SWAP, ALL_KINDS, operand_unmapped,
     "3.15: an operand that cannot be read gives PTL_ARG_INVALID"},
};

static void spoiled(struct scene *s)
{
    const struct row *r = s->c->data;
    enum suite_call which = (enum suite_call)(s->c->number / 2);
    const struct args_call *call = args_find(functions[s->c->number % 2][which]);
    struct args a;
    args_fill(s, call, &a);
    a.move.call = which;
    r->spoil(s, &a.move);
    args_refused(s, call, &a, PTL_ARG_INVALID);
}

GENERATE(spoiled_moves)
{
    for (int i = 0; i < ROWS(rows); i++) {
        for (int call = 0; call < CALL_COUNT; call++) {
            for (int triggered = 0; triggered < 2 && (rows[i].calls >> call & 1); triggered++) {
                struct suite_case c = {.rule = rows[i].rule,
                                       .body = spoiled,
                                       .data = &rows[i],
                                       .number = 2 * call + triggered};
                suite_add_each(c, rows[i].kinds, SELF, "%s.%s.%s", functions[triggered][call],
                               rows[i].parameter, rows[i].way);
            }
        }
    }
}

/* ---- Operations and types -------------------------------------------------- */

/* number: (triggered * CALL_COUNT + call) * 65536 + operation * 256 + type */
static void illegal_pair(struct scene *s)
{
    long n = s->c->number;
    enum suite_call which = (enum suite_call)(n / 65536 % CALL_COUNT);
    const struct args_call *call = args_find(functions[n / 65536 / CALL_COUNT][which]);
    struct args a;
    args_fill(s, call, &a);
    a.move.op = (ptl_op_t)(n / 256);
    a.move.type = (ptl_datatype_t)n;
    a.move.length = a.move.type < PTL_DATATYPE_LAST ? suite_type_size(a.move.type) : 8;
    args_refused(s, call, &a, PTL_ARG_INVALID);
}

static void add_pair(int triggered, int call, ptl_op_t op, const char *op_name, ptl_datatype_t type,
                     const char *type_name)
{
    struct suite_case c = {.rule =
                               "3.15: an operation that does not exist, is not for this call or "
                               "not for this type gives PTL_ARG_INVALID",
                           .body = illegal_pair,
                           .number = (triggered * CALL_COUNT + call) * 65536L + op * 256 + type};
    if (!suite_legal((enum suite_call)call, op, type)) {
        suite_add_each(c, triggered ? NL : MP, SELF, "%s.pair.%s_%s", functions[triggered][call],
                       op_name, type_name);
    }
}

GENERATE(illegal_pairs)
{
    for (int triggered = 0; triggered < 2; triggered++) {
        for (int call = CALL_ATOMIC; call <= CALL_SWAP; call++) {
            for (ptl_op_t op = 0; op < PTL_OP_LAST; op++) {
                for (ptl_datatype_t type = 0; type < PTL_DATATYPE_LAST; type++) {
                    add_pair(triggered, call, op, suite_op_name[op], type, suite_type_name[type]);
                }
                add_pair(triggered, call, op, suite_op_name[op], PTL_DATATYPE_LAST, "type_14");
                add_pair(triggered, call, op, suite_op_name[op], 255, "type_255");
            }
            add_pair(triggered, call, PTL_OP_LAST, "op_18", PTL_INT32_T, "int32");
            add_pair(triggered, call, 255, "op_255", PTL_INT32_T, "int32");
        }
    }
}
