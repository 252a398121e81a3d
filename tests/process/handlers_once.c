/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a handler's ask says of itself is what has happened to it, whatever the network does
 * (TEST_WEATHER). Handlers of both ranks ask each other, several at once; each ask adds one to
 * words of its own, in one packet of the network or in several:
 *
 *      PTL_OK        all of its words are 1, and it has found 0 in them
 *      PTL_ABORTED   all are 0
 *      PTL_FAIL      all are 1, or all are 0
 *
 * Asks are matched in their order, so when the last one has been done all have been decided.
 */
#include "handler.h"

#include <stdio.h>

enum { BITS = 7, ASKS = 120, AT_ONCE = 6, WORDS = 512, LAST = ASKS, NONE = 0 };

/* What is asked: a block for each ask, of which the odd ones take one word only. */
static uint64_t blocks[ASKS + 1][WORDS];

/* handler_host_mem */
static struct notes {
    int64_t end[ASKS + 1]; /* one more than the code; NONE: the call has not ended */
    uint64_t calls[ASKS + 1];
    uint64_t wrong; /* answers that cannot be */
} notes;

struct state {
    ptl_process_t target;
    uint64_t pt;
};

static uint64_t words_of(uint64_t i)
{
    return i % 2 == 0 ? WORDS : 1;
}

__handler static int add(const ptl_header_t h, void *state)
{
    const struct state *s = state;
    uint64_t i = h.hdr_data, n = words_of(i), ones[WORDS], found[WORDS], wrong = 0;
    for (uint64_t k = 0; k < n; k++) {
        ones[k] = 1;
        found[k] = 7;
    }
    int code =
        PtlHandlerFetchAtomicFromDeviceEx(found, ones, n * 8, s->target, (ptl_pt_index_t)s->pt,
                                          BITS, i * sizeof(blocks[0]), 0, PTL_SUM, PTL_UINT64_T);
    for (uint64_t k = 0; k < n; k++) {
        wrong += found[k] != (code == PTL_OK && i != LAST ? 0 : found[k]);
    }
    int64_t end = code + 1;
    PtlHandlerDMAToHostB(&end, offsetof(struct notes, end) + i * 8, 8, PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAFetchAddB(offsetof(struct notes, calls) + i * 8, 1, NULL, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAFetchAddB(offsetof(struct notes, wrong), wrong, NULL, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    return DROP;
}
PTL_HANDLER(add);

static ptl_handle_me_t open_blocks(struct port *p)
{
    ptl_me_t me = port_entry(p, blocks, sizeof(blocks),
                             PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                 PTL_ME_EVENT_COMM_DISABLE);
    me.match_bits = BITS;
    me.ignore_bits = 0;
    return port_append(p, &me, NULL);
}

static ptl_handle_me_t open_adding(struct port *p)
{
    struct state s = {p->id[1 - p->rank], p->pt};
    ptl_handlers_t h = handler_set(add, NULL, NULL, &s, sizeof(s), &notes, sizeof(notes));
    ptl_me_t me = port_entry(p, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    me.match_bits = HANDLER_BITS;
    me.ignore_bits = 0;
    return handler_append(p, &me, &h);
}

static uint64_t count_ends(int code)
{
    uint64_t n = 0;
    for (int i = 0; i < ASKS; i++) {
        n += notes.end[i] == code + 1;
    }
    return n;
}

/* How the asks of the other rank have ended, as it shows, and what has become of its words. */
static void check_block(int i, int64_t code)
{
    for (uint64_t k = 0; k < WORDS; k++) {
        CHECK_EQ(blocks[i][k], k < words_of((uint64_t)i) ? blocks[i][0] : 0);
    }
    switch (code) {
    case PTL_OK:
        CHECK_EQ(blocks[i][0], 1);
        break;
    case PTL_ABORTED:
        CHECK_EQ(blocks[i][0], 0);
        break;
    default:
        CHECK_CODE((int)code, PTL_FAIL);
        CHECK(blocks[i][0] <= 1);
    }
}

enum { EACH = 20, SLOT = 1 }; /* ends in a word that is shown, three bits each */

static void show_ends(void)
{
    for (int slot = 0; slot < ASKS / EACH; slot++) {
        uint64_t word = 0;
        for (int i = 0; i < EACH; i++) {
            int64_t end = notes.end[slot * EACH + i];
            CHECK_EQ(notes.calls[slot * EACH + i], 1);
            uint64_t short_code = end == PTL_OK + 1 ? 0 : end == PTL_ABORTED + 1 ? 1 : 2;
            CHECK(short_code != 2 || end == PTL_FAIL + 1);
            word |= short_code << 3 * i;
        }
        ptest_show(SLOT + slot, word);
    }
}

static void check_ends(int other)
{
    static const int codes[] = {PTL_OK, PTL_ABORTED, PTL_FAIL};
    for (int i = 0; i < ASKS; i++) {
        check_block(i, codes[ptest_look(other, SLOT + i / EACH) >> 3 * (i % EACH) & 7]);
    }
}

static void ask_each_other(int rank, int size, const char *patience_ms)
{
    struct port p;
    ptl_handle_me_t adding[AT_ONCE];
    setenv("PINWHEEL_HPU_PATIENCE_MS", patience_ms, 1);
    port_open(&p, KIND_ML, rank, size);
    ptl_handle_me_t asked = open_blocks(&p);
    for (int i = 0; i < AT_ONCE; i++) {
        adding[i] = open_adding(&p);
    }
    BARRIER();
    for (int i = 0; i < ASKS; i++) {
        OK(PtlHandlersInvokeEx(adding[i % AT_ONCE], NULL, 0, (ptl_hdr_data_t)i));
        if (i >= AT_ONCE - 1) {
            EVENT(p.eq, PTL_EVENT_PUT);
        }
    }
    for (int i = 0; i < AT_ONCE - 1; i++) {
        EVENT(p.eq, PTL_EVENT_PUT);
    }
    while (notes.end[LAST] != PTL_OK + 1) {
        OK(PtlHandlersInvokeEx(adding[0], NULL, 0, LAST));
        EVENT(p.eq, PTL_EVENT_PUT);
    }
    printf("rank %d: %d done, %d withdrawn, %d unknown\n", rank, (int)count_ends(PTL_OK),
           (int)count_ends(PTL_ABORTED), (int)count_ends(PTL_FAIL));
    CHECK_EQ(notes.wrong, 0);
    show_ends();
    BARRIER();
    check_ends(1 - rank);
    for (int i = 0; i < AT_ONCE; i++) {
        port_unlink(&p, adding[i]);
    }
    port_unlink(&p, asked);
    port_close(&p);
}

/* Nobody gives up: each ask is done. */
PTEST_LIMIT(with_patience, 2, 120)
{
    ask_each_other(rank, size, "100000");
    CHECK_EQ(count_ends(PTL_OK), ASKS);
}

/* Handlers withdraw what a lost packet holds up. */
PTEST_LIMIT(without_patience, 2, 120)
{
    ask_each_other(rank, size, "3");
}
