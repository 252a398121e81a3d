/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How programs leave: without PtlFini, in the middle of something, by a signal; and come
 * back: PtlInit again after the last PtlFini, and in a forked child.
 *
 * The program that leaves is a forked child which opens the library itself. It may not hang,
 * must leave with its own status, and others must be able to go on: the process above it, which
 * has an interface of its own, opened before or behind the fork.
 */
#include "suite.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned char from[1 << 16], to[1 << 16];

enum { STATUS = 7 };

/* A process's interface with one queue, counter, MD and entry; its id may be told. */
struct home {
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
    ptl_handle_me_t entry;
    ptl_process_t phys, self, nobody; /* the last has an id that no process has */
    bool matching;
};

static void append(struct home *h, unsigned options)
{
    ptl_me_t me = {.start = to,
                   .length = sizeof(to),
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE,
                   .ignore_bits = ~(ptl_match_bits_t)0};
    if (options & PTL_NI_LOGICAL) {
        me.match_id.rank = PTL_RANK_ANY;
    } else {
        me.match_id.phys.nid = PTL_NID_ANY;
        me.match_id.phys.pid = PTL_PID_ANY;
    }
    OK(h->matching
           ? PtlMEAppend(h->ni, SUITE_PT, &me, PTL_PRIORITY_LIST, NULL, &h->entry)
           : PtlLEAppend(h->ni, SUITE_PT, (ptl_le_t *)&me, PTL_PRIORITY_LIST, NULL, &h->entry));
}

static void settle(struct home *h, unsigned options)
{
    ptl_pt_index_t pt;
    h->matching = (options & PTL_NI_MATCHING) != 0;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, &h->ni));
    OK(PtlGetPhysId(h->ni, &h->phys));
    h->nobody = h->phys;
    h->nobody.phys.pid =
        h->phys.phys.pid > 1000 ? h->phys.phys.pid - 1000 : h->phys.phys.pid + 1000;
    if (options & PTL_NI_LOGICAL) {
        ptl_process_t map[2] = {h->phys, h->nobody};
        OK(PtlSetMap(h->ni, 2, map));
        h->nobody = (ptl_process_t){.rank = 1};
    }
    OK(PtlGetId(h->ni, &h->self));
    OK(PtlEQAlloc(h->ni, 64, &h->eq));
    OK(PtlCTAlloc(h->ni, &h->ct));
    OK(PtlPTAlloc(h->ni, 0, h->eq, SUITE_PT, &pt));
    ptl_md_t md = {from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE, h->eq, PTL_CT_NONE};
    OK(PtlMDBind(h->ni, &md, &h->md));
    append(h, options);
}

static ptl_event_t next_event(ptl_handle_eq_t eq)
{
    ptl_event_t event = {0};
    unsigned which;
    OK(PtlEQPoll(&eq, 1, 10000, &event, &which));
    return event;
}

/* A put to oneself arrives and is acknowledged, in either order. */
static void use(struct home *h, unsigned seed)
{
    unsigned seen = 0;
    suite_fill(from, 1000, seed);
    OK(PtlPut(h->md, 0, 1000, PTL_ACK_REQ, h->self, SUITE_PT, 0, 0, NULL, 0));
    for (int i = 0; i < 2; i++) {
        ptl_event_t event = next_event(h->eq);
        CHECK_EQ(event.ni_fail_type, PTL_NI_OK);
        seen |= 1u << event.type;
    }
    CHECK_EQ(seen, 1u << PTL_EVENT_ACK | 1u << PTL_EVENT_PUT);
    CHECK_FILL(to, 1000, seed);
}

/* ---- Ways to leave --------------------------------------------------------- */

static void *wait_forever(void *argument)
{
    ptl_event_t event;
    PtlEQWait(*(ptl_handle_eq_t *)argument, &event);
    return NULL;
}

static void *leave_from_thread(void *argument)
{
    exit(STATUS);
}

static void fini_at_exit(void)
{
    PtlFini();
}

static void calls_at_exit(void)
{
    ptl_handle_ni_t ni;
    PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL, &ni);
    PtlFini();
    PtlFini();
}

