/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everybody to everybody, at once: each process puts to all and gets from all,
 * itself included, before it looks at anything that arrives.
 *
 *      outbox   N slots, what others get and what is put to them
 *      inbox    N slots for each source, where puts land
 *      fetched  N slots for each source, where gets land
 *
 * Slot i of process r has the pattern of seed r * 1000 + i.
 */
#include "port.h"

#include <stdlib.h>
#include <string.h>

enum { SLOT = 20480 };

struct load {
    int n; /* slots */
    size_t longest;
    bool puts, gets;
};

static unsigned char *outbox, *inbox, *fetched;

static void make_boxes(const struct load *l, int rank, int size)
{
    outbox = malloc((size_t)l->n * SLOT);
    inbox = calloc((size_t)(l->n * size), SLOT);
    fetched = calloc((size_t)(l->n * size), SLOT);
    CHECK(outbox != NULL && inbox != NULL && fetched != NULL);
    for (int i = 0; i < l->n; i++) {
        ptest_fill(outbox + i * SLOT, SLOT, (unsigned)(rank * 1000 + i));
    }
}

/* The length of the i-th message from one rank to another: many short ones. */
static size_t message_length(const struct load *l, int from, int to, int i)
{
    uint64_t seed = (uint64_t)(from * 100 + to) * 1000 + (unsigned)i;
    uint64_t r = splitmix(&seed);
    return r % 4 != 0 ? r / 8 % 100 : r / 8 % (l->longest + 1);
}

static void send_all(struct port *p, const struct load *l, ptl_pt_index_t get_pt,
                     ptl_handle_ct_t ct)
{
    ptl_handle_md_t put_md = port_quiet_md(p, outbox, (size_t)l->n * SLOT, PTL_MD_EVENT_CT_ACK, ct);
    ptl_handle_md_t get_md =
        port_quiet_md(p, fetched, (size_t)(l->n * p->size) * SLOT, PTL_MD_EVENT_CT_REPLY, ct);
    for (int i = 0; i < l->n; i++) {
        for (int k = 0; k < p->size; k++) {
            int to = (p->rank + k) % p->size;
            ptl_size_t mine = (ptl_size_t)(p->rank * l->n + i) * SLOT;
            ptl_size_t theirs = (ptl_size_t)(to * l->n + i) * SLOT;
            if (l->puts) {
                OK(PtlPut(put_md, (ptl_size_t)i * SLOT, message_length(l, p->rank, to, i),
                          PTL_CT_ACK_REQ, p->id[to], p->pt, 0, mine, NULL,
                          (ptl_hdr_data_t)p->rank << 32 | (unsigned)i));
            }
            if (l->gets) {
                OK(PtlGet(get_md, theirs, message_length(l, to, p->rank, i), p->id[to], get_pt, 0,
                          (ptl_size_t)i * SLOT, NULL));
            }
        }
    }
}

static void check_puts(struct port *p, const struct load *l)
{
    int next[PTEST_RANKS] = {0};
    for (int n = 0; n < l->n * p->size; n++) {
        ptl_event_t event = EVENT(p->eq, PTL_EVENT_PUT);
        int from = (int)(event.hdr_data >> 32), i = (int)(event.hdr_data & 0xffffffff);
        CHECK(from >= 0 && from < p->size);
        CHECK(port_is_from(p, &event, from));
        CHECK_EQ(i, next[from]); /* in order from each process */
        next[from]++;
        CHECK_EQ(event.mlength, message_length(l, from, p->rank, i));
        CHECK_FILL((unsigned char *)event.start, event.mlength, (unsigned)(from * 1000 + i));
    }
}

static void check_boxes(struct port *p, const struct load *l, const unsigned char *box, bool used)
{
    for (int from = 0; from < p->size; from++) {
        for (int i = 0; i < l->n; i++) {
            const unsigned char *slot = box + (size_t)(from * l->n + i) * SLOT;
            size_t length = used ? message_length(l, from, p->rank, i) : 0;
            CHECK_FILL(slot, length, (unsigned)(from * 1000 + i));
            CHECK_BYTES(slot + length, SLOT - length, 0);
        }
    }
}

static void all_to_all(unsigned kind, int rank, int size, const struct load *l)
{
    struct port p;
    ptl_pt_index_t get_pt;
    ptl_handle_me_t handle;
    /* Eight processes greet each other on processors that others may keep busy. */
    setenv("PINWHEEL_CONNECT_MS", "10000", 0);
    port_open(&p, kind, rank, size);
    make_boxes(l, rank, size);
    port_target(&p, inbox, (size_t)(l->n * size) * SLOT, PTL_ME_OP_PUT, NULL);
    OK(PtlPTAlloc(p.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &get_pt));
    ptl_me_t me = port_entry(&p, outbox, (size_t)l->n * SLOT, PTL_ME_OP_GET);
    OK(port_append_code(&p, get_pt, &me, NULL, &handle));
    ptl_handle_ct_t ct = port_ct(&p);
    BARRIER();
    send_all(&p, l, get_pt, ct);
    if (l->puts) {
        check_puts(&p, l);
    }
    port_wait_ct(ct, (uint64_t)(l->n * size * (l->puts + l->gets)));
    check_boxes(&p, l, inbox, l->puts);
    check_boxes(&p, l, fetched, l->gets);
    NO_EVENT(p.eq);
    port_close(&p);
    free(outbox);
    free(inbox);
    free(fetched);
}

