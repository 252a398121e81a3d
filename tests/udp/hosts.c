/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process of several, on one host or many, that know each other's addresses and nothing
 * else: hosts.sh starts them.
 *
 *   udp_hosts MODE INDEX ADDRESS:PID ADDRESS:PID ...
 *
 *   all     everybody puts BYTES to everybody and gets them back
 *   watched the same, and puts of nothing until the file UDP_HOSTS_MARKS/seen is there, so that
 *           somebody can look on
 *   alone   the others cannot be reached: a put to each is UNDELIVERABLE
 *   victim  the last process is killed while the others talk to it: they hear of it
 *   outage  puts go well, then those to other hosts do not, then all do again; files in the
 *           folder UDP_HOSTS_MARKS say so: met.INDEX, cut.INDEX from here, back from there
 *   puts    the first process puts 8 bytes to the second one, PUTS times, each after the
 *           acknowledgement of the one before; files say when it may begin (met.0, go) and go on
 *           after the first quarter (begun.0, on)
 *   taken   somebody else has the port of the process: PtlNIInit says so
 */
#include "portals4.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST = 16,
    BYTES = 1 << 20,
    INDEX = 3,
    TRIES = 2000,
    PUTS = 12000,
    END_BITS = 1,
    DATA_BITS = 2
};

static unsigned char mine[BYTES], theirs[MOST][BYTES], back[BYTES];
static ptl_process_t peer[MOST];
static int self, size;
static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq, md_eq;
static ptl_handle_ct_t ended;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "process %d, line %d: %s\n", self, __LINE__, #condition);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) CHECK((call) == PTL_OK)

static void fill(unsigned char *p, int from, int to)
{
    for (size_t i = 0; i < BYTES; i++) {
        p[i] = (unsigned char)(i * 7 + i / 251 + (size_t)from * 31 + (size_t)to * 101);
    }
}

static void read_peers(char **names)
{
    for (int i = 0; i < size; i++) {
        char address[32];
        unsigned pid;
        struct in_addr in;
        CHECK(sscanf(names[i], "%31[^:]:%u", address, &pid) == 2);
        CHECK(inet_pton(AF_INET, address, &in) == 1);
        peer[i].phys.nid = ntohl(in.s_addr);
        peer[i].phys.pid = (ptl_pid_t)pid;
    }
}

static void add_entry(void *start, ptl_size_t length, ptl_match_bits_t bits)
{
    ptl_handle_me_t handle;
    ptl_event_t event;
    ptl_me_t me = {.start = start,
                   .length = length,
                   .ct_handle = bits == END_BITS ? ended : PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE |
                              (bits == END_BITS ? PTL_ME_EVENT_CT_COMM : 0),
                   .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                   .match_bits = bits};
    OK(PtlMEAppend(ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle));
    OK(PtlEQWait(eq, &event));
    CHECK(event.type == PTL_EVENT_LINK);
}

static void open_all(void)
{
    ptl_pt_index_t index;
    ptl_process_t id;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, peer[self].phys.pid, NULL,
                 NULL, &ni));
    OK(PtlGetPhysId(ni, &id));
    CHECK(id.phys.nid == peer[self].phys.nid && id.phys.pid == peer[self].phys.pid);
    OK(PtlEQAlloc(ni, 64, &eq));
    OK(PtlEQAlloc(ni, 64, &md_eq));
    OK(PtlCTAlloc(ni, &ended));
    OK(PtlPTAlloc(ni, 0, eq, INDEX, &index));
    add_entry(theirs, sizeof(theirs), DATA_BITS);
    add_entry(NULL, 0, END_BITS);
}

static ptl_handle_md_t bind_memory(void *start, ptl_size_t length)
{
    ptl_handle_md_t md;
    ptl_md_t m = {.start = start,
                  .length = length,
                  .options = PTL_MD_EVENT_SEND_DISABLE,
                  .eq_handle = md_eq,
                  .ct_handle = PTL_CT_NONE};
    OK(PtlMDBind(ni, &m, &md));
    return md;
}

static ptl_ni_fail_t await(ptl_event_kind_t type)
{
    ptl_event_t event;
    OK(PtlEQWait(md_eq, &event));
    CHECK(event.type == type);
    return event.ni_fail_type;
}

static ptl_ni_fail_t put(ptl_handle_md_t md, ptl_size_t length, int to, ptl_match_bits_t bits)
{
    ptl_size_t offset = bits == DATA_BITS ? (ptl_size_t)self * BYTES : 0;
    OK(PtlPut(md, 0, length, PTL_ACK_REQ, peer[to], INDEX, bits, offset, NULL, 0));
    return await(PTL_EVENT_ACK);
}

/* The others start when they like: a peer that is not there yet, or has no entry yet, is asked
 * again. */
static void meet(int to)
{
    ptl_handle_md_t md = bind_memory(mine, 0);
    ptl_ni_fail_t fail = PTL_NI_UNDELIVERABLE;
    for (int i = 0; i < TRIES && fail != PTL_NI_OK; i++) {
        struct timespec pause = {0, i == 0 ? 0 : 10000000};
        nanosleep(&pause, NULL);
        fail = put(md, 0, to, DATA_BITS);
        CHECK(fail == PTL_NI_OK || fail == PTL_NI_UNDELIVERABLE || fail == PTL_NI_DROPPED);
    }
    CHECK(fail == PTL_NI_OK);
    OK(PtlMDRelease(md));
}