enum way {
    IDLE,
    AFTER_USE,
    WITH_EVENTS,
    PENDING,
    TRIGGERED,
    WAITING_THREAD,
    FROM_THREAD,
    AT_EXIT,
    AT_EXIT_CALLS,
    UNDER_EXIT,
    BY_ABORT,
    BY_KILL,
    BY_TERM,
    AFTER_INIT,
    INITS,
    WAYS
};
static const char *const way_names[WAYS] = {
    "idle",           "after_use",     "with_events",  "pending_put",       "triggered_waiting",
    "waiting_thread", "from_a_thread", "fini_at_exit", "calls_at_exit",     "_exit",
    "abort",          "sigkill",       "sigterm",      "without_interface", "after_three_inits"};

struct leaver {
    enum way way;
    unsigned options;
};

static void leave_now(struct home *h, enum way way)
{
    pthread_t thread;
    ptl_event_t event;
    switch (way) {
    case WITH_EVENTS:
        OK(PtlPut(h->md, 0, 8, PTL_ACK_REQ, h->self, SUITE_PT, 0, 0, NULL, 0));
        break;
    case PENDING:
        OK(PtlPut(h->md, 0, sizeof(from), PTL_ACK_REQ, h->nobody, SUITE_PT, 0, 0, NULL, 0));
        break;
    case TRIGGERED:
        OK(PtlTriggeredPut(h->md, 0, 8, PTL_NO_ACK_REQ, h->self, SUITE_PT, 0, 0, NULL, 0, h->ct,
                           5));
        break;
    case WAITING_THREAD:
        CHECK_EQ(PtlEQGet(h->eq, &event), PTL_EQ_EMPTY);
        CHECK_EQ(pthread_create(&thread, NULL, wait_forever, &h->eq), 0);
        suite_sleep_ms(20);
        break;
    case FROM_THREAD:
        CHECK_EQ(pthread_create(&thread, NULL, leave_from_thread, NULL), 0);
        pthread_join(thread, NULL);
        break;
    case AT_EXIT:
        atexit(fini_at_exit);
        break;
    case AT_EXIT_CALLS:
        atexit(calls_at_exit);
        break;
    case UNDER_EXIT:
        _exit(STATUS);
    case BY_ABORT:
        abort();
    case BY_KILL:
        raise(SIGKILL);
        break;
    case BY_TERM:
        raise(SIGTERM);
        break;
    case INITS:
        OK(PtlInit());
        OK(PtlInit());
        break;
    default:
        break;
    }
}

static void leave(void *argument)
{
    const struct leaver *l = argument;
    struct home h;
    if (l->way == AFTER_INIT) {
        OK(PtlInit());
        exit(STATUS);
    }
    settle(&h, l->options);
    if (l->way != IDLE) {
        use(&h, 1);
    }
    leave_now(&h, l->way);
    exit(STATUS);
}

/* number: the way. First without, then with an interface of the process above. */
static void leaves(struct scene *s)
{
    struct leaver l = {(enum way)s->c->number, s->options};
    int signal_due = l.way == BY_ABORT  ? SIGABRT
                     : l.way == BY_KILL ? SIGKILL
                     : l.way == BY_TERM ? SIGTERM
                                        : 0;
    for (int with_home = 0; with_home < 1 + SUITE_FORKS_THREADS; with_home++) {
        struct home h;
        if (with_home) {
            settle(&h, s->options);
        }
        uint64_t end = suite_deadline();
        int status = suite_child(leave, &l);
        CHECK(suite_now_ms() < end);
        if (signal_due != 0) {
            CHECK(WIFSIGNALED(status));
            CHECK_EQ(WTERMSIG(status), signal_due);
        } else {
            CHECK(WIFEXITED(status));
            CHECK_EQ(WEXITSTATUS(status), STATUS);
        }
        if (with_home) {
            use(&h, 9);
            PtlFini();
        }
    }
}