PTEST_KINDS(all_to_all_of_8, 8)
{
    struct load l = {.n = 20, .longest = SLOT, .puts = true, .gets = true};
    all_to_all(kind, rank, size, &l);
}

static void tiny(const char *large)
{
    setenv("PINWHEEL_SHM_RING", "2", 1);
    setenv("PINWHEEL_SHM_CELLS", "2", 1);
    setenv("PINWHEEL_SHM_LARGE", large, 1);
}

/* Rings with room for one or two messages: everything waits for everything
 * else, and nothing may wait for ever. */
PTEST(tiny_rings_puts, 4)
{
    struct load l = {.n = 60, .longest = SLOT, .puts = true};
    tiny("cells");
    all_to_all(KIND_ML, rank, size, &l);
}

PTEST(tiny_rings_gets, 4)
{
    struct load l = {.n = 60, .longest = SLOT, .gets = true};
    tiny("cells");
    all_to_all(KIND_NP, rank, size, &l);
}

PTEST(tiny_rings_both, 4)
{
    struct load l = {.n = 60, .longest = SLOT, .puts = true, .gets = true};
    tiny("cells");
    all_to_all(KIND_MP, rank, size, &l);
}

PTEST(tiny_rings_both_vm, 4)
{
    struct load l = {.n = 60, .longest = SLOT, .puts = true, .gets = true};
    tiny("vm");
    all_to_all(KIND_NL, rank, size, &l);
}

PTEST(tiny_rings_few_outstanding, 4)
{
    struct load l = {.n = 60, .longest = SLOT, .puts = true, .gets = true};
    tiny("cells");
    setenv("PINWHEEL_OUTSTANDING", "1", 1);
    setenv("PINWHEEL_SEND_QUEUE", "1", 1);
    all_to_all(KIND_MP, rank, size, &l);
}

PTEST(small_packets, 4)
{
    struct load l = {.n = 40, .longest = SLOT, .puts = true, .gets = true};
    setenv("PINWHEEL_PACKET_SIZE", "64", 1);
    setenv("PINWHEEL_SHM_INLINE", "0", 1);
    setenv("PINWHEEL_SHM_LARGE", "cells", 1);
    all_to_all(KIND_ML, rank, size, &l);
}

/* Without membarrier every sender fences; the outcome is the same. */
PTEST(without_membarrier, 4)
{
    struct load l = {.n = 40, .longest = SLOT, .puts = true, .gets = true};
    setenv("PINWHEEL_MEMBARRIER", "0", 1);
    all_to_all(KIND_ML, rank, size, &l);
}

/* Some processes with, some without. */
PTEST(mixed_membarrier, 4)
{
    struct load l = {.n = 40, .longest = SLOT, .puts = true, .gets = true};
    setenv("PINWHEEL_MEMBARRIER", rank % 2 ? "1" : "0", 1);
    all_to_all(KIND_ML, rank, size, &l);
}

/* One process is flooded by seven; it reads in its own time. */
PTEST_KINDS(incast, 8)
{
    enum { N = 400 };
    struct port p;
    uint64_t words[8] = {0}, mine = (uint64_t)rank, next[8] = {0};
    port_open(&p, kind, rank, size);
    if (rank == 0) {
        port_target(&p, words, sizeof(words), PTL_ME_OP_PUT, NULL);
    }
    BARRIER();
    if (rank != 0) {
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_handle_md_t md = port_quiet_md(&p, &mine, 8, PTL_MD_EVENT_CT_ACK, ct);
        for (uint64_t i = 0; i < N; i++) {
            OK(PtlPut(md, 0, 8, PTL_CT_ACK_REQ, p.id[0], p.pt, 0, (ptl_size_t)rank * 8, NULL,
                      (uint64_t)rank << 32 | i));
        }
        port_wait_ct(ct, N);
    } else {
        ptest_sleep_ms(100);
        for (int n = 0; n < 7 * N; n++) {
            ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
            uint64_t from = event.hdr_data >> 32;
            CHECK(from >= 1 && from < 8);
            CHECK_EQ(event.hdr_data & 0xffffffff, next[from]);
            next[from]++;
        }
        NO_EVENT(p.eq);
        for (uint64_t from = 1; from < 8; from++) {
            CHECK_EQ(words[from], from);
        }
    }
    port_close(&p);
}
