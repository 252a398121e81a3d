/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong handles: for every parameter of every function that takes one, each way in which a
 * handle can be wrong. A row of the table below is a parameter; the cases are the
 * rows times the ways. "valid" is the same call with good arguments, which shows that it is the
 * handle alone that the others are refused for.
 */
#include "args_call.h"

#include <string.h>

enum kind { K_NI, K_EQ, K_CT, K_MD, K_ENTRY, KINDS };
static const char *const kind_name[KINDS] = {"an_ni", "an_eq", "a_ct", "an_md", "an_entry"};

/* ANY takes every kind. NONE_OK: PTL_EQ_NONE or PTL_CT_NONE means something here. SHARED: must
 * be of the same interface as another parameter. */
enum { ANY = 1, NONE_OK = 2, SHARED = 4 };

struct parameter {
    const char *function, *name;
    size_t offset; /* in struct args */
    enum kind kind;
    unsigned flags;
};

#define IN(field_) offsetof(struct args, field_)

static const struct parameter parameters[] = {
    {"PtlNIFini", "ni_handle", IN(ni), K_NI, 0},
    {"PtlNIStatus", "ni_handle", IN(ni), K_NI, 0},
    {"PtlNIHandle", "handle", IN(any), K_NI, ANY},
    {"PtlSetMap", "ni_handle", IN(ni), K_NI, 0},
    {"PtlGetMap", "ni_handle", IN(ni), K_NI, 0},
    {"PtlPTAlloc", "ni_handle", IN(ni), K_NI, 0},
    {"PtlPTAlloc", "eq_handle", IN(eq), K_EQ, NONE_OK | SHARED},
    {"PtlPTFree", "ni_handle", IN(ni), K_NI, 0},
    {"PtlPTDisable", "ni_handle", IN(ni), K_NI, 0},
    {"PtlPTEnable", "ni_handle", IN(ni), K_NI, 0},
    {"PtlGetUid", "ni_handle", IN(ni), K_NI, 0},
    {"PtlGetId", "ni_handle", IN(ni), K_NI, 0},
    {"PtlGetPhysId", "ni_handle", IN(ni), K_NI, 0},
    {"PtlMDBind", "ni_handle", IN(ni), K_NI, 0},
    {"PtlMDBind", "eq_handle", IN(md_desc.eq_handle), K_EQ, NONE_OK | SHARED},
    {"PtlMDBind", "ct_handle", IN(md_desc.ct_handle), K_CT, NONE_OK | SHARED},
    {"PtlMDRelease", "md_handle", IN(md), K_MD, 0},
    {"PtlLEAppend", "ni_handle", IN(ni), K_NI, 0},
    {"PtlLEAppend", "ct_handle", IN(me_desc.ct_handle), K_CT, NONE_OK | SHARED},
    {"PtlMEAppend", "ni_handle", IN(ni), K_NI, 0},
    {"PtlMEAppend", "ct_handle", IN(me_desc.ct_handle), K_CT, NONE_OK | SHARED},
    {"PtlLEUnlink", "le_handle", IN(entry), K_ENTRY, 0},
    {"PtlMEUnlink", "me_handle", IN(entry), K_ENTRY, 0},
    {"PtlLESearch", "ni_handle", IN(ni), K_NI, 0},
    {"PtlLESearch", "ct_handle", IN(me_desc.ct_handle), K_CT, NONE_OK | SHARED},
    {"PtlMESearch", "ni_handle", IN(ni), K_NI, 0},
    {"PtlMESearch", "ct_handle", IN(me_desc.ct_handle), K_CT, NONE_OK | SHARED},
    {"PtlEQAlloc", "ni_handle", IN(ni), K_NI, 0},
    {"PtlEQFree", "eq_handle", IN(eq), K_EQ, 0},
    {"PtlEQGet", "eq_handle", IN(eq), K_EQ, 0},
    {"PtlEQWait", "eq_handle", IN(eq), K_EQ, 0},
    {"PtlEQPoll", "first_of_eq_handles", IN(eqs[0]), K_EQ, SHARED},
    {"PtlEQPoll", "second_of_eq_handles", IN(eqs[1]), K_EQ, SHARED},
    {"PtlCTAlloc", "ni_handle", IN(ni), K_NI, 0},
    {"PtlCTFree", "ct_handle", IN(ct), K_CT, 0},
    {"PtlCTCancelTriggered", "ct_handle", IN(ct), K_CT, 0},
    {"PtlCTGet", "ct_handle", IN(ct), K_CT, 0},
    {"PtlCTWait", "ct_handle", IN(ct), K_CT, 0},
    {"PtlCTPoll", "first_of_ct_handles", IN(cts[0]), K_CT, SHARED},
    {"PtlCTPoll", "second_of_ct_handles", IN(cts[1]), K_CT, SHARED},
    {"PtlCTSet", "ct_handle", IN(ct), K_CT, 0},
    {"PtlCTInc", "ct_handle", IN(ct), K_CT, 0},
    {"PtlPut", "md_handle", IN(move.md), K_MD, 0},
    {"PtlGet", "md_handle", IN(move.md), K_MD, 0},
    {"PtlAtomic", "md_handle", IN(move.md), K_MD, 0},
    {"PtlFetchAtomic", "get_md_handle", IN(move.get_md), K_MD, SHARED},
    {"PtlFetchAtomic", "put_md_handle", IN(move.md), K_MD, SHARED},
    {"PtlSwap", "get_md_handle", IN(move.get_md), K_MD, SHARED},
    {"PtlSwap", "put_md_handle", IN(move.md), K_MD, SHARED},
    {"PtlTriggeredPut", "md_handle", IN(move.md), K_MD, SHARED},
    {"PtlTriggeredPut", "trig_ct_handle", IN(move.trigger), K_CT, SHARED},
    {"PtlTriggeredGet", "md_handle", IN(move.md), K_MD, SHARED},
    {"PtlTriggeredGet", "trig_ct_handle", IN(move.trigger), K_CT, SHARED},
    {"PtlTriggeredAtomic", "md_handle", IN(move.md), K_MD, SHARED},
    {"PtlTriggeredAtomic", "trig_ct_handle", IN(move.trigger), K_CT, SHARED},
    {"PtlTriggeredFetchAtomic", "get_md_handle", IN(move.get_md), K_MD, SHARED},
    {"PtlTriggeredFetchAtomic", "put_md_handle", IN(move.md), K_MD, SHARED},
    {"PtlTriggeredFetchAtomic", "trig_ct_handle", IN(move.trigger), K_CT, SHARED},
    {"PtlTriggeredSwap", "get_md_handle", IN(move.get_md), K_MD, SHARED},
    {"PtlTriggeredSwap", "put_md_handle", IN(move.md), K_MD, SHARED},
    {"PtlTriggeredSwap", "trig_ct_handle", IN(move.trigger), K_CT, SHARED},
    {"PtlTriggeredCTInc", "ct_handle", IN(ct), K_CT, SHARED},
    {"PtlTriggeredCTInc", "trig_ct_handle", IN(move.trigger), K_CT, SHARED},
    {"PtlTriggeredCTSet", "ct_handle", IN(ct), K_CT, SHARED},
    {"PtlTriggeredCTSet", "trig_ct_handle", IN(move.trigger), K_CT, SHARED},
    {"PtlTriggeredMEAppend", "ni_handle", IN(ni), K_NI, SHARED},
    {"PtlTriggeredMEAppend", "ct_handle", IN(me_desc.ct_handle), K_CT, NONE_OK | SHARED},
    {"PtlTriggeredMEAppend", "trig_ct_handle", IN(move.trigger), K_CT, SHARED},
    {"PtlTriggeredMEUnlink", "me_handle", IN(entry), K_ENTRY, SHARED},
    {"PtlTriggeredMEUnlink", "trig_ct_handle", IN(move.trigger), K_CT, SHARED},
    {"PtlStartBundle", "ni_handle", IN(ni), K_NI, 0},
    {"PtlEndBundle", "ni_handle", IN(ni), K_NI, 0},
};
enum { PARAMETERS = sizeof(parameters) / sizeof(parameters[0]) };

