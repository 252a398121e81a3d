/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong values: null pointers, indices, options, codes and counts. A row is a parameter with
 * one wrong value, or several that are tried one after another; args_move.c has those of
 * data movement, args_handle.c the handles.
 */
#include "args_call.h"

#include <string.h>

#define IN(field_) offsetof(struct args, field_)
#define ROWS(table_) ((int)(sizeof(table_) / sizeof((table_)[0])))

/* The call with one field of its arguments overwritten is refused. */
static void patched(struct scene *s, const char *function, size_t offset, const void *value,
                    size_t size, int expected)
{
    const struct args_call *call = args_find(function);
    struct args a;
    args_fill(s, call, &a);
    memcpy((char *)&a + offset, value, size);
    args_refused(s, call, &a, expected);
}

/* ---- Null pointers --------------------------------------------------------- */

struct pointer {
    const char *function, *name;
    size_t offset;
};

static const struct pointer pointers[] = {
    {"PtlNIInit", "ni_handle", IN(handle_out)},
    {"PtlNIStatus", "status", IN(status_out)},
    {"PtlNIHandle", "ni_handle", IN(handle_out)},
    {"PtlSetMap", "mapping", IN(map_at)},
    {"PtlGetMap", "mapping", IN(map_out)},
    {"PtlGetMap", "actual_map_size", IN(map_size_out)},
    {"PtlPTAlloc", "pt_index", IN(index_out)},
    {"PtlGetUid", "uid", IN(uid_out)},
    {"PtlGetId", "id", IN(id_out)},
    {"PtlGetPhysId", "id", IN(id_out)},
    {"PtlMDBind", "md", IN(md_at)},
    {"PtlMDBind", "md_handle", IN(handle_out)},
    {"PtlLEAppend", "le", IN(me_at)},
    {"PtlLEAppend", "le_handle", IN(handle_out)},
    {"PtlMEAppend", "me", IN(me_at)},
    {"PtlMEAppend", "me_handle", IN(handle_out)},
    {"PtlLESearch", "le", IN(me_at)},
    {"PtlMESearch", "me", IN(me_at)},
    {"PtlEQAlloc", "eq_handle", IN(handle_out)},
    {"PtlEQGet", "event", IN(event_out)},
    {"PtlEQWait", "event", IN(event_out)},
    {"PtlEQPoll", "eq_handles", IN(eqs_at)},
    {"PtlEQPoll", "event", IN(event_out)},
    {"PtlEQPoll", "which", IN(which_out)},
    {"PtlCTAlloc", "ct_handle", IN(handle_out)},
    {"PtlCTGet", "event", IN(value_out)},
    {"PtlCTWait", "event", IN(value_out)},
    {"PtlCTPoll", "ct_handles", IN(cts_at)},
    {"PtlCTPoll", "tests", IN(tests_at)},
    {"PtlCTPoll", "event", IN(value_out)},
    {"PtlCTPoll", "which", IN(which_out)},
    {"PtlSwap", "operand", IN(move.operand)},
    {"PtlTriggeredSwap", "operand", IN(move.operand)},
    {"PtlTriggeredMEAppend", "me", IN(me_at)},
    {"PtlTriggeredMEAppend", "me_handle", IN(handle_out)},
};

static void null_pointer(struct scene *s)
{
    const struct pointer *p = s->c->data;
    const void *null = NULL;
    patched(s, p->function, p->offset, &null, sizeof(null), PTL_ARG_INVALID);
}

GENERATE(null_pointers)
{
    for (int i = 0; i < ROWS(pointers); i++) {
        const struct pointer *p = &pointers[i];
        struct suite_case c = {.rule = "3.4: a null pointer where a structure or a result is due "
                                       "gives PTL_ARG_INVALID",
                               .body = null_pointer,
                               .data = p};
        suite_add_each(c, args_find(p->function)->kinds, SELF, "%s.%s.null", p->function, p->name);
    }
}

/* ---- One wrong value ------------------------------------------------------- */

struct value {
    const char *function, *name, *way;
    size_t offset, size;
    uint64_t wrong;
    int expected;
};

#define U8(field_) IN(field_), 1
#define U32(field_) IN(field_), 4
#define U64(field_) IN(field_), 8

