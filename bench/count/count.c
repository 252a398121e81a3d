/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of a row: its NICs, its two marks, what it checks; see count.h. */
#include "count.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

enum {
    EVENTS = 4096,
    PID_A = 2001,
    PID_B = 2002,
    PIECE = 128,       /* operations between two looks for other threads: a lap of a ring */
    IN_VAIN_MOST = 500 /* pieces that other threads may spoil */
};

struct count_nic count_a, count_b;
static uint8_t memory[4][COUNT_BYTES];

void count_fail(const char *what, int code)
{
    fprintf(stderr, "count: %s gave %d\n", what, code);
    exit(1);
}

struct count_mark count_mark(const struct count_nic *n)
{
    struct count_mark m = {.reached = 0};
    count_ok(PtlCTAlloc(n->ni, &m.ct), "PtlCTAlloc");
    return m;
}

void count_is(const struct count_mark *m, ptl_size_t success)
{
    ptl_ct_event_t now;
    count_ok(PtlCTGet(m->ct, &now), "PtlCTGet");
    if (now.success != success || now.failure != 0) {
        fprintf(stderr, "count: a counter is at %llu, with %llu failures, not at %llu\n",
                (unsigned long long)now.success, (unsigned long long)now.failure,
                (unsigned long long)success);
        exit(1);
    }
}

struct count_mark count_entry(const struct count_nic *n, ptl_match_bits_t bits, unsigned options,
                              const ptl_handlers_t *handlers)
{
    struct count_mark m = count_mark(n);
    ptl_handle_me_t handle;
    ptl_me_t me = {.start = n->in,
                   .length = COUNT_BYTES,
                   .ct_handle = m.ct,
                   .uid = PTL_UID_ANY,
                   .options = options | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .match_bits = bits};
    count_ok(
        PtlMEAppendHandlers(n->ni, n->counted, &me, handlers, PTL_PRIORITY_LIST, NULL, &handle),
        "PtlMEAppendHandlers");
    return m;
}

ptl_handle_md_t count_md(const struct count_nic *n, unsigned options, ptl_handle_eq_t eq,
                         ptl_handle_ct_t ct)
{
    ptl_handle_md_t handle;
    ptl_md_t md = {.start = n->out,
                   .length = COUNT_BYTES,
                   .options = options,
                   .eq_handle = eq,
                   .ct_handle = ct};
    count_ok(PtlMDBind(n->ni, &md, &handle), "PtlMDBind");
    return handle;
}

static void open_nic(struct count_nic *n, unsigned i)
{
    count_ok(PtlNIInit(PTL_IFACE_DEFAULT + i, PTL_NI_MATCHING | PTL_NI_PHYSICAL,
                       i == 0 ? PID_A : PID_B, NULL, NULL, &n->ni),
             "PtlNIInit");
    count_ok(PtlGetPhysId(n->ni, &n->id), "PtlGetPhysId");
    count_ok(PtlEQAlloc(n->ni, EVENTS, &n->sent), "PtlEQAlloc");
    count_ok(PtlEQAlloc(n->ni, EVENTS, &n->received), "PtlEQAlloc");
    count_ok(PtlPTAlloc(n->ni, 0, PTL_EQ_NONE, 0, &n->counted), "PtlPTAlloc");
    count_ok(PtlPTAlloc(n->ni, 0, n->received, 1, &n->full), "PtlPTAlloc");
    n->in = memory[i];
    n->out = memory[2 + i];
}

/* The NIC thread and what a wait learns look at the clock, as seldom as they can be told to. */
static void steady(const char *fabric, const char *hpu)
{
    setenv("PINWHEEL_IFACES", "127.0.0.1,127.0.0.2", 1);
    setenv("PINWHEEL_FABRIC", fabric, 1);
    setenv("PINWHEEL_UDP_OPEN", "1", 1);
    setenv("PINWHEEL_CONNECT_MS", "60000", 1);
    setenv("PINWHEEL_LEASE_US", "1000000", 1);
    setenv("PINWHEEL_SPIN_US", "1000000", 1);
    setenv("PINWHEEL_HPU", hpu, 1);
    setenv("PINWHEEL_HPUS", "0", 1);
    setenv("PINWHEEL_HANDLER_BUDGET_US", "0", 1);
}