/* ---- Wrong handles --------------------------------------------------------- */

static ptl_handle_any_t good_of(const struct args *a, enum kind kind)
{
    const ptl_handle_any_t all[KINDS] = {a->ni, a->eq, a->ct, a->md, a->entry};
    return all[kind];
}

static ptl_handle_any_t other_of(struct scene *s, enum kind kind)
{
    const struct args_other *o = args_other(s);
    const ptl_handle_any_t all[KINDS] = {o->ni, o->eq, o->ct, o->md, o->entry};
    return all[kind];
}

/* A new object of this kind, freed behind the case. */
static ptl_handle_any_t make_one(struct scene *s, enum kind kind)
{
    switch (kind) {
    case K_EQ:
        return suite_eq(s, 1);
    case K_CT:
        return suite_ct(s);
    case K_MD:
        return suite_md_with(s, NULL, 0, 0, PTL_EQ_NONE, PTL_CT_NONE);
    case K_ENTRY:
        return suite_target(s, PTL_OVERFLOW_LIST, NULL, 0, 0, NULL);
    default:
        FAIL("an interface is not made within a case");
    }
}

/* A handle of an object of this kind that has just been freed. */
static ptl_handle_any_t stale_of(struct scene *s, enum kind kind)
{
    ptl_handle_any_t h = make_one(s, kind);
    OK(kind == K_EQ   ? PtlEQFree(h)
       : kind == K_CT ? PtlCTFree(h)
       : kind == K_MD ? PtlMDRelease(h)
                      : suite_unlink_code(s, h));
    return h;
}