static const struct value values[] = {
    {"PtlNIStatus", "status_register", "last", U32(reg), PTL_SR_LAST, PTL_ARG_INVALID},
    {"PtlNIStatus", "status_register", "last_and_1", U32(reg), PTL_SR_LAST + 1, PTL_ARG_INVALID},
    {"PtlNIStatus", "status_register", "minus_1", U32(reg), 0xffffffffu, PTL_ARG_INVALID},
    {"PtlNIStatus", "status_register", "int_max", U32(reg), 0x7fffffffu, PTL_ARG_INVALID},
    {"PtlNIStatus", "status_register", "int_min", U32(reg), 0x80000000u, PTL_ARG_INVALID},
    {"PtlSetMap", "map_size", "zero", U64(count), 0, PTL_ARG_INVALID},
    {"PtlPTAlloc", "pt_index_req", "int_max", U32(pt), 0x7fffffffu, PTL_ARG_INVALID},
    {"PtlPTAlloc", "pt_index_req", "int_min", U32(pt), 0x80000000u, PTL_ARG_INVALID},
    {"PtlPTAlloc", "pt_index_req", "any_less_1", U32(pt), PTL_PT_ANY - 1, PTL_ARG_INVALID},
    {"PtlPTAlloc", "pt_index_req", "in_use", U32(pt), SUITE_PT, PTL_PT_IN_USE},
    {"PtlPTFree", "pt_index", "has_entries", U32(pt), SUITE_PT, PTL_PT_IN_USE},
    {"PtlLEAppend", "ptl_list", "2", U8(list), 2, PTL_ARG_INVALID},
    {"PtlLEAppend", "ptl_list", "3", U8(list), 3, PTL_ARG_INVALID},
    {"PtlLEAppend", "ptl_list", "255", U8(list), 255, PTL_ARG_INVALID},
    {"PtlMEAppend", "ptl_list", "2", U8(list), 2, PTL_ARG_INVALID},
    {"PtlMEAppend", "ptl_list", "3", U8(list), 3, PTL_ARG_INVALID},
    {"PtlMEAppend", "ptl_list", "255", U8(list), 255, PTL_ARG_INVALID},
    {"PtlTriggeredMEAppend", "ptl_list", "2", U8(list), 2, PTL_ARG_INVALID},
    {"PtlTriggeredMEAppend", "ptl_list", "255", U8(list), 255, PTL_ARG_INVALID},
    {"PtlLESearch", "ptl_search_op", "2", U8(search), 2, PTL_ARG_INVALID},
    {"PtlLESearch", "ptl_search_op", "255", U8(search), 255, PTL_ARG_INVALID},
    {"PtlMESearch", "ptl_search_op", "2", U8(search), 2, PTL_ARG_INVALID},
    {"PtlMESearch", "ptl_search_op", "255", U8(search), 255, PTL_ARG_INVALID},
    {"PtlEQAlloc", "count", "zero", U64(count), 0, PTL_ARG_INVALID},
    {"PtlEQAlloc", "count", "2_to_40", U64(count), 1ull << 40, PTL_NO_SPACE},
    {"PtlEQAlloc", "count", "2_to_60", U64(count), 1ull << 60, PTL_NO_SPACE},
    {"PtlEQAlloc", "count", "2_to_63", U64(count), 1ull << 63, PTL_NO_SPACE},
    {"PtlEQAlloc", "count", "size_max", U64(count), PTL_SIZE_MAX, PTL_NO_SPACE},
    {"PtlEQPoll", "size", "zero", U32(size), 0, PTL_ARG_INVALID},
    {"PtlCTPoll", "size", "zero", U32(size), 0, PTL_ARG_INVALID},
};

static void one_value(struct scene *s)
{
    const struct value *v = s->c->data;
    patched(s, v->function, v->offset, &v->wrong, v->size, v->expected); /* little endian */
}

GENERATE(one_values)
{
    for (int i = 0; i < ROWS(values); i++) {
        const struct value *v = &values[i];
        struct suite_case c = {.rule = "3.4: a number outside its range is refused, and nothing is "
                                       "done",
                               .body = one_value,
                               .data = v};
        suite_add_each(c, args_find(v->function)->kinds, SELF, "%s.%s.%s", v->function, v->name,
                       v->way);
    }
}

/* ---- Portal table indices -------------------------------------------------- */

