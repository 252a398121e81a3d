/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection is new once: a few messages meet pages that their process has not mapped yet, and
 * all others none, at both ends; the first 1,000 of one cell need the first cells only; and a
 * connection of short messages maps none.
 * Pages are counted in the process's own page table, for the mappings of segments.
 */
#include "port.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FIRST = 1000,
    MOST_FRESH = 20,  /* messages that meet new pages */
    MOST_FIRST = 200, /* pages that the first 1,000 messages of one cell need, both ways */
    MOST_SHORT = 32,  /* pages that short messages need: headers, rings */
    LONGEST = 65536,
    BATCH = 4096
};

static unsigned char source[LONGEST], memory[LONGEST];

/* Pages of [from, to) in this process's page table. */
static uint64_t present(int pagemap, uint64_t from, uint64_t to)
{
    static uint64_t words[BATCH];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), found = 0;
    for (uint64_t at = from / page, end = to / page; at < end;) {
        uint64_t n = end - at < BATCH ? end - at : BATCH;
        CHECK_EQ(pread(pagemap, words, n * sizeof(words[0]), (off_t)(at * sizeof(words[0]))),
                 n * sizeof(words[0]));
        for (uint64_t i = 0; i < n; i++) {
            found += words[i] >> 63;
        }
        at += n;
    }
    return found;
}

enum { RANGES = 16 };
static struct {
    uint64_t from, to;
} ranges[RANGES];
static unsigned range_count;

/* The mappings of segments: own, and of the peer. */
static void find_segments(void)
{
    const char *folder = getenv("PINWHEEL_SHM_DIR");
    char line[1024], path[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    CHECK(maps != NULL);
    folder = folder != NULL ? folder : "/dev/shm";
    while (fgets(line, sizeof(line), maps) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %511s", &from, &to, path) == 3 &&
            strncmp(path, folder, strlen(folder)) == 0) {
            CHECK(range_count < RANGES);
            ranges[range_count].from = from;
            ranges[range_count++].to = to;
        }
    }
    fclose(maps);
}

static uint64_t mapped(int pagemap)
{
    uint64_t found = 0;
    for (unsigned i = 0; i < range_count; i++) {
        found += present(pagemap, ranges[i].from, ranges[i].to);
    }
    return found;
}

struct pair {
    struct port p;
    ptl_handle_md_t md;
    ptl_handle_ct_t ct;
    uint64_t taken;
};

/* Each sends the other a message. */
static void exchange(struct pair *a, size_t length)
{
    for (int turn = 0; turn < 2; turn++) {
        if (turn == a->p.rank) {
            OK(PtlPut(a->md, 0, length, PTL_NO_ACK_REQ, a->p.id[1 - turn], a->p.pt, 0, 0, NULL, 0));
        } else {
            port_wait_ct(a->ct, ++a->taken);
        }
    }
}

static void open_pair(struct pair *a, int rank, int size)
{
    setenv("PINWHEEL_SHM_PEERS", "2", 1); /* pages to look at: less */
    setenv("PINWHEEL_SHM_LARGE", "cells", 1);
    port_open(&a->p, KIND_MP, rank, size);
    a->ct = port_ct(&a->p);
    ptl_me_t me = port_entry(&a->p, memory, LONGEST,
                             PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
                                 PTL_ME_EVENT_CT_COMM);
    me.ignore_bits = 0;
    me.ct_handle = a->ct;
    port_append(&a->p, &me, NULL);
    a->md = port_quiet_md(&a->p, source, LONGEST, 0, PTL_CT_NONE);
    BARRIER();
    exchange(a, 8);
    BARRIER();
    find_segments();
    CHECK(range_count >= 2);
}

static void close_pair(struct pair *a)
{
    BARRIER();
    port_release(a->md);
    port_close(&a->p);
}

/* So many messages each way; gives how many pages they brought into the page table. */
static uint64_t send_fresh(struct pair *a, int pagemap, int messages, size_t length)
{
    unsigned fresh = 0;
    uint64_t before = mapped(pagemap), begun = before;
    for (int i = 0; i < messages; i++) {
        exchange(a, length);
        uint64_t now = mapped(pagemap);
        fresh += now != before;
        before = now;
    }
    printf("rank %d, %zu bytes: %u of %d messages each way met new pages, %u pages\n", a->p.rank,
           length, fresh, messages, (unsigned)(before - begun));
    CHECK(fresh <= MOST_FRESH);
    return before - begun;
}

PTEST_LIMIT(few_messages_meet_new_pages, 2, 60)
{
    struct pair a = {.taken = 0};
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    CHECK(pagemap >= 0);
    open_pair(&a, rank, size);
    uint64_t pages = send_fresh(&a, pagemap, FIRST, 1025);
    CHECK(pages > 0 && pages <= MOST_FIRST);
    /* Many long ones use all cells. */
    CHECK(send_fresh(&a, pagemap, FIRST, LONGEST) > MOST_FIRST);
    close(pagemap);
    close_pair(&a);
}

PTEST(short_messages_map_no_cells, 2)
{
    struct pair a = {.taken = 0};
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    CHECK(pagemap >= 0);
    open_pair(&a, rank, size);
    for (int i = 0; i < FIRST; i++) {
        exchange(&a, i % 1024);
    }
    uint64_t pages = mapped(pagemap);
    printf("rank %d: %u pages\n", rank, (unsigned)pages);
    CHECK(pages > 0 && pages <= MOST_SHORT);
    close(pagemap);
    close_pair(&a);
}