static void serve(const struct count_row *row, unsigned operations, bool counted)
{
    for (unsigned done = 0; done < operations; done += row->each) {
        if (row->arm != NULL) {
            row->arm();
        }
        if (counted) {
            CALLGRIND_TOGGLE_COLLECT;
        }
        row->run();
        if (counted) {
            CALLGRIND_TOGGLE_COLLECT;
        }
    }
}

/* Adds up how often a thread has gone to sleep or lost the core; false: it does not sleep now. */
static bool look_at(const char *thread, unsigned long *switches)
{
    char path[300], line[256], state = 'S';
    snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread);
    FILE *status = fopen(path, "re");
    while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
        unsigned long one;
        char *count = strstr(line, "voluntary_ctxt_switches:");
        if (count != NULL && sscanf(strchr(count, ':'), ":%lu", &one) == 1) {
            *switches += one;
        }
        sscanf(line, "State: %c", &state);
    }
    if (status != NULL) {
        fclose(status);
    }
    return state == 'S';
}

/* Whether the other threads sleep, and have since the look before. */
static bool others_slept(void)
{
    static unsigned long before;
    unsigned long switches = 0;
    bool asleep = true;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *d; tasks != NULL && (d = readdir(tasks)) != NULL;) {
        if (d->d_name[0] != '.' && atoi(d->d_name) != getpid()) {
            asleep &= look_at(d->d_name, &switches);
        }
    }
    if (tasks == NULL || switches == 0) {
        count_fail("what /proc/self/task tells of the NIC threads", 0);
    }
    closedir(tasks);
    asleep &= switches == before;
    before = switches;
    return asleep;
}

static unsigned whole(unsigned operations, unsigned each)
{
    return (operations + each - 1) / each * each;
}

/* Serves so many operations and has callgrind write down what they took, a piece at a time. An
 * uncounted piece precedes each, since a NIC thread may have had the NIC and its lock while the
 * last one was written; if another thread has run during either, what was counted is forgotten. It
 * returns how many operations were served in all. */
static unsigned serve_counted(const struct count_row *row, unsigned operations)
{
    unsigned served = 0, in_vain = 0, piece = whole(PIECE, row->each);
    for (unsigned counted = 0; counted < operations; served += 2 * piece) {
        others_slept();
        serve(row, piece, false);
        serve(row, piece, true);
        if (others_slept()) {
            CALLGRIND_DUMP_STATS;
            counted += piece;
        } else if (++in_vain == IN_VAIN_MOST) {
            count_fail("the pieces in which a NIC thread has run, the most allowed,", IN_VAIN_MOST);
        } else {
            CALLGRIND_ZERO_STATS;
        }
    }
    return served;
}

int count_main(int argc, char **argv, const char *fabric, const struct count_row *rows)
{
    const struct count_row *row = rows;
    while (row->name != NULL && (argc != 2 || strcmp(row->name, argv[1]) != 0)) {
        row++;
    }
    if (row->name == NULL) {
        fprintf(stderr, "usage: %s ROW, which is one of:", argv[0]);
        for (row = rows; row->name != NULL; row++) {
            fprintf(stderr, " %s", row->name);
        }
        fprintf(stderr, "\n");
        return 2;
    }
    steady(fabric, row->hpu);
    count_ok(PtlInit(), "PtlInit");
    open_nic(&count_a, 0);
    open_nic(&count_b, 1);
    row->open();
    unsigned warm = whole(COUNT_WARM, row->each), counted = whole(COUNT_ROUNDS, row->each);
    serve(row, warm, false);
    row->verify(warm + serve_counted(row, counted));
    printf("%u\n", counted);
    PtlNIFini(count_b.ni);
    PtlNIFini(count_a.ni);
    PtlFini();
    return 0;
}
