/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cases that must fail, or be skipped, each in another way; harness.sh runs them and looks
 * whether each is reported so, and whether those behind it still run.
 */
#include "suite.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const char rule[] = "3.1: this rule is broken";

static unsigned char byte;

static void good(struct scene *s)
{
    STEP();
}
static void bad_number(struct scene *s)
{
    if (s->target) {
        CHECK_EQ(byte + 1, 2);
    }
    STEP();
}
static void bad_code(struct scene *s)
{
    OK(PtlNIFini(PTL_INVALID_HANDLE));
}
static void bad_no_event(struct scene *s)
{
    if (s->target) {
        EXPECT(s->eq, PTL_EVENT_PUT);
    }
    STEP();
}
static void link_one(struct scene *s)
{
    ptl_me_t me = suite_entry(s, &byte, 1, PTL_ME_OP_PUT);
    suite_append(s, PTL_PRIORITY_LIST, &me, &byte);
}
static void bad_event(struct scene *s)
{
    link_one(s);
    EXPECT(s->eq, PTL_EVENT_LINK, .user_ptr = IS(&link_one));
}
static void bad_type(struct scene *s)
{
    link_one(s);
    EXPECT(s->eq, PTL_EVENT_PUT);
}
static void bad_silence(struct scene *s)
{
    link_one(s);
    NO_EVENT(s->eq);
}
static void bad_counter(struct scene *s)
{
    OK(PtlCTInc(s->ct, ((ptl_ct_event_t){2, 0})));
    EXPECT_CT(s->ct, 1, 0);
}
static void bad_memory(struct scene *s)
{
    unsigned char buffer[4] = {1, 1, 1, 2};
    CHECK_BYTES(buffer, 4, 1);
}
static void bad_crash(struct scene *s)
{
    if (s->target) {
        raise(SIGUSR1);
    }
    STEP();
}
static void bad_exit(struct scene *s)
{
    if (s->target) {
        exit(0);
    }
    STEP();
}
static void bad_hang(struct scene *s)
{
    if (s->target || s->c->setting == BARE) {
        pause();
    }
    STEP();
}
static void bad_tidy(struct scene *s)
{
    ptl_me_t me = suite_entry(s, &byte, 1, PTL_ME_OP_PUT);
    ptl_handle_me_t h;
    OK(s->matching ? PtlMEAppend(s->ni, SUITE_PT, &me, PTL_PRIORITY_LIST, NULL, &h)
                   : PtlLEAppend(s->ni, SUITE_PT, (ptl_le_t *)&me, PTL_PRIORITY_LIST, NULL, &h));
}
static void fail_in_child(void *argument)
{
    CHECK_EQ(byte + 1, 3);
}
static void bad_child(struct scene *s)
{
    suite_child(fail_in_child, NULL);
}
static void skipped(struct scene *s)
{
    if (s->target || s->c->setting == BARE) {
        suite_skip("not here");
    }
    STEP();
}

/* Good where ranks are processes; TWIN says of the first and the last that their rows are wrong. */
static void change_environment(struct scene *s)
{
    if (s->target) {
        setenv("SUITE_HARNESS", "1", 1);
    }
    STEP();
}
CASE(whole_not_said, ML, PAIR, "3.1: the environment is changed, and the row does not say so")
{
    change_environment(s);
}
CASE(whole_said, ML, PAIR, "3.1: the environment is changed",
     .own_process = "changes the environment")
{
    change_environment(s);
}
CASE(whole_nothing, ML, PAIR, "3.1: nothing is changed", .own_process = "forks")
{
    STEP();
}
static void *make_index(void *scene)
{
    struct scene *s = scene;
    suite_pt(s, 0, PTL_EQ_NONE, 9);
    return NULL;
}
CASE(rank_has_its_own, ML, PAIR,
     "3.1: each rank has static variables of its own, and its threads are in its process")
{
    static int mine;
    pthread_t thread;
    mine = s->rank + 1;
    STEP();
    CHECK_EQ(mine, s->rank + 1);
    CHECK_EQ(pthread_create(&thread, NULL, make_index, s), 0);
    pthread_join(thread, NULL);
    STEP();
}

GENERATE(cases)
{
    static const struct {
        const char *name;
        void (*body)(struct scene *);
        unsigned settings;
    } all[] = {
        {"number", bad_number, SELF | PAIR},
        {"code", bad_code, SELF | PAIR},
        {"no_event", bad_no_event, SELF},
        {"event", bad_event, SELF | PAIR},
        {"type", bad_type, SELF},
        {"silence", bad_silence, SELF | PAIR},
        {"counter", bad_counter, SELF},
        {"memory", bad_memory, SELF},
        {"crash", bad_crash, SELF | PAIR},
        {"exit", bad_exit, SELF | PAIR},
        {"hang", bad_hang, PAIR | BARE},
        {"tidy", bad_tidy, SELF | PAIR},
        {"child", bad_child, SELF | BARE},
        {"skip", skipped, SELF | PAIR | BARE},
    };
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct suite_case c = {.rule = rule, .body = all[i].body};
        suite_add_each(c, i % 2 ? ML : NP, all[i].settings, "bad_%s", all[i].name);
        c.body = good;
        suite_add_each(c, i % 2 ? ML : NP, SELF | PAIR, "good_behind_%s", all[i].name);
    }
}