static const char *const indexed[] = {"PtlPTFree",   "PtlPTDisable",        "PtlPTEnable",
                                      "PtlLEAppend", "PtlMEAppend",         "PtlLESearch",
                                      "PtlMESearch", "PtlTriggeredMEAppend"};
enum { NOT_ALLOCATED, LAST, BEHIND_LAST, INT_MAX_INDEX, INT_MIN_INDEX, ANY_INDEX, INDICES };
static const char *const index_names[INDICES] = {
    "not_allocated", "last_not_allocated", "limit_and_1", "int_max", "int_min", "PTL_PT_ANY"};

static ptl_pt_index_t wrong_index(struct scene *s, long which)
{
    const ptl_pt_index_t last = (ptl_pt_index_t)s->limits.max_pt_index;
    const ptl_pt_index_t all[INDICES] = {UNUSED_PT,   last,        last + 1,
                                         0x7fffffffu, 0x80000000u, PTL_PT_ANY};
    return all[which];
}

static void wrong_pt_index(struct scene *s)
{
    ptl_pt_index_t index = wrong_index(s, s->c->number);
    patched(s, s->c->data, IN(pt), &index, sizeof(index), PTL_ARG_INVALID);
}

GENERATE(wrong_indices)
{
    for (int f = 0; f < ROWS(indexed); f++) {
        for (int i = 0; i < INDICES; i++) {
            struct suite_case c = {.rule = "3.7: an index that is not allocated, or above "
                                           "max_pt_index, gives PTL_ARG_INVALID",
                                   .body = wrong_pt_index,
                                   .data = indexed[f],
                                   .number = i};
            suite_add_each(c, args_find(indexed[f])->kinds, SELF, "%s.pt_index.%s", indexed[f],
                           index_names[i]);
        }
    }
}

CASE(alloc_behind_the_limit, ALL_KINDS, SELF,
     "3.7: PtlPTAlloc of an index above max_pt_index gives PTL_ARG_INVALID, of max_pt_index itself "
     "PTL_OK")
{
    const struct args_call *call = args_find("PtlPTAlloc");
    struct args a;
    args_fill(s, call, &a);
    a.pt = (ptl_pt_index_t)s->limits.max_pt_index + 1;
    args_refused(s, call, &a, PTL_ARG_INVALID);
    CHECK_EQ(suite_pt(s, 0, PTL_EQ_NONE, a.pt - 1), a.pt - 1);
}

CASE(flow_control_without_queue, ALL_KINDS, SELF,
     "3.7: flow control without an event queue gives PTL_PT_EQ_NEEDED")
{
    const struct args_call *call = args_find("PtlPTAlloc");
    struct args a;
    args_fill(s, call, &a);
    a.options = PTL_PT_FLOWCTRL;
    a.eq = PTL_EQ_NONE;
    args_refused(s, call, &a, PTL_PT_EQ_NEEDED);
    suite_pt(s, PTL_PT_FLOWCTRL, s->eq, UNUSED_PT);
}

/* ---- Options --------------------------------------------------------------- */

struct option {
    const char *function;
    size_t offset;
    unsigned known; /* bits */
};

static const struct option options[] = {
    {"PtlPTAlloc", IN(options), PTL_PT_ALLOC_OPTIONS_MASK},
    {"PtlMDBind", IN(md_desc.options), 0x41ff},
    {"PtlLEAppend", IN(me_desc.options), PTL_LE_APPEND_OPTIONS_MASK},
    {"PtlLESearch", IN(me_desc.options), PTL_LE_APPEND_OPTIONS_MASK},
    {"PtlMEAppend", IN(me_desc.options), PTL_ME_APPEND_OPTIONS_MASK},
    {"PtlMESearch", IN(me_desc.options), PTL_ME_APPEND_OPTIONS_MASK},
    {"PtlTriggeredMEAppend", IN(me_desc.options), PTL_ME_APPEND_OPTIONS_MASK},
};

static void set_option(struct args *a, const struct option *o, unsigned bits)
{
    unsigned now;
    memcpy(&now, (char *)a + o->offset, sizeof(now));
    now |= bits;
    memcpy((char *)a + o->offset, &now, sizeof(now));
}

