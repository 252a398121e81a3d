/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads: many of one process on one interface, on interfaces of their own, on
 * two NICs of one process, making and freeing objects at the same time, and waiting for what
 * is closed. */
#include "port.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, MESSAGES = 300, LONGEST = 6000 };

/* What one thread has for itself: a portal table index with queue, entry and
 * memory, and an MD with counter. */
struct lane {
    struct port *port;
    ptl_process_t to; /* the process it talks to */
    int number;
    ptl_pt_index_t pt; /* the same on both sides */
    ptl_handle_eq_t eq;
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
    unsigned char *out, *in; /* LONGEST bytes for each of MESSAGES */
    pthread_t thread;
};

static void make_lane(struct lane *lane, struct port *p, ptl_process_t to, int number)
{
    ptl_handle_me_t handle;
    lane->port = p;
    lane->to = to;
    lane->number = number;
    lane->out = malloc((size_t)MESSAGES * LONGEST);
    lane->in = calloc(MESSAGES, LONGEST);
    CHECK(lane->out != NULL && lane->in != NULL);
    OK(PtlEQAlloc(p->ni, 2 * MESSAGES, &lane->eq)); /* puts, then gets */
    OK(PtlPTAlloc(p->ni, 0, lane->eq, PTL_PT_ANY, &lane->pt));
    ptl_me_t me = port_entry(p, lane->in, (size_t)MESSAGES * LONGEST,
                             PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE);
    OK(port_append_code(p, lane->pt, &me, lane, &handle));
    lane->ct = port_ct(p);
    lane->md = port_quiet_md(p, lane->out, (size_t)MESSAGES * LONGEST,
                             PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, lane->ct);
}

static void free_lane(struct lane *lane)
{
    free(lane->out);
    free(lane->in);
}

static size_t lane_length(int i)
{
    uint64_t seed = (uint64_t)i;
    uint64_t r = splitmix(&seed);
    return r % 3 == 0 ? r / 3 % LONGEST : r / 3 % 64;
}

/* Puts, and in between takes what arrives in order; then gets some back. */
static void *run_lane(void *arg)
{
    struct lane *l = arg;
    int next = 0;
    for (int i = 0; i < MESSAGES; i++) {
        ptl_size_t at = (ptl_size_t)i * LONGEST;
        ptest_fill(l->out + at, lane_length(i), (unsigned)i);
        OK(PtlPut(l->md, at, lane_length(i), PTL_CT_ACK_REQ, l->to, l->pt, 0, at, NULL,
                  (ptl_hdr_data_t)(l->number * 10000 + i)));
        ptl_event_t event;
        int code = PTL_EQ_EMPTY;
        while (next < MESSAGES && (code = PtlEQGet(l->eq, &event)) == PTL_OK) {
            CHECK_EQ(event.hdr_data, l->number * 10000 + next);
            CHECK_FILL((unsigned char *)event.start, event.mlength, (unsigned)next);
            next++;
        }
        CHECK(next == MESSAGES || code == PTL_EQ_EMPTY);
    }
    for (; next < MESSAGES; next++) {
        ptl_event_t event = EVENT(l->eq, PTL_EVENT_PUT);
        CHECK_EQ(event.hdr_data, l->number * 10000 + next);
        CHECK_EQ(event.user_ptr, l);
        CHECK_EQ(event.mlength, lane_length(next));
        CHECK_FILL((unsigned char *)event.start, event.mlength, (unsigned)next);
    }
    port_wait_ct(l->ct, MESSAGES);
    memset(l->out, 0, (size_t)MESSAGES * LONGEST);
    for (int i = 0; i < MESSAGES; i += 10) {
        OK(PtlGet(l->md, (ptl_size_t)i * LONGEST, lane_length(i), l->to, l->pt, 0,
                  (ptl_size_t)i * LONGEST, NULL));
    }
    port_wait_ct(l->ct, MESSAGES + (MESSAGES + 9) / 10);
    for (int i = 0; i < MESSAGES; i += 10) {
        CHECK_FILL(l->out + (size_t)i * LONGEST, lane_length(i), (unsigned)i);
    }
    return NULL;
}

