/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/textscan on a NIC: a text whose words lie over all edges there are, sent message by
 * message by one to three ranks at once, each into a slot of its own; bytes and words are compared
 * with a plain count. What it does with packets in any order, tests/demo/textscan.c tells without
 * a NIC.
 */
#include "kit.h"

#include "textscan.h"

#include <ctype.h>
#include <strings.h>

enum { LENGTH = 100000 };

static const char *const words[] = {"a", "Bcd", "longer", "1500", "caf\xc3\xa9"};
enum { WORDS = sizeof(words) / sizeof(words[0]) };

static char text[LENGTH];

/* Some of the words, some that only begin or end like them, some that are too long. */
static void write_text(void)
{
    static const char *const pieces[] = {"a",  "bCD", "bc",   "LONGER",      "longers",
                                         "15", "00",  "1500", "caf\xc3\xa9", "x"};
    uint64_t r = 3;
    size_t at = 0;
    while (at < LENGTH) {
        const char *piece = pieces[splitmix(&r) % 10];
        size_t room = LENGTH - at, n = strlen(piece);
        n = n < room ? n : room;
        memcpy(text + at, piece, n);
        at += n;
        if (at < LENGTH && splitmix(&r) % 5 != 0) { /* else two are one word */
            text[at++] = " ,\n-"[splitmix(&r) % 4];
        }
    }
}

static bool in_word(size_t at)
{
    unsigned char c = (unsigned char)text[at];
    return isalnum(c) || c >= 0x80;
}

static uint64_t plain_count(const char *word)
{
    uint64_t count = 0;
    for (size_t at = 0, n; at < LENGTH; at += n + 1) {
        for (n = 0; at + n < LENGTH && in_word(at + n); n++) {
        }
        count += n == strlen(word) && strncasecmp(text + at, word, n) == 0;
    }
    return count;
}

static void check_totals(const struct textscan_totals *t, uint64_t messages)
{
    uint64_t bytes[256] = {0};
    for (size_t i = 0; i < LENGTH; i++) {
        bytes[(unsigned char)text[i]]++;
    }
    CHECK_EQ(t->messages, messages);
    CHECK_SAME(t->bytes, bytes, sizeof(bytes));
    for (int w = 0; w < WORDS; w++) {
        CHECK(plain_count(words[w]) > 10);
        CHECK_EQ(t->words[w], plain_count(words[w]));
    }
}

/* Messages of so many bytes, number m by sender m mod `senders`; rank 0 is the target. */
static void scan(int rank, int size, size_t message, int senders)
{
    struct kit k;
    struct textscan_filter filter = {0};
    uint64_t messages = (LENGTH + message - 1) / message;
    void *host = kit_memory(textscan_host_size(messages));
    kit_open(&k, rank, size);
    CHECK(message <= TEXTSCAN_PACKETS * k.packet);
    write_text();
    for (int w = 0; w < WORDS; w++) {
        CHECK_EQ(textscan_add(&filter, words[w], strlen(words[w])), TEXTSCAN_ADDED);
    }
    for (int slot = 0; rank == 0 && slot < senders; slot++) {
        static struct textscan_state state;
        ptl_handle_hpu_mem_t memory;
        ptl_handlers_t h;
        OK(PtlHPUAllocMem(k.p.ni, sizeof(state), &memory));
        textscan_handlers((uint64_t)slot, &filter, k.packet, memory, host, messages, &state, &h);
        kit_entry(&k, NULL, 0, (uint64_t)slot, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    int me = rank - (size > 1);
    if (me >= 0 && me < senders) {
        struct kit_sender s = kit_sender(&k, text, LENGTH);
        for (uint64_t m = (uint64_t)me; m < messages; m += (uint64_t)senders) {
            size_t left = LENGTH - m * message;
            kit_put(&s, m * message, left < message ? left : message, 0, (uint64_t)me, 0, m);
            kit_flush(&s); /* a slot takes one message at a time */
        }
        kit_release(&s);
    }
    BARRIER();
    if (rank == 0) {
        struct textscan_totals totals;
        textscan_result(host, messages, &filter, &totals);
        check_totals(&totals, messages);
    }
    kit_close(&k);
}

PTEST(short_messages, 2)
{
    scan(rank, size, 61, 1);
}

PTEST(to_oneself, 1)
{
    scan(rank, size, 4096, 1);
}

PTEST(long_messages, 2)
{
    scan(rank, size, 40007, 1);
}

PTEST(three_senders, 4)
{
    scan(rank, size, 1733, 3);
}

PTEST(two_senders, 3)
{
    scan(rank, size, 9999, 2);
}

/* More packets than a slot has room for: refused before any is counted. */
PTEST(too_many_packets, 2)
{
    struct kit k;
    struct textscan_filter filter = {0};
    static struct textscan_state state;
    ptl_handlers_t h;
    kit_open(&k, rank, size);
    size_t length = (TEXTSCAN_PACKETS + 1) * k.packet;
    struct textscan_totals *host = kit_memory(textscan_host_size(1));
    CHECK_EQ(textscan_add(&filter, "a", 1), TEXTSCAN_ADDED);
    if (rank == 1) {
        ptl_handle_hpu_mem_t memory;
        OK(PtlHPUAllocMem(k.p.ni, sizeof(state), &memory));
        textscan_handlers(0, &filter, k.packet, memory, host, 1, &state, &h);
        kit_entry(&k, NULL, 0, 7, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    if (rank == 0) {
        kit_put_once(&k, kit_memory(length), length, 1, 7, 0, 0, PTL_NI_HANDLER_FAIL);
    }
    BARRIER();
    if (rank == 1) {
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        CHECK_EQ(host->bytes[0], 0);
        CHECK_EQ(host->messages, 0);
    }
    kit_close(&k);
}
