/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages with handlers of which a page cannot be read at their sender: at the beginning, in the
 * middle, at the end. Both ends learn it, the completion handler hears of what is missing, and the
 * next message is whole. With each setting, so by each way that a payload takes.
 */
#include "kit.h"

#include "torn_handlers.h"

#include <sys/mman.h>

enum { BITS = 11, PAGE = 4096, LONGEST = 1 << 20, USER = 64 };

static struct torn_state seen;

/* Memory of which the page at `hole` is not there. */
static uint8_t *source_with_hole(size_t length, size_t hole)
{
    uint8_t *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    ptest_fill(at, length, 1);
    CHECK_EQ(mprotect(at + hole / PAGE * PAGE, PAGE, PROT_NONE), 0);
    return at;
}

/* A put whose end is that; a SEND that failed may come before its ACK. */
static void put(struct kit *k, const void *start, size_t length, int fail)
{
    ptl_event_t event;
    unsigned which;
    ptl_handle_md_t md =
        port_md(&k->p, (void *)start, length, PTL_MD_EVENT_SUCCESS_DISABLE, PTL_CT_NONE);
    if (fail == PTL_NI_OK) {
        kit_put_once(k, start, length, 1, BITS, 0, 0, fail);
    } else {
        OK(PtlPut(md, 0, length, PTL_ACK_REQ, k->p.id[1], k->p.pt, BITS, 0, NULL, 0));
        do {
            OK(PtlEQPoll(&k->p.mdeq, 1, 10000u * (unsigned)ptest_slow(), &event, &which));
            CHECK_EQ(event.ni_fail_type, fail);
        } while (event.type == PTL_EVENT_SEND);
        CHECK_EQ(event.type, PTL_EVENT_ACK);
    }
    port_release(md);
}

/* One message to rank 1, which fails at a page, or not (`hole` is its length). */
static void one(struct kit *k, const ptl_handlers_t *handlers, size_t user, size_t length,
                size_t hole)
{
    int fail = hole == length ? PTL_NI_OK : PTL_NI_SEGV;
    ptl_handle_hpu_mem_t memory = PTL_HPU_MEM_NONE;
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    ptl_handle_ct_t ct = port_ct(&k->p);
    uint8_t *target = kit_memory(length);
    if (k->p.rank == 1) {
        ptl_handlers_t h = *handlers;
        OK(PtlHPUAllocMem(k->p.ni, sizeof(seen), &memory));
        memset(&seen, 0, sizeof(seen));
        OK(PtlHPUWrite(memory, 0, &seen, sizeof(seen)));
        h.hpu_mem = memory;
        h.user_hdr_length = user;
        entry = kit_entry(k, target, length, BITS, 0, ct, &h);
    }
    BARRIER();
    if (k->p.rank == 0) {
        size_t mapped = length + 2 * PAGE;
        uint8_t *source = source_with_hole(mapped, hole == length ? mapped - 1 : hole);
        put(k, source, length, fail);
        munmap(source, mapped);
    } else if (fail == PTL_NI_OK) {
        kit_wait(ct, 1);
    } else {
        EVENT_FAIL(k->p.eq, PTL_EVENT_PUT, fail);
    }
    if (k->p.rank == 1) {
        OK(PtlHPURead(memory, 0, &seen, sizeof(seen)));
        CHECK_EQ(seen.completions, seen.headers);
        if (fail == PTL_NI_OK) {
            CHECK_EQ(seen.headers, 1);
            CHECK_EQ(seen.dropped, 0);
        }
        if (seen.headers != 0 && handlers->payload_handler != NULL) {
            CHECK_EQ(seen.bytes + seen.dropped, length - user);
        }
        port_unlink(&k->p, entry);
        OK(PtlHPUFreeMem(memory));
    }
    BARRIER();
    OK(PtlCTFree(ct));
    free(target);
}

static void all(const ptl_handlers_t *handlers, size_t user, int rank, int size)
{
    static const size_t lengths[] = {USER, 100, PAGE, 3 * PAGE, 33 * PAGE, LONGEST};
    struct kit k;
    kit_open(&k, rank, size);
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t n = lengths[i];
        const size_t holes[] = {0, n / 2, n - 1};
        for (unsigned h = 0; h < 3; h++) {
            one(&k, handlers, user, n, holes[h]);
            one(&k, handlers, user, n, n);
        }
    }
    kit_close(&k);
}

PTEST(by_packet, 2)
{
    all(&torn_by_packet, 0, rank, size);
}

PTEST(by_packet_with_user_header, 2)
{
    all(&torn_by_packet, USER, rank, size);
}

PTEST(deposited, 2)
{
    all(&torn_deposited, 0, rank, size);
}

PTEST(deposited_with_user_header, 2)
{
    all(&torn_deposited, USER, rank, size);
}
