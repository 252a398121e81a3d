/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every function before PtlInit, after the last PtlFini, and in a forked child: PTL_NO_INIT,
 * whatever the arguments, and results are not written.
 */
#include "args_call.h"

#include <string.h>
#include <sys/wait.h>

static const char rule[] = "3.5: without PtlInit every function but PtlInit gives PTL_NO_INIT";

/* Arguments that would be good in shape, or null pointers and wrong handles. */
static void fill_blind(struct args *a, bool good)
{
    static unsigned char operand[32];
    memset(a, 0, sizeof(*a));
    memset(&args_results, 0x5a, sizeof(args_results));
    if (!good) {
        a->ni = a->any = a->any2 = a->eq = a->ct = a->md = a->entry = PTL_INVALID_HANDLE;
        a->move.md = a->move.get_md = a->move.trigger = PTL_INVALID_HANDLE;
        return;
    }
    a->md_at = &a->md_desc;
    a->me_at = &a->me_desc;
    a->eqs_at = a->eqs;
    a->cts_at = a->cts;
    a->tests_at = a->tests;
    a->map_at = a->map;
    a->size = 1;
    a->count = 1;
    a->options = PTL_NI_MATCHING | PTL_NI_PHYSICAL;
    a->iface = PTL_IFACE_DEFAULT;
    a->pid = PTL_PID_ANY;
    a->move.op = PTL_SUM;
    a->move.type = PTL_INT32_T;
    a->move.length = 4;
    a->move.operand = operand;
    a->handle_out = &args_results.handle;
    a->index_out = &args_results.index;
    a->event_out = &args_results.event;
    a->value_out = &args_results.value;
    a->which_out = &args_results.which;
    a->status_out = &args_results.status;
    a->uid_out = &args_results.uid;
    a->id_out = &args_results.id;
    a->map_out = args_results.map;
    a->map_size_out = &args_results.map_size;
    a->limits_out = &args_results.limits;
}

static void gives_no_init(const struct args_call *call, const struct args *a)
{
    suite_check_code(call->go(a), call->good == NO_CODE ? NO_CODE : PTL_NO_INIT, call->name,
                     __FILE__, __LINE__);
    CHECK_BYTES(&args_results, sizeof(args_results), 0x5a);
}

static void try_blind(struct scene *s)
{
    struct args a;
    for (int good = 0; good < 2; good++) {
        fill_blind(&a, good != 0);
        gives_no_init(s->c->data, &a);
    }
}

static void start_and_stop(struct scene *s)
{
    ptl_handle_ni_t ni;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                 &ni));
    PtlFini();
}

static void before_init(struct scene *s)
{
    try_blind(s);
    start_and_stop(s); /* nothing is broken */
}

static void after_fini(struct scene *s)
{
    start_and_stop(s);
    try_blind(s);
    start_and_stop(s);
}

static void after_two_finis(struct scene *s)
{
    start_and_stop(s);
    PtlFini();
    try_blind(s);
    start_and_stop(s);
}

static void after_counted_finis(struct scene *s)
{
    OK(PtlInit());
    start_and_stop(s);
    PtlFini();
    try_blind(s);
    start_and_stop(s);
}

struct in_child {
    const struct args_call *call;
    struct args args;
};

static void call_in_child(void *argument)
{
    const struct in_child *c = argument;
    gives_no_init(c->call, &c->args);
}

/* The parent's own good handles, all alive, mean nothing in the child; and the parent's
 * objects do not suffer. */
static void forked_child(struct scene *s)
{
    struct in_child c = {.call = s->c->data};
    NEEDS_FORK_WITH_THREADS();
    args_fill(s, c.call, &c.args);
    CHECK_EQ(suite_child(call_in_child, &c), 0);
    args_refused(s, args_find("PtlGetUid"), &(struct args){.ni = s->ni}, PTL_ARG_INVALID);
}

GENERATE(no_init)
{
    for (int i = 0; i < args_call_count; i++) {
        const struct args_call *call = &args_calls[i];
        struct suite_case c = {.rule = rule, .data = call, .setting = BARE};
        if (strcmp(call->name, "PtlInit") == 0) {
            continue;
        }
        c.body = before_init;
        suite_add(c, "%s.before_init", call->name);
        c.body = after_fini;
        suite_add(c, "%s.after_fini", call->name);
        c.body = after_two_finis;
        suite_add(c, "%s.after_two_finis", call->name);
        c.body = after_counted_finis;
        suite_add(c, "%s.after_counted_finis", call->name);
        c.rule = "3.5: a forked child owns none of its parent's objects: PTL_NO_INIT";
        c.body = forked_child;
        suite_add_each(c, call->kinds, SELF, "%s.forked_child", call->name);
    }
}

CASE(handle_is_equal_any_time, NO_KIND, BARE,
     "3.18: PtlHandleIsEqual compares values, also before PtlInit and after PtlFini")
{
    for (int i = 0; i < 2; i++) {
        CHECK(PtlHandleIsEqual(17, 17) != 0);
        CHECK_EQ(PtlHandleIsEqual(17, 18), 0);
        CHECK(PtlHandleIsEqual(PTL_INVALID_HANDLE, PTL_INVALID_HANDLE) != 0);
        start_and_stop(s);
    }
}

CASE(init_is_counted, NO_KIND, BARE, "3.5: as many PtlFini as PtlInit end the library, not fewer")
{
    ptl_handle_ni_t ni;
    ptl_uid_t uid;
    OK(PtlInit());
    OK(PtlInit());
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                 &ni));
    PtlFini();
    OK(PtlGetUid(ni, &uid));
    PtlFini();
    OK(PtlGetUid(ni, &uid));
    PtlFini();
    CODE(PtlGetUid(ni, &uid), PTL_NO_INIT);
}

CASE(fini_without_init, NO_KIND, BARE, "3.5: PtlFini without PtlInit does nothing")
{
    ptl_handle_ni_t ni;
    for (int i = 0; i < 5; i++) {
        PtlFini();
    }
    OK(PtlInit());
    CODE(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                   &ni),
         PTL_OK);
    PtlFini();
    CODE(PtlNIFini(ni), PTL_NO_INIT);
}

CASE(handle_of_before, ALL_KINDS, BARE,
     "3.5: handles of before the last PtlFini name nothing after another PtlInit")
{
    ptl_handle_ni_t before, ni;
    ptl_handle_ct_t ct;
    ptl_ct_event_t value;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, NULL, NULL, &before));
    OK(PtlCTAlloc(before, &ct));
    PtlFini();
    OK(PtlInit());
    INVALID(PtlCTGet(ct, &value));
    INVALID(PtlNIFini(before));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, NULL, NULL, &ni));
    INVALID(PtlCTGet(ct, &value));
    OK(PtlNIFini(ni));
    PtlFini();
}
