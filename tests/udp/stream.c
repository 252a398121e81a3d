/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of messages of 1 MiB from one host to another, started by loss.sh:
 *
 *   udp_stream from|to COUNT FROM:PID TO:PID
 *
 * Who sends has UNDER_WAY of them acknowledged at a time and prints the bytes in a nanosecond from
 * its first call to the last acknowledgement. Each message has its place at the receiver, which
 * looks at every byte at the end.
 */
#include "portals4.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGE = 1 << 20, UNDER_WAY = 4, COUNT_MOST = 1024, INDEX = 3, TRIES = 2000 };

static ptl_process_t peer[2];
static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq;
static const char *side;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s, line %d: %s\n", side, __LINE__, #condition);                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) CHECK((call) == PTL_OK)

static void read_peer(ptl_process_t *p, const char *name)
{
    char address[32];
    unsigned pid;
    struct in_addr in;
    CHECK(sscanf(name, "%31[^:]:%u", address, &pid) == 2 && inet_pton(AF_INET, address, &in) == 1);
    p->phys.nid = ntohl(in.s_addr);
    p->phys.pid = (ptl_pid_t)pid;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fill(unsigned char *p, unsigned message)
{
    for (size_t i = 0; i < LARGE; i++) {
        p[i] = (unsigned char)(i * 7 + i / 251 + message * 31);
    }
}

static void open_ni(unsigned self)
{
    ptl_pt_index_t index;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, peer[self].phys.pid, NULL,
                 NULL, &ni));
    OK(PtlEQAlloc(ni, 4096, &eq));
    OK(PtlPTAlloc(ni, 0, eq, INDEX, &index));
}

static ptl_event_t await(ptl_event_kind_t type)
{
    ptl_event_t event;
    OK(PtlEQWait(eq, &event));
    CHECK(event.type == type);
    return event;
}

static void receive(unsigned count)
{
    unsigned char *place = malloc((size_t)count * LARGE), *expected = malloc(LARGE);
    ptl_handle_le_t handle;
    CHECK(place != NULL && expected != NULL);
    memset(place, 0, (size_t)count * LARGE);
    ptl_le_t le = {.start = place,
                   .length = (ptl_size_t)count * LARGE,
                   .ct_handle = PTL_CT_NONE,
                   .uid = PTL_UID_ANY,
                   .options = PTL_LE_OP_PUT | PTL_LE_EVENT_LINK_DISABLE};
    OK(PtlLEAppend(ni, INDEX, &le, PTL_PRIORITY_LIST, NULL, &handle));
    for (unsigned i = 0; i < count;) {
        ptl_event_t event = await(PTL_EVENT_PUT);
        CHECK(event.ni_fail_type == PTL_NI_OK && event.hdr_data == i);
        i += event.mlength == LARGE; /* else it asks whether we are there */
    }
    for (unsigned i = 0; i < count; i++) {
        fill(expected, i);
        CHECK(memcmp(place + (size_t)i * LARGE, expected, LARGE) == 0);
    }
}

/* The receiver starts when it likes. */
static void meet(ptl_handle_md_t md)
{
    ptl_ni_fail_t fail = PTL_NI_UNDELIVERABLE;
    for (int i = 0; i < TRIES && fail != PTL_NI_OK; i++) {
        struct timespec pause = {0, i == 0 ? 0 : 10000000};
        nanosleep(&pause, NULL);
        OK(PtlPut(md, 0, 0, PTL_ACK_REQ, peer[1], INDEX, 0, 0, NULL, 0));
        fail = await(PTL_EVENT_ACK).ni_fail_type;
    }
    CHECK(fail == PTL_NI_OK);
}

static void transmit(unsigned count)
{
    unsigned char *place = malloc((size_t)count * LARGE);
    CHECK(place != NULL);
    for (unsigned i = 0; i < count; i++) {
        fill(place + (size_t)i * LARGE, i);
    }
    ptl_handle_md_t md;
    ptl_md_t m = {.start = place,
                  .length = (ptl_size_t)count * LARGE,
                  .options = PTL_MD_EVENT_SEND_DISABLE,
                  .eq_handle = eq,
                  .ct_handle = PTL_CT_NONE};
    OK(PtlMDBind(ni, &m, &md));
    meet(md);
    double begun = seconds();
    for (unsigned i = 0; i < count + UNDER_WAY; i++) {
        if (i >= UNDER_WAY) {
            CHECK(await(PTL_EVENT_ACK).ni_fail_type == PTL_NI_OK);
        }
        if (i < count) {
            ptl_size_t at = (ptl_size_t)i * LARGE;
            OK(PtlPut(md, at, LARGE, PTL_ACK_REQ, peer[1], INDEX, 0, at, NULL, i));
        }
    }
    printf("%.3f\n", (double)count * LARGE / (seconds() - begun) * 1e-9);
}

int main(int argc, char **argv)
{
    side = argc > 1 ? argv[1] : "";
    CHECK(argc == 5);
    bool sends = strcmp(side, "from") == 0;
    unsigned count = (unsigned)atoi(argv[2]);
    CHECK(count > 0 && count <= COUNT_MOST);
    read_peer(&peer[0], argv[3]);
    read_peer(&peer[1], argv[4]);
    open_ni(sends ? 0 : 1);
    if (sends) {
        transmit(count);
    } else {
        receive(count);
    }
    PtlFini();
    return 0;
}