static bool names_something(ptl_handle_any_t h)
{
    ptl_handle_ni_t ni;
    return PtlNIHandle(h, &ni) == PTL_OK;
}

/* The i-th of a sequence of values that no object has. */
static ptl_handle_any_t random_handle(int i)
{
    uint64_t x = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
    do {
        x = x * 6364136223846793005u + 1442695040888963407u;
    } while (names_something((uint32_t)(x >> 32)));
    return (uint32_t)(x >> 32);
}

/* ---- Cases ----------------------------------------------------------------- */

static void set_handle(struct args *a, const struct parameter *p, ptl_handle_any_t h)
{
    memcpy((char *)a + p->offset, &h, sizeof(h));
}

static void begin(struct scene *s, const struct args_call **call, struct args *a)
{
    const struct parameter *p = s->c->data;
    *call = args_find(p->function);
    CHECK(*call != NULL);
    args_fill(s, *call, a);
    if (strstr(p->function, "Search") != NULL) {
        a->me_desc.options |= PTL_ME_EVENT_CT_OVERFLOW;
    }
}

/* A call with this handle is refused, and nothing is done. */
static void refused(struct scene *s, ptl_handle_any_t h)
{
    const struct args_call *call;
    struct args a;
    begin(s, &call, &a);
    set_handle(&a, s->c->data, h);
    args_refused(s, call, &a, PTL_ARG_INVALID);
}

static void fixed_value(struct scene *s)
{
    refused(s, (ptl_handle_any_t)s->c->number);
}

static void random_value(struct scene *s)
{
    refused(s, random_handle((int)s->c->number));
}

static void stale(struct scene *s)
{
    const struct parameter *p = s->c->data;
    refused(s, stale_of(s, p->kind));
}

/* By now another object has the place of the freed one. */
static void reused(struct scene *s)
{
    enum { ENOUGH = 300 }; /* tables grow by fewer */
    const struct parameter *p = s->c->data;
    ptl_handle_any_t before = stale_of(s, p->kind);
    for (int i = 0; i < ENOUGH; i++) {
        CHECK(make_one(s, p->kind) != before);
    }
    refused(s, before);
}

static void of_another_interface(struct scene *s)
{
    const struct parameter *p = s->c->data;
    refused(s, other_of(s, p->kind));
}

static void of_another_kind(struct scene *s)
{
    const struct args_call *call;
    struct args a;
    begin(s, &call, &a);
    set_handle(&a, s->c->data, good_of(&a, (enum kind)s->c->number));
    args_refused(s, call, &a, PTL_ARG_INVALID);
}

