/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A text of work->size bytes passes, its bytes and some of its words are counted:
 *
 *   handlers   handlers/textscan, packet by packet; the text is not kept
 *   cpu        a put to memory aside, then the same functions over all of it
 *
 * One message at a time; rank 1 answers when it has counted.
 */
#include "jobs.h"

#include "textscan.h"

#include <string.h>

static const char *const wanted[] = {"packet", "handler", "network"};
enum { WANTED = sizeof(wanted) / sizeof(wanted[0]) };

static struct {
    struct textscan_filter filter;
    struct textscan_state state;
    ptl_handle_hpu_mem_t memory;
    struct textscan_totals totals; /* by the CPU */
    void *host;                    /* by the handlers */
    uint64_t messages;
} scan = {.memory = PTL_HPU_MEM_NONE};

static uint8_t *aside(void)
{
    return spin.to + SPIN_MESSAGE;
}

/* Words and numbers; none ends where the text does. */
static void write_text(uint64_t length)
{
    static const char words[] = "a packet is what a handler sees of 1500 bytes; networks carry it, "
                                "the Network does not know. ";
    for (uint64_t i = 0; i < length; i++) {
        spin.from[i] = i + 1 < length ? (uint8_t)words[i % (sizeof(words) - 1)] : ' ';
    }
}

/* The plain way: adds what is in a whole text. */
static void count(const uint8_t *text, uint64_t length, struct textscan_totals *to)
{
    struct textscan_edges edges;
    for (uint64_t i = 0; i < length; i++) {
        to->bytes[text[i]]++;
    }
    textscan_stretch(&scan.filter, text, length, to->words, &edges);
    textscan_end(&scan.filter, &edges, to->words);
}

static void by_cpu(const struct turn_work *work)
{
    count(aside(), work->size, &scan.totals);
}

static int attach(void)
{
    ptl_handlers_t h;
    if (!link_ok(PtlHPUAllocMem(self.ni, sizeof(scan.state), &scan.memory), "PtlHPUAllocMem")) {
        return -1;
    }
    scan.host = spin.to;
    textscan_handlers(0, &scan.filter, self.packet, scan.memory, scan.host, 1, &scan.state, &h);
    return spin_append(LINK_COUNTED, NULL, 0, &h);
}

static int begin(const struct turn_work *work)
{
    write_text(work->size);
    memset(&scan.filter, 0, sizeof(scan.filter));
    memset(&scan.totals, 0, sizeof(scan.totals));
    scan.messages = 0;
    for (int i = 0; i < WANTED; i++) {
        if (textscan_add(&scan.filter, wanted[i], strlen(wanted[i])) != TEXTSCAN_ADDED) {
            return turn_fail("\"%s\" cannot be looked for", wanted[i]);
        }
    }
    if (turn_rank() == 1) {
        memset(spin.to, 0, SPIN_TO);
        int rc =
            spin.way == WAY_CPU ? spin_append(LINK_COUNTED, aside(), work->size, NULL) : attach();
        if (rc != 0) {
            return rc;
        }
    }
    return spin_ready();
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    scan.messages += iterations;
    return spin_flow(work, iterations, work->size, by_cpu);
}

/* A message is a text, of which nothing but its end is in its edges: the words there are counted
 * for the last one only. */
static int check(const struct turn_work *work)
{
    struct textscan_totals once = {.messages = 0}, found = scan.totals;
    count(spin.from, work->size, &once);
    if (spin.way != WAY_CPU) {
        textscan_result(scan.host, 1, &scan.filter, &found);
    }
    for (int c = 0; c < 256; c++) {
        if (found.bytes[c] != once.bytes[c] * scan.messages) {
            return turn_fail("byte %d was counted %lu times, not %lu", c,
                             (unsigned long)found.bytes[c],
                             (unsigned long)(once.bytes[c] * scan.messages));
        }
    }
    for (int i = 0; i < WANTED; i++) {
        if (found.words[i] != once.words[i] * scan.messages) {
            return turn_fail("\"%s\" was counted %lu times, not %lu", wanted[i],
                             (unsigned long)found.words[i],
                             (unsigned long)(once.words[i] * scan.messages));
        }
    }
    return 0;
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    if (turn_rank() == 0) {
        return 0;
    }
    int rc = work->check ? check(work) : 0;
    if (spin_unlink() != 0 ||
        (scan.memory != PTL_HPU_MEM_NONE && PtlHPUFreeMem(scan.memory) != PTL_OK)) {
        return turn_fail("the entry or its HPU memory is still in use");
    }
    scan.memory = PTL_HPU_MEM_NONE;
    return rc;
}

static bool fits(const struct turn_work *work)
{
    return spin_on(work) && work->size > 0 && work->size <= TEXTSCAN_PACKETS * self.packet &&
           work->size <= SPIN_MESSAGE;
}

static const struct turn_duty duties[] = {{BENCH_SPIN_TEXTSCAN, fits, begin, run, end}};

const struct spin_family spin_scan = {duties, 1, 1u << WAY_HANDLERS | 1u << WAY_CPU};