static void run_lanes(struct lane *lanes, int n)
{
    for (int i = 0; i < n; i++) {
        CHECK_EQ(pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        CHECK_EQ(pthread_join(lanes[i].thread, NULL), 0);
    }
}

PTEST_KINDS(one_interface, 2)
{
    struct port p;
    struct lane lanes[THREADS];
    port_open(&p, kind, rank, size);
    for (int i = 0; i < THREADS; i++) {
        make_lane(&lanes[i], &p, p.id[1 - rank], i);
    }
    BARRIER();
    run_lanes(lanes, THREADS);
    port_close(&p);
    for (int i = 0; i < THREADS; i++) {
        free_lane(&lanes[i]);
    }
}

PTEST(threads_to_self, 1)
{
    struct port p;
    struct lane lanes[THREADS];
    port_open(&p, KIND_MP, rank, size);
    for (int i = 0; i < THREADS; i++) {
        make_lane(&lanes[i], &p, p.id[0], i);
    }
    run_lanes(lanes, THREADS);
    port_close(&p);
    for (int i = 0; i < THREADS; i++) {
        free_lane(&lanes[i]);
    }
}

PTEST(own_interfaces, 2)
{
    static const unsigned kinds[4] = {KIND_ML, KIND_MP, KIND_NL, KIND_NP};
    struct port p[4];
    struct lane lanes[THREADS];
    for (int i = 0; i < 4; i++) {
        port_open(&p[i], kinds[i], rank, size);
    }
    for (int i = 0; i < THREADS; i++) {
        make_lane(&lanes[i], &p[i % 4], p[i % 4].id[1 - rank], i);
    }
    BARRIER();
    run_lanes(lanes, THREADS);
    for (int i = 3; i >= 0; i--) {
        port_close(&p[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        free_lane(&lanes[i]);
    }
}

/* Opens the two NICs of PINWHEEL_IFACES. */
static void open_two_nics(struct port *p, unsigned kind, int rank, int size)
{
    setenv("PINWHEEL_IFACES", "127.0.0.1,127.0.0.2", 1);
    for (unsigned i = 0; i < 2; i++) {
        port_open_with(&p[i], PTL_IFACE_DEFAULT + i, kind, rank, size, NULL);
        CHECK_EQ(p[i].phys[rank].phys.nid, 0x7f000001 + i);
    }
    CHECK(p[0].ni != p[1].ni);
    ptl_handle_ni_t ni;
    INVALID(PtlNIInit(PTL_IFACE_DEFAULT + 2, kind, PTL_PID_ANY, NULL, NULL, &ni));
}

/* Two NICs of one process talk like two processes: thread i of one with thread
 * i of the other. */
PTEST(two_nics_of_one_process, 1)
{
    struct port p[2];
    struct lane lanes[THREADS];
    open_two_nics(p, KIND_MP, rank, size);
    for (int i = 0; i < THREADS; i++) {
        make_lane(&lanes[i], &p[i % 2], p[1 - i % 2].phys[0], i / 2);
    }
    run_lanes(lanes, THREADS);
    port_close(&p[1]);
    port_close(&p[0]);
    for (int i = 0; i < THREADS; i++) {
        free_lane(&lanes[i]);
    }
}

/* Two NICs of each of two processes, as rails: lane i leaves through NIC i % 2
 * and arrives through NIC (i + crossed) % 2. */
PTEST(two_rails, 2)
{
    struct port p[2];
    struct lane lanes[THREADS];
    open_two_nics(p, KIND_NP, rank, size);
    for (int i = 0; i < THREADS; i++) {
        int mine = i % 2, theirs = i < THREADS / 2 ? mine : 1 - mine;
        make_lane(&lanes[i], &p[mine], p[theirs].phys[1 - rank], 0);
    }
    /* lanes that cross over meet the one with the same portal table index */
    BARRIER();
    run_lanes(lanes, THREADS);
    port_close(&p[1]);
    port_close(&p[0]);
    for (int i = 0; i < THREADS; i++) {
        free_lane(&lanes[i]);
    }
}

/* Objects are made, used and freed by all threads at once. */
static void *churn(void *arg)
{
    struct port *p = arg;
    static unsigned char memory[64];
    for (int i = 0; i < 300; i++) {
        ptl_handle_eq_t eq;
        ptl_pt_index_t pt;
        ptl_handle_me_t entry;
        ptl_event_t event;
        unsigned which;
        ptl_handle_ct_t ct = port_ct(p);
        OK(PtlEQAlloc(p->ni, 4, &eq));
        OK(PtlPTAlloc(p->ni, 0, eq, PTL_PT_ANY, &pt));
        ptl_me_t me = port_entry(p, memory, sizeof(memory),
                                 PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE);
        me.ct_handle = ct;
        OK(port_append_code(p, pt, &me, &me, &entry));
        ptl_handle_md_t md = port_quiet_md(p, NULL, 0, 0, PTL_CT_NONE);
        OK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, p->id[p->rank], pt, 0, 0, NULL, 0));
        OK(PtlEQPoll(&eq, 1, 10000u * (unsigned)ptest_slow(), &event, &which));
        CHECK_EQ(event.user_ptr, &me);
        port_wait_ct(ct, 1);
        port_unlink(p, entry);
        OK(PtlPTFree(p->ni, pt));
        OK(PtlEQFree(eq));
        OK(PtlCTFree(ct));
        port_release(md);
    }
    return NULL;
}

PTEST_KINDS(churning, 1)
{
    struct port p;
    pthread_t thread[THREADS];
    port_open(&p, kind, rank, size);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&thread[i], NULL, churn, &p), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    }
    port_close(&p);
}