/* The good handle with each of its bits changed, as far as that names nothing. */
static void one_bit_off(struct scene *s)
{
    const struct parameter *p = s->c->data;
    const struct args_call *call;
    struct args a;
    begin(s, &call, &a);
    ptl_handle_any_t good = good_of(&a, p->kind);
    int tried = 0;
    for (int bit = 0; bit < 32; bit++) {
        ptl_handle_any_t bad = good ^ 1u << bit;
        if (!names_something(bad) && bad != PTL_EQ_NONE && bad != PTL_CT_NONE) {
            set_handle(&a, p, bad);
            args_refused(s, call, &a, PTL_ARG_INVALID);
            tried++;
        }
    }
    CHECK(tried > 0);
}

/* With good arguments the call gives what it should. What it takes to be so: */
static void prepare_good(struct scene *s, const struct args_call *call, struct args *a)
{
    if (strcmp(call->name, "PtlNIFini") == 0) {
        OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, NULL, NULL, &a->ni));
    } else if (strcmp(call->name, "PtlEndBundle") == 0) {
        OK(PtlStartBundle(s->ni));
    } else if (strcmp(call->name, "PtlEQWait") == 0) {
        ptl_me_t me = suite_entry(s, args_to, 8, 0);
        suite_append(s, PTL_PRIORITY_LIST, &me, NULL);
        a->eq = s->eq;
    } else if (strcmp(call->name, "PtlPTAlloc") == 0) {
        suite_own(s, MADE_PT, UNUSED_PT);
    }
}

static void valid(struct scene *s)
{
    const struct args_call *call;
    struct args a;
    begin(s, &call, &a);
    prepare_good(s, call, &a);
    suite_check_code(call->go(&a), call->good, call->name, __FILE__, __LINE__);
    if (strcmp(call->name, "PtlStartBundle") == 0) {
        OK(PtlEndBundle(s->ni));
    }
    if (strstr(call->name, "EAppend") != NULL) {
        suite_own(s, MADE_ENTRY, args_results.handle);
    }
}

static void add(const struct parameter *p, void (*body)(struct scene *), const char *way,
                long number, const char *rule)
{
    const struct args_call *call = args_find(p->function);
    unsigned kinds = call->kinds & (MP | NL); /* two of four: all types of entry and of process */
    struct suite_case c = {.rule = rule, .body = body, .data = p, .number = number};
    suite_add_each(c, kinds, SELF, "%s.%s.%s", p->function, p->name, way);
}

GENERATE(wrong_handles)
{
    static const char rule[] = "3.3: a handle that is no object of the right kind and interface "
                               "gives PTL_ARG_INVALID, and nothing is done";
    for (int i = 0; i < PARAMETERS; i++) {
        const struct parameter *p = &parameters[i];
        bool none_ok = (p->flags & NONE_OK) != 0;
        add(p, valid, "valid", 0, "3.3: a call whose arguments are all good succeeds");
        add(p, fixed_value, "PTL_INVALID_HANDLE", PTL_INVALID_HANDLE, rule);
        if (!none_ok || p->kind != K_EQ) {
            add(p, fixed_value, "PTL_EQ_NONE", PTL_EQ_NONE, rule);
        }
        if (!none_ok || p->kind != K_CT) {
            add(p, fixed_value, "PTL_CT_NONE", PTL_CT_NONE, rule);
        }
        for (int k = 0; k < 4; k++) {
            static const char *const names[] = {"random_1", "random_2", "random_3", "random_4"};
            add(p, random_value, names[k], k, rule);
        }
        for (int k = 0; k < KINDS && (p->flags & ANY) == 0; k++) {
            if (k != (int)p->kind) {
                add(p, of_another_kind, kind_name[k], k, rule);
            }
        }
        if (p->kind != K_NI) {
            add(p, stale, "freed", 0, rule);
            add(p, reused, "freed_and_reused", 0, rule);
        }
        if (p->flags & SHARED) {
            add(p, of_another_interface, "other_interface", 0, rule);
        }
        add(p, one_bit_off, "one_bit_off", 0, rule);
    }
}

