/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of entries in parts (PTL_IOVEC), and with results in parts (PTL_HANDLER_IOVEC). */
#include "handler.h"

enum { LENGTH = 30000, PARTS = 5, USER = 24, RESULTS = 64 };

static unsigned char source[LENGTH], memory[LENGTH], spread[2 * LENGTH];
static uint64_t results[RESULTS];

/* The entry's bytes lie in `spread`, in parts of odd lengths with gaps, not in order. */
static const size_t lengths[PARTS] = {1, 999, 0, 20000, LENGTH - 21000};
static const size_t places[PARTS] = {50000, 3, 7, 20001, 5003};

static void list_parts(ptl_iovec_t *parts)
{
    for (int i = 0; i < PARTS; i++) {
        parts[i] = (ptl_iovec_t){spread + places[i], lengths[i]};
    }
}

/* Collects the parts in `memory`; whatever lies between them is as it was. */
static void collect(void)
{
    static unsigned char gaps[2 * LENGTH];
    size_t at = 0;
    memcpy(gaps, spread, sizeof(gaps));
    for (int i = 0; i < PARTS; i++) {
        memcpy(memory + at, spread + places[i], lengths[i]);
        memset(gaps + places[i], 0x55, lengths[i]);
        at += lengths[i];
    }
    CHECK_BYTES(gaps, sizeof(gaps), 0x55);
}

struct state {
    uint64_t answer;
};

__handler static int header_handler(const ptl_header_t h, void *state)
{
    return (int)((struct state *)state)->answer;
}