static void unknown_option(struct scene *s)
{
    const struct option *o = s->c->data;
    const struct args_call *call = args_find(o->function);
    struct args a;
    args_fill(s, call, &a);
    set_option(&a, o, 1u << s->c->number);
    args_refused(s, call, &a, PTL_ARG_INVALID);
}

/* Each known bit is accepted, with what it needs besides. */
static void known_option(struct scene *s)
{
    const struct option *o = s->c->data;
    const struct args_call *call = args_find(o->function);
    unsigned bit = 1u << s->c->number;
    struct args a;
    args_fill(s, call, &a);
    set_option(&a, o, bit);
    if (o->known == PTL_ME_APPEND_OPTIONS_MASK &&
        (bit & (PTL_ME_MAY_ALIGN | PTL_ME_LOCAL_INC_UH_RLENGTH))) {
        set_option(&a, o, PTL_ME_MANAGE_LOCAL);
    }
    if (bit == PTL_IOVEC && strcmp(call->name, "PtlPTAlloc") != 0) {
        a.md_desc.start = a.me_desc.start = a.iovec;
        a.md_desc.length = a.me_desc.length = 2;
    }
    suite_check_code(call->go(&a), PTL_OK, call->name, __FILE__, __LINE__);
    if (strcmp(call->name, "PtlPTAlloc") == 0) {
        suite_own(s, MADE_PT, args_results.index);
    } else if (strcmp(call->name, "PtlMDBind") == 0) {
        suite_own(s, MADE_MD, args_results.handle);
    } else if (strstr(call->name, "Append") != NULL) {
        suite_own(s, MADE_ENTRY, args_results.handle);
    }
}

GENERATE(option_bits)
{
    for (int i = 0; i < ROWS(options); i++) {
        const struct option *o = &options[i];
        for (int bit = 0; bit < 32; bit++) {
            bool known = (o->known >> bit & 1) != 0;
            struct suite_case c = {.rule = known ? "3.4: every option of the specification is "
                                                   "accepted"
                                                 : "3.4: an unknown option gives PTL_ARG_INVALID",
                                   .body = known ? known_option : unknown_option,
                                   .data = o,
                                   .number = bit};
            suite_add_each(c, args_find(o->function)->kinds & (MP | NL), SELF,
                           "%s.options.%s_bit_%d", o->function, known ? "known" : "unknown", bit);
        }
    }
}

/* Options that say how the entry's own offset moves mean nothing where it has none. */
static void without_manage_local(struct scene *s)
{
    ptl_me_t me = suite_entry(s, args_to, sizeof(args_to),
                              PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | (unsigned)s->c->number);
    me.min_free = 2 * sizeof(args_to);
    ptl_handle_me_t handle = suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
    struct suite_move m = suite_move_to(s, CALL_PUT);
    m.md = suite_md(s, args_from, 8, PTL_MD_EVENT_SEND_DISABLE);
    m.length = 8;
    m.ack = PTL_ACK_REQ;
    m.remote_offset = 16;
    for (int i = 0; i < 3; i++) {
        OK(suite_move(&m));
        EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(8), .remote_offset = IS(16));
        EXPECT(s->eq, PTL_EVENT_PUT, .start = IS(args_to + 16), .remote_offset = IS(16));
    }
    NO_EVENT(s->eq);
    suite_unlink(s, handle);
}

GENERATE(option_pairs)
{
    static const struct {
        const char *name;
        long option;
    } alone[] = {{"min_free", 0},
                 {"may_align", PTL_ME_MAY_ALIGN},
                 {"local_inc", PTL_ME_LOCAL_INC_UH_RLENGTH}};
    for (int i = 0; i < ROWS(alone); i++) {
        suite_add_each((struct suite_case){.rule = "3.12: without PTL_ME_MANAGE_LOCAL min_free and "
                                                   "the options that go with it have no effect",
                                           .body = without_manage_local,
                                           .number = alone[i].option},
                       MATCHING_KINDS, SELF, "PtlMEAppend.options.%s_alone", alone[i].name);
    }
}

/* ---- Counters -------------------------------------------------------------- */

static void both_fields(struct scene *s)
{
    ptl_ct_event_t both = {1, 1};
    patched(s, s->c->data, IN(value), &both, sizeof(both), PTL_ARG_INVALID);
}

