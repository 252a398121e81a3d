/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer costs that has nothing to say: memory of the whole NIC for each peer that it has
 * talked with once all is quiet.
 *
 *      rank 0 ◄──► rank 1       what the NIC needs whatever the number of its peers has come
 *             ◄──► rank 2...    the growth from here on is theirs
 *
 * They talk one after another: what many need at a time is the NIC's, in pools. Each puts, gets
 * and adds, short and long, to plain memory and to handlers, and rank 0 does so with it.
 */
#include "handler.h"

#include <malloc.h>
#include <stdio.h>

enum { LONGEST = 300000, MOST = 64 << 10, QUIET_MS = 2500, HANDLERS = 1 };

static const size_t lengths[] = {0, 8, 1000, 5000, 20000, LONGEST};
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static unsigned char source[LONGEST], memory[LONGEST];

/* handler_host_mem */
static struct {
    uint64_t bytes;
} handled;

__handler static int header_handler(const ptl_header_t h, void *state)
{
    return PROCESS_DATA;
}

__handler static int payload_handler(const ptl_payload_t p, void *state)
{
    uint64_t before = 0;
    return PtlHandlerDMAFetchAddB(0, p.length, &before, PTL_UINT64_T, PTL_HANDLER_HOST_MEM) ==
                   PTL_OK
               ? SUCCESS
               : FAIL;
}

PTL_HANDLER(header_handler);
PTL_HANDLER(payload_handler);

static void make_entries(struct port *p)
{
    ptl_handlers_t h =
        handler_set(header_handler, payload_handler, NULL, NULL, 0, &handled, sizeof(handled));
    ptl_me_t me = port_entry(p, memory, LONGEST,
                             PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                 PTL_ME_EVENT_COMM_DISABLE);
    me.ignore_bits = 0;
    port_append(p, &me, NULL);
    me.match_bits = HANDLERS;
    handler_append(p, &me, &h);
}

static void talk(struct port *p, int to, ptl_handle_md_t md, ptl_handle_ct_t ct, uint64_t *done)
{
    for (unsigned i = 0; i < LENGTHS; i++) {
        for (unsigned bits = 0; bits <= HANDLERS; bits++) {
            OK(PtlPut(md, 0, lengths[i], PTL_CT_ACK_REQ, p->id[to], p->pt, bits, 0, NULL, 0));
        }
        OK(PtlGet(md, 0, lengths[i], p->id[to], p->pt, 0, 0, NULL));
        *done += 3;
    }
    OK(PtlFetchAtomic(md, 0, md, 8, 8, p->id[to], p->pt, 0, 0, NULL, 0, PTL_SUM, PTL_UINT64_T));
    port_wait_ct(ct, ++*done);
}

/* Time passes, and progress is made. */
static void be_quiet(struct port *p)
{
    ptl_event_t event;
    for (uint64_t end = ptest_now_ms() + QUIET_MS; ptest_now_ms() < end; ptest_sleep_ms(1)) {
        CHECK_EQ(PtlEQGet(p->eq, &event), PTL_EQ_EMPTY);
    }
}

static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* Sanitizers and valgrind have allocators of their own, of which mallinfo2() knows nothing. */
static bool is_counted(void)
{
    size_t before = in_use();
    void *volatile some = malloc(MOST);
    bool counted = in_use() >= before + MOST;
    free(some);
    return counted;
}

PTEST_LIMIT(a_quiet_peer_costs_little, PTEST_RANKS, 120)
{
    struct port p;
    uint64_t done = 0;
    size_t first = 0, all = 0;
    if (!is_counted()) {
        ptest_skip("this allocator does not count what it gives");
    }
    setenv("PINWHEEL_CONNECT_MS", "10000", 0);
    port_open(&p, KIND_MP, rank, size);
    make_entries(&p);
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_handle_md_t md =
        port_quiet_md(&p, source, LONGEST, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, ct);
    BARRIER();
    for (int peer = 1; peer < size; peer++) {
        if (rank == peer) {
            talk(&p, 0, md, ct, &done);
        }
        BARRIER();
        if (rank == 0) {
            talk(&p, peer, md, ct, &done);
        }
        BARRIER();
        if (rank == 0 && (peer == 1 || peer == size - 1)) {
            be_quiet(&p);
            *(peer == 1 ? &first : &all) = in_use();
        }
        BARRIER();
    }
    if (rank == 0) {
        size_t each = all > first ? (all - first) / (size_t)(size - 2) : 0;
        printf("%zu bytes for each quiet peer, %zu with one\n", each, first);
        CHECK(each > 0); /* else nothing was measured */
        CHECK(each <= MOST);
        CHECK(handled.bytes > (uint64_t)(size - 1) * LONGEST);
    }
    port_release(md);
    port_close(&p);
}