/* Threads that open and close the library and its interface for themselves. */
static void *open_and_close(void *arg)
{
    for (int i = 0; i < 20; i++) {
        ptl_handle_ni_t ni;
        ptl_process_t id;
        OK(PtlInit());
        OK(PtlNIInit(PTL_IFACE_DEFAULT, *(unsigned *)arg, PTL_PID_ANY, NULL, NULL, &ni));
        OK(PtlGetPhysId(ni, &id));
        OK(PtlNIFini(ni));
        PtlFini();
    }
    return NULL;
}

PTEST(opening, 1)
{
    unsigned kinds[4] = {KIND_ML, KIND_MP, KIND_NL, KIND_NP};
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&thread[i], NULL, open_and_close, &kinds[i % 4]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(thread[i], NULL), 0);
    }
}

/* A thread in one of the calls that wait, for what never comes. */
struct waiter {
    struct port *port;
    ptl_handle_ct_t ct;
    unsigned call;
    _Atomic pid_t tid;
    int code;
    pthread_t thread;
};

enum { WAITING_CALLS = 4 };

static void *wait_in_vain(void *arg)
{
    struct waiter *w = arg;
    ptl_handle_eq_t eqs[2] = {w->port->eq, w->port->mdeq};
    ptl_event_t event;
    ptl_ct_event_t value;
    ptl_size_t test = 1;
    unsigned which;
    w->tid = gettid();
    switch (w->call) {
    case 0:
        w->code = PtlEQWait(eqs[0], &event);
        break;
    case 1:
        w->code = PtlEQPoll(eqs, 2, PTL_TIME_FOREVER, &event, &which);
        break;
    case 2:
        w->code = PtlCTWait(w->ct, test, &value);
        break;
    default:
        w->code = PtlCTPoll(&w->ct, &test, 1, PTL_TIME_FOREVER, &value, &which);
    }
    return NULL;
}

/* Whether a thread sleeps: then it is inside its call. */
static bool sleeps(pid_t tid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
    FILE *f = fopen(path, "r");
    CHECK(f != NULL);
    size_t got = fread(line, 1, sizeof(line) - 1, f);
    fclose(f);
    line[got] = '\0';
    const char *name_end = strrchr(line, ')');
    return name_end != NULL && strncmp(name_end, ") S", 3) == 0;
}

static void start_waiters(struct port *p, struct waiter waiters[WAITING_CALLS])
{
    for (unsigned i = 0; i < WAITING_CALLS; i++) {
        struct waiter *w = &waiters[i];
        *w = (struct waiter){.port = p, .ct = port_ct(p), .call = i};
        CHECK_EQ(pthread_create(&w->thread, NULL, wait_in_vain, w), 0);
    }
    for (unsigned i = 0; i < WAITING_CALLS; i++) {
        while (waiters[i].tid == 0 || !sleeps(waiters[i].tid)) {
            ptest_sleep_ms(1);
        }
    }
}

/* 3.6: PtlNIFini ends the waits for what it frees, and none of another interface. */
PTEST_KINDS(closing, 1)
{
    struct port p, other;
    struct waiter ended[WAITING_CALLS], untouched[WAITING_CALLS];
    port_open(&p, kind, rank, size);
    port_open(&other, kind == KIND_ML ? KIND_NP : KIND_ML, rank, size);
    start_waiters(&other, untouched);
    start_waiters(&p, ended);
    port_close(&p);
    for (unsigned i = 0; i < WAITING_CALLS; i++) {
        CHECK_EQ(pthread_join(ended[i].thread, NULL), 0);
        CHECK_EQ(ended[i].code, PTL_ARG_INVALID);
    }
    for (unsigned i = 0; i < WAITING_CALLS; i++) {
        CHECK_EQ(pthread_tryjoin_np(untouched[i].thread, NULL), EBUSY);
    }
    PtlAbort();
    for (unsigned i = 0; i < WAITING_CALLS; i++) {
        CHECK_EQ(pthread_join(untouched[i].thread, NULL), 0);
        CHECK_EQ(untouched[i].code, PTL_ABORTED);
    }
    port_close(&other);
}

/* 3.5: the last PtlFini closes the interfaces: waits end as with PtlNIFini, or for want of the
 * library. */
PTEST_KINDS(finishing, 1)
{
    struct port p;
    struct waiter waiters[WAITING_CALLS];
    port_open(&p, kind, rank, size);
    start_waiters(&p, waiters);
    PtlFini();
    for (unsigned i = 0; i < WAITING_CALLS; i++) {
        CHECK_EQ(pthread_join(waiters[i].thread, NULL), 0);
        CHECK(waiters[i].code == PTL_ARG_INVALID || waiters[i].code == PTL_NO_INIT);
    }
}