GENERATE(increments)
{
    static const char *const names[] = {"PtlCTInc", "PtlTriggeredCTInc"};
    for (int i = 0; i < ROWS(names); i++) {
        struct suite_case c = {.rule = "3.14: an increment has at most one field that is not 0",
                               .body = both_fields,
                               .data = names[i]};
        suite_add_each(c, ALL_KINDS, SELF, "%s.increment.both", names[i]);
    }
}

/* ---- The wrong kind of entry ----------------------------------------------- */

static void wrong_entry(struct scene *s)
{
    const struct args_call *call = args_find(s->c->data);
    struct args a;
    args_fill(s, call, &a);
    args_refused(s, call, &a, PTL_ARG_INVALID);
}

GENERATE(wrong_entries)
{
    static const char *const les[] = {"PtlLEAppend", "PtlLESearch", "PtlLEUnlink"};
    static const char *const mes[] = {"PtlMEAppend", "PtlMESearch", "PtlMEUnlink",
                                      "PtlTriggeredMEAppend", "PtlTriggeredMEUnlink"};
    struct suite_case c = {.rule = "3.11: calls for LEs are refused on a matching interface, those "
                                   "for MEs on a non-matching one",
                           .body = wrong_entry};
    for (int i = 0; i < ROWS(les); i++) {
        c.data = les[i];
        suite_add_each(c, MATCHING_KINDS, SELF, "%s.ni_handle.matching", les[i]);
    }
    for (int i = 0; i < ROWS(mes); i++) {
        c.data = mes[i];
        suite_add_each(c, PLAIN_KINDS, SELF, "%s.ni_handle.non_matching", mes[i]);
    }
}

/* ---- Parts of an array ----------------------------------------------------- */

static const char *const vectored[] = {"PtlMDBind", "PtlLEAppend", "PtlMEAppend",
                                       "PtlTriggeredMEAppend"};

static void set_parts(struct args *a, void *start, ptl_size_t parts)
{
    a->md_desc.start = a->me_desc.start = start;
    a->md_desc.length = a->me_desc.length = parts;
    a->md_desc.options |= PTL_IOVEC;
    a->me_desc.options |= PTL_IOVEC;
}

static void too_many_parts(struct scene *s)
{
    const struct args_call *call = args_find(s->c->data);
    struct args a;
    args_fill(s, call, &a);
    set_parts(&a, a.iovec, (ptl_size_t)s->limits.max_iovecs + 1);
    args_refused(s, call, &a, PTL_ARG_INVALID);
    set_parts(&a, a.iovec, PTL_SIZE_MAX);
    args_refused(s, call, &a, PTL_ARG_INVALID);
    set_parts(&a, a.iovec, PTL_SIZE_MAX / sizeof(ptl_iovec_t) + 2); /* 16 bytes when it wraps */
    args_refused(s, call, &a, PTL_ARG_INVALID);
}

static void no_array(struct scene *s)
{
    const struct args_call *call = args_find(s->c->data);
    struct args a;
    args_fill(s, call, &a);
    set_parts(&a, NULL, 2);
    args_refused(s, call, &a, PTL_ARG_INVALID);
}

static void unmapped_array(struct scene *s)
{
    const struct args_call *call = args_find(s->c->data);
    struct args a;
    args_fill(s, call, &a);
    set_parts(&a, (void *)16, 2);
    args_refused(s, call, &a, PTL_ARG_INVALID);
}

GENERATE(arrays)
{
    for (int i = 0; i < ROWS(vectored); i++) {
        struct suite_case c = {.rule = "3.10: more than max_iovecs parts give PTL_ARG_INVALID",
                               .body = too_many_parts,
                               .data = vectored[i]};
        suite_add_each(c, args_find(vectored[i])->kinds, SELF, "%s.iovec.too_many", vectored[i]);
        c.rule = "3.10: a null array of parts gives PTL_ARG_INVALID";
        c.body = no_array;
        suite_add_each(c, args_find(vectored[i])->kinds, SELF, "%s.iovec.null", vectored[i]);
        c.rule = "3.10: an array of parts that cannot be read gives PTL_ARG_INVALID";
        c.body = unmapped_array;
        suite_add_each(c, args_find(vectored[i])->kinds, SELF, "%s.iovec.unmapped", vectored[i]);
    }
}