GENERATE(ways_to_leave)
{
    for (int w = 0; w < WAYS; w++) {
        suite_add_each((struct suite_case){.rule = "3.5: a program that ends without PtlFini ends "
                                                   "with its own status, and harms nobody",
                                           .body = leaves,
                                           .number = w},
                       ALL_KINDS, BARE, "leave.%s", way_names[w]);
    }
}

/* ---- Those who stay -------------------------------------------------------- */

struct told {
    int pipe[2];
    unsigned options;
    bool by_signal;
    ptl_pid_t pid; /* asked for */
};

/* Opens an interface, tells its id and leaves without a word. */
static void tell_and_leave(void *argument)
{
    const struct told *t = argument;
    struct home h;
    settle(&h, t->options);
    if (write(t->pipe[1], &h.phys, sizeof(h.phys)) != (ssize_t)sizeof(h.phys)) {
        FAIL("the id cannot be told");
    }
    if (t->by_signal) {
        raise(SIGKILL);
    }
    exit(0);
}

static void message_to_the_gone(struct scene *s)
{
    struct told t = {.options = s->options, .by_signal = s->c->number != 0};
    struct home h;
    ptl_process_t map[2];
    CHECK_EQ(pipe(t.pipe), 0);
    suite_child(tell_and_leave, &t);
    CHECK_EQ(read(t.pipe[0], &map[1], sizeof(map[1])), sizeof(map[1]));
    h.matching = s->matching;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, NULL, NULL, &h.ni));
    OK(PtlGetPhysId(h.ni, &map[0]));
    if (map[0].phys.pid == map[1].phys.pid) {
        suite_skip("the pid of the gone was given out again");
    }
    ptl_process_t gone = map[1];
    if (s->logical) {
        OK(PtlSetMap(h.ni, 2, map));
        gone = (ptl_process_t){.rank = 1};
    }
    OK(PtlEQAlloc(h.ni, 8, &h.eq));
    ptl_md_t md = {from, sizeof(from), PTL_MD_EVENT_SEND_DISABLE, h.eq, PTL_CT_NONE};
    OK(PtlMDBind(h.ni, &md, &h.md));
    OK(PtlPut(h.md, 0, 8, PTL_ACK_REQ, gone, SUITE_PT, 0, 0, to, 0));
    ptl_event_t event = next_event(h.eq);
    EVENT_IS(event, PTL_EVENT_ACK, .fail = PTL_NI_UNDELIVERABLE, .user_ptr = IS(to));
    PtlFini();
}

/* Asks for one pid and leaves without giving it back. */
static void take_pid(void *argument)
{
    const struct told *t = argument;
    ptl_handle_ni_t ni;
    OK(PtlInit());
    int code = PtlNIInit(PTL_IFACE_DEFAULT, t->options, t->pid, NULL, NULL, &ni);
    if (code == PTL_PID_IN_USE) {
        exit(STATUS);
    }
    CODE(code, PTL_OK);
    if (t->by_signal) {
        raise(SIGKILL);
    }
    exit(0);
}

static void pid_of_the_gone(struct scene *s)
{
    struct told t = {.options = s->options, .by_signal = s->c->number != 0};
    ptl_handle_ni_t ni;
    int status;
    t.pid = 20000 + (ptl_pid_t)getpid() % 5000;
    while (status = suite_child(take_pid, &t), WIFEXITED(status) && WEXITSTATUS(status) == STATUS) {
        t.pid++; /* somebody else's */
    }
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, t.pid, NULL, NULL, &ni));
    PtlFini();
}

GENERATE(those_who_stay)
{
    static const char *const names[] = {"exited", "killed"};
    for (int i = 0; i < 2; i++) {
        struct suite_case c = {.rule =
                                   "3.15: a message for a process that has gone without PtlFini "
                                   "ends with PTL_NI_UNDELIVERABLE",
                               .body = message_to_the_gone,
                               .number = i};
        suite_add_each(c, ALL_KINDS, BARE, "message_to_the_gone.%s", names[i]);
        c.rule = "3.6: the pid of a process that has gone without PtlFini is free";
        c.body = pid_of_the_gone;
        suite_add_each(c, ALL_KINDS, BARE, "pid_of_the_gone.%s", names[i]);
    }
}