/* PtlNIHandle takes a handle of any kind. */
static void ni_handle_of_kind(struct scene *s)
{
    const struct args_call *call = args_find("PtlNIHandle");
    struct args a;
    args_fill(s, call, &a);
    ptl_handle_ni_t ni;
    OK(PtlNIHandle(good_of(&a, (enum kind)s->c->number), &ni));
    CHECK_EQ(ni, s->ni);
    OK(PtlNIHandle(other_of(s, (enum kind)s->c->number), &ni));
    CHECK_EQ(ni, other_of(s, K_NI));
    CHECK(ni != s->ni);
}

static void ni_handle_of_freed(struct scene *s)
{
    ptl_handle_ni_t ni = 0x5a5a5a5a;
    INVALID(PtlNIHandle(stale_of(s, (enum kind)s->c->number), &ni));
    CHECK_EQ(ni, 0x5a5a5a5a);
}

GENERATE(ni_handles)
{
    for (int k = 0; k < KINDS; k++) {
        suite_add_each((struct suite_case){.rule = "3.6: PtlNIHandle gives the interface of an "
                                                   "object of any kind",
                                           .body = ni_handle_of_kind,
                                           .number = k},
                       ALL_KINDS, SELF, "PtlNIHandle.of_%s", kind_name[k]);
        if (k != K_NI) {
            suite_add_each((struct suite_case){.rule = "3.6: PtlNIHandle refuses the handle of a "
                                                       "freed object",
                                               .body = ni_handle_of_freed,
                                               .number = k},
                           ALL_KINDS, SELF, "PtlNIHandle.of_freed_%s", kind_name[k]);
        }
    }
}

/* ---- PtlHandleIsEqual ------------------------------------------------------ */

CASE(equal_handles, ALL_KINDS, SELF,
     "3.18: PtlHandleIsEqual is non-zero for two copies of one handle, of every kind")
{
    struct args a;
    args_fill(s, args_find("PtlPut"), &a);
    for (int k = 0; k < KINDS; k++) {
        ptl_handle_any_t copy = good_of(&a, (enum kind)k);
        CHECK(PtlHandleIsEqual(good_of(&a, (enum kind)k), copy) != 0);
    }
    CHECK(PtlHandleIsEqual(PTL_INVALID_HANDLE, PTL_INVALID_HANDLE) != 0);
    CHECK(PtlHandleIsEqual(PTL_EQ_NONE, PTL_EQ_NONE) != 0);
}

CASE(unequal_handles, ALL_KINDS, SELF,
     "3.18: PtlHandleIsEqual is 0 for handles of two objects, or with PTL_INVALID_HANDLE")
{
    struct args a;
    args_fill(s, args_find("PtlPut"), &a);
    for (int k = 0; k < KINDS; k++) {
        ptl_handle_any_t h = good_of(&a, (enum kind)k);
        CHECK_EQ(PtlHandleIsEqual(h, PTL_INVALID_HANDLE), 0);
        CHECK_EQ(PtlHandleIsEqual(PTL_INVALID_HANDLE, h), 0);
        CHECK_EQ(PtlHandleIsEqual(h, other_of(s, (enum kind)k)), 0);
        for (int l = 0; l < k; l++) {
            CHECK_EQ(PtlHandleIsEqual(h, good_of(&a, (enum kind)l)), 0);
        }
    }
    CHECK_EQ(PtlHandleIsEqual(s->eq, s->mdeq), 0);
    CHECK_EQ(PtlHandleIsEqual(s->ct, s->mdct), 0);
}

CASE(stale_is_not_new, ALL_KINDS, SELF,
     "3.18: a handle of a freed object is not equal to that of one made later")
{
    for (int k = K_EQ; k < KINDS; k++) {
        ptl_handle_any_t before = stale_of(s, (enum kind)k);
        for (int i = 0; i < 40; i++) {
            CHECK_EQ(PtlHandleIsEqual(before, stale_of(s, (enum kind)k)), 0);
        }
    }
}