/* Results: word 0 counts, across two parts the sum of lengths is kept in bytes 12 to 19. */
__handler static int payload_handler(const ptl_payload_t p, void *state)
{
    ptl_dma_h h = PtlHandlerDMAToHostNB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    uint64_t before;
    PtlHandlerDMAFetchAddB(0, 1, &before, PTL_UINT64_T, PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAWait(h);
    return SUCCESS;
}

__handler static int completion_handler(ptl_size_t dropped, bool flow_control, void *state)
{
    uint64_t word, mark = 0x1122334455667788;
    PtlHandlerDMAFromHostB(0, &word, 8, PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAToHostB(&mark, 12, 8, PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAToHostB(&word, 24, 8, PTL_HANDLER_HOST_MEM);
    return SUCCESS;
}

/* An atomic must find its element in one part. */
__handler static int across(const ptl_header_t h, void *state)
{
    PtlHandlerDMAFetchAddB(12, 1, NULL, PTL_UINT64_T, PTL_HANDLER_HOST_MEM);
    return DROP;
}

__handler static int behind(const ptl_header_t h, void *state)
{
    uint64_t word = 1;
    PtlHandlerDMAToHostB(&word, RESULTS * 8 - 7, 8, PTL_HANDLER_HOST_MEM);
    return DROP;
}
PTL_HANDLER(header_handler);
PTL_HANDLER(payload_handler);
PTL_HANDLER(completion_handler);
PTL_HANDLER(across);
PTL_HANDLER(behind);

static ptl_handle_me_t append(struct port *p, ptl_handlers_t h)
{
    ptl_iovec_t parts[PARTS],
        result_parts[3] = {{results + 40, 16}, {results, 8}, {results + 4, RESULTS * 8 - 24}};
    list_parts(parts);
    memset(spread, 0x55, sizeof(spread));
    memset(results, 0, sizeof(results));
    h.options = PTL_HANDLER_IOVEC;
    h.handler_host_mem = result_parts;
    h.handler_host_length = 3;
    ptl_handle_me_t handle = handler_target(p, parts, PARTS, PTL_IOVEC, PTL_CT_NONE, &h);
    memset(parts, 0, sizeof(parts)); /* they were copied */
    memset(result_parts, 0, sizeof(result_parts));
    return handle;
}

static void one_round(struct port *p, size_t length, uint64_t answer, bool has_payload)
{
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    struct state s = {answer};
    size_t user = answer == PROCEED ? 0 : length < USER ? length : USER;
    if (p->rank == 1) {
        ptl_handlers_t h = handler_set(header_handler, has_payload ? payload_handler : NULL,
                                       completion_handler, &s, sizeof(s), NULL, 0);
        h.user_hdr_length = USER;
        entry = append(p, h);
    }
    BARRIER();
    if (p->rank == 0) {
        handler_put(p, source, length, 0, 0, PTL_NI_OK);
    } else {
        CHECK_EQ(EVENT(p->eq, PTL_EVENT_PUT).mlength, length - user);
        collect();
        CHECK(memcmp(memory, source + user, length - user) == 0);
        if (answer != PROCEED) {
            uint64_t first, second;
            memcpy(&first, (char *)results + 40 * 8 + 12, 4);
            memcpy(&second, results, 4);
            CHECK_EQ(first & UINT32_MAX, 0x55667788);
            CHECK_EQ(second & UINT32_MAX, 0x11223344);
            CHECK_EQ(results[4], results[40]);
            CHECK_EQ(results[40] != 0, has_payload && length > user);
        }
        port_unlink(p, entry);
    }
    BARRIER();
}

PTEST_KINDS(deposited, 2)
{
    static const size_t sizes[] = {0, 1, 24, 25, 900, 1025, 4096, 5000, LENGTH};
    struct port p;
    port_open(&p, kind, rank, size);
    ptest_fill(source, LENGTH, 1);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        one_round(&p, sizes[i], PROCESS_DATA, true);
        one_round(&p, sizes[i], PROCESS_DATA, false);
        one_round(&p, sizes[i], PROCEED, true);
    }
    port_close(&p);
}

/* From the host, and what the handler sends from there. */
__handler static int send_back(const ptl_header_t h, void *state)
{
    const ptl_process_t *to = state;
    return PtlHandlerPutFromHost(0, LENGTH, PTL_NO_ACK_REQ, *to, 3, 0, NULL, 5) == PTL_OK ? PROCEED
                                                                                          : FAIL;
}
PTL_HANDLER(send_back);

PTEST_KINDS(sent_from_parts, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    if (rank == 1) {
        ptl_handlers_t h = handler_set(send_back, NULL, NULL, &p.id[0], sizeof(p.id[0]), NULL, 0);
        ptl_handle_me_t entry = append(&p, h);
        for (int i = 0; i < PARTS; i++) {
            ptest_fill(spread + places[i], lengths[i], (unsigned)i);
        }
        BARRIER();
        OK(PtlHandlersInvoke(entry, NULL, 0));
        EVENT(p.eq, PTL_EVENT_PUT);
        port_unlink(&p, entry); /* which waits for what was sent */
    } else {
        ptl_handle_me_t entry = port_target(&p, memory, LENGTH, PTL_ME_OP_PUT, NULL);
        BARRIER();
        CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).mlength, LENGTH);
        size_t at = 0;
        for (int i = 0; i < PARTS; i++) {
            CHECK_FILL(memory + at, lengths[i], (unsigned)i);
            at += lengths[i];
        }
        port_unlink(&p, entry);
    }
    port_close(&p);
}

PTEST_KINDS(outside, 1)
{
    static const ptl_header_handler_t bad[] = {across, behind};
    struct port p;
    port_open(&p, kind, rank, size);
    for (int i = 0; i < 2; i++) {
        ptl_handle_me_t entry = append(&p, handler_set(bad[i], NULL, NULL, NULL, 8, NULL, 0));
        OK(PtlHandlersInvoke(entry, NULL, 0));
        EVENT_FAIL(p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_SEGV);
        port_unlink(&p, entry);
    }
    ptl_handlers_t h = handler_set(across, NULL, NULL, NULL, 8, NULL, 1 << 20);
    ptl_me_t me = port_entry(&p, memory, LENGTH, PTL_ME_OP_PUT);
    ptl_handle_me_t entry;
    h.options = PTL_HANDLER_IOVEC;
    h.handler_host_mem = results;
    INVALID(handler_append_code(&p, p.pt, &me, &h, NULL, &entry)); /* so many parts */
    h.handler_host_mem = (void *)8;
    h.handler_host_length = 1;
    INVALID(handler_append_code(&p, p.pt, &me, &h, NULL, &entry)); /* that cannot be read */
    port_close(&p);
}