static void talk_to_all(void)
{
    ptl_handle_md_t out = bind_memory(mine, BYTES), in = bind_memory(back, BYTES);
    ptl_ct_event_t count;
    for (int to = 0; to < size; to++) {
        meet(to);
        fill(mine, self, to);
        CHECK(put(out, BYTES, to, DATA_BITS) == PTL_NI_OK);
        memset(back, 0, sizeof(back));
        OK(PtlGet(in, 0, BYTES, peer[to], INDEX, DATA_BITS, (ptl_size_t)self * BYTES, NULL));
        CHECK(await(PTL_EVENT_REPLY) == PTL_NI_OK);
        CHECK(memcmp(back, mine, BYTES) == 0);
    }
    for (int to = 0; to < size; to++) {
        CHECK(put(out, 0, to, END_BITS) == PTL_NI_OK);
    }
    OK(PtlCTWait(ended, (ptl_size_t)size, &count));
    CHECK(count.success >= (ptl_size_t)size && count.failure == 0);
    for (int from = 0; from < size; from++) {
        fill(mine, from, self);
        CHECK(memcmp(theirs[from], mine, BYTES) == 0);
    }
}

static bool is_marked(const char *what)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", getenv("UDP_HOSTS_MARKS"), what);
    return access(path, F_OK) == 0;
}

static void talk_on(void)
{
    ptl_handle_md_t md = bind_memory(mine, 0); /* nothing: others still check what they have */
    ptl_ct_event_t count;
    while (!is_marked("seen")) {
        for (int to = 0; to < size; to++) {
            CHECK(put(md, 0, to, DATA_BITS) == PTL_NI_OK);
        }
    }
    for (int to = 0; to < size; to++) {
        CHECK(put(md, 0, to, END_BITS) == PTL_NI_OK);
    }
    OK(PtlCTWait(ended, 2 * (ptl_size_t)size, &count));
}

static void mark(const char *what)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s.%d", getenv("UDP_HOSTS_MARKS"), what, self);
    FILE *f = fopen(path, "we");
    CHECK(f != NULL && fclose(f) == 0);
}

static void await_mark(const char *what)
{
    while (!is_marked(what)) {
        struct timespec pause = {0, 10000000};
        nanosleep(&pause, NULL);
    }
}

/* Whoever is on this host stays in reach all the time. */
static void live_through_outage(void)
{
    ptl_handle_md_t md = bind_memory(mine, BYTES);
    for (int to = 0; to < size; to++) {
        meet(to);
    }
    mark("met");
    for (int to = 0; to < size; to++) {
        ptl_ni_fail_t fail = PTL_NI_OK;
        if (peer[to].phys.nid == peer[self].phys.nid) {
            CHECK(put(md, 0, to, DATA_BITS) == PTL_NI_OK);
            continue;
        }
        while (fail == PTL_NI_OK) {
            fail = put(md, BYTES, to, DATA_BITS);
        }
        CHECK(fail == PTL_NI_UNDELIVERABLE);
    }
    mark("cut");
    await_mark("back");
    OK(PtlMDRelease(md));
    talk_to_all();
}

static void find_port_taken(void)
{
    OK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, peer[self].phys.pid, NULL,
                    NULL, &ni) == PTL_PID_IN_USE);
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                 &ni));
}

static void be_alone(void)
{
    ptl_handle_md_t md = bind_memory(mine, 8);
    for (int to = 0; to < size; to++) {
        if (peer[to].phys.nid != peer[self].phys.nid) {
            CHECK(put(md, 8, to, DATA_BITS) == PTL_NI_UNDELIVERABLE);
        }
    }
}

static void put_on(void)
{
    ptl_handle_md_t md = bind_memory(mine, 8);
    ptl_ct_event_t count;
    if (self == 0) {
        meet(1);
        for (int i = 0; i < PUTS; i++) {
            if (i == 0 || i == PUTS / 4) {
                mark(i == 0 ? "met" : "begun");
                await_mark(i == 0 ? "go" : "on");
            }
            memcpy(mine, &i, sizeof(i));
            CHECK(put(md, 8, 1, DATA_BITS) == PTL_NI_OK);
        }
        CHECK(put(md, 0, 1, END_BITS) == PTL_NI_OK);
    } else {
        OK(PtlCTWait(ended, 1, &count));
        int last = PUTS - 1;
        CHECK(memcmp(theirs[0], &last, sizeof(last)) == 0);
    }
}

/* The victim dies of its own hand once everybody has met it. */
static void lose_victim(void)
{
    ptl_handle_md_t md = bind_memory(mine, BYTES);
    ptl_ct_event_t count;
    ptl_ni_fail_t fail = PTL_NI_OK;
    int victim = size - 1;
    if (self == victim) {
        OK(PtlCTWait(ended, (ptl_size_t)size - 1, &count));
        raise(SIGKILL);
    }
    meet(victim);
    fail = put(md, 0, victim, END_BITS); /* whose acknowledgement may die with the victim */
    while (fail == PTL_NI_OK) {
        fail = put(md, BYTES, victim, DATA_BITS);
    }
    CHECK(fail == PTL_NI_UNDELIVERABLE);
}

int main(int argc, char **argv)
{
    size = argc - 3;
    CHECK(size > 0 && size <= MOST);
    self = atoi(argv[2]);
    CHECK(self >= 0 && self < size);
    read_peers(argv + 3);
    if (strcmp(argv[1], "taken") == 0) {
        find_port_taken();
        PtlFini();
        return 0;
    }
    open_all();
    if (strcmp(argv[1], "all") == 0) {
        talk_to_all();
    } else if (strcmp(argv[1], "watched") == 0) {
        talk_to_all();
        talk_on();
    } else if (strcmp(argv[1], "outage") == 0) {
        live_through_outage();
    } else if (strcmp(argv[1], "puts") == 0) {
        put_on();
    } else if (strcmp(argv[1], "alone") == 0) {
        be_alone();
    } else {
        CHECK(strcmp(argv[1], "victim") == 0);
        lose_victim();
    }
    PtlFini();
    return 0;
}