/* ---- Again ----------------------------------------------------------------- */

static int open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    CHECK(d != NULL);
    while (readdir(d) != NULL) {
        n++;
    }
    closedir(d);
    return n;
}

CASE(init_again, ALL_KINDS, BARE,
     "3.5: after the last PtlFini everything works again, and nothing is left over")
{
    struct home h;
    int files = 0;
    for (unsigned round = 0; round < 12; round++) {
        settle(&h, s->options);
        use(&h, round);
        if (round % 2) {
            OK(PtlNIFini(h.ni));
        }
        PtlFini();
        CODE(PtlNIFini(h.ni), PTL_NO_INIT);
        if (round == 1) {
            files = open_files();
        }
    }
    CHECK_EQ(open_files(), files);
}

CASE(open_again, ALL_KINDS, BARE, "3.6: an interface can be closed and opened again")
{
    struct home h;
    OK(PtlInit());
    int files = 0;
    for (unsigned round = 0; round < 12; round++) {
        settle(&h, s->options);
        use(&h, round);
        OK(PtlNIFini(h.ni));
        INVALID(PtlMDRelease(h.md));
        PtlFini(); /* that of settle() */
        if (round == 1) {
            files = open_files();
        }
    }
    CHECK_EQ(open_files(), files);
    PtlFini();
}

static void start_anew(void *argument)
{
    struct home h;
    settle(&h, *(unsigned *)argument);
    for (unsigned i = 0; i < 5; i++) {
        use(&h, 50 + i);
    }
    PtlFini();
}

static void start_and_exit(void *argument)
{
    struct home h;
    settle(&h, *(unsigned *)argument);
    use(&h, 3);
}

CASE(child_starts_anew, ALL_KINDS, BARE,
     "3.5: a forked child that calls PtlInit has an interface of its own; its parent's goes on")
{
    struct home h;
    unsigned options = s->options;
    NEEDS_FORK_WITH_THREADS();
    settle(&h, s->options);
    for (unsigned i = 0; i < 4; i++) {
        use(&h, i);
        CHECK_EQ(suite_child(i & 1 ? start_anew : start_and_exit, &options), 0);
        use(&h, 10 + i);
    }
    PtlFini();
}

CASE(child_of_finished, ALL_KINDS, BARE, "3.5: a child forked after PtlFini can start, too")
{
    struct home h;
    unsigned options = s->options;
    settle(&h, s->options);
    use(&h, 1);
    PtlFini();
    CHECK_EQ(suite_child(start_anew, &options), 0);
    settle(&h, s->options);
    use(&h, 2);
    PtlFini();
}

static void *fork_in_thread(void *argument)
{
    CHECK_EQ(suite_child(start_anew, argument), 0);
    return NULL;
}

CASE(child_of_a_thread, ALL_KINDS, BARE,
     "3.5: a child forked by a second thread, while the first is in the library, can start")
{
    struct home h;
    unsigned options = s->options;
    pthread_t thread;
    NEEDS_FORK_WITH_THREADS();
    settle(&h, s->options);
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(pthread_create(&thread, NULL, fork_in_thread, &options), 0);
        for (unsigned i = 0; i < 300; i++) {
            use(&h, i);
        }
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    PtlFini();
}

CASE(everything_open, ALL_KINDS, BARE,
     "3.5: the last PtlFini closes interfaces with entries, events, headers and triggered "
     "operations")
{
    struct home h;
    for (int round = 0; round < 3; round++) {
        settle(&h, s->options);
        use(&h, 1);
        OK(PtlTriggeredPut(h.md, 0, 8, PTL_NO_ACK_REQ, h.self, SUITE_PT, 0, 0, NULL, 0, h.ct, 5));
        OK(PtlPut(h.md, 0, 8, PTL_ACK_REQ, h.self, SUITE_PT, 0, 0, NULL, 0));
        PtlFini();
        CODE(PtlMDRelease(h.md), PTL_NO_INIT);
    }
}
