/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HPU memory: allocated, shared, initialised, freed; and what the calls that attach
 * handlers refuse. Rank 0 is its own target here.
 */
#include "handler.h"

#include <stdio.h>

enum { WORDS = 1024 };

static unsigned char memory[64];
static uint64_t seen[WORDS]; /* handler_host_mem: a copy of the HPU memory */

/* What the handlers are given besides: the length is in handler_host_length, which
 * they do not know, so it travels in hdr_data. */
__handler static int show_header(const ptl_header_t h, void *state)
{
    PtlHandlerDMAToHostB(state, 0, h.hdr_data, PTL_HANDLER_HOST_MEM);
    return (uintptr_t)state % 64 == 0 ? DROP : FAIL;
}

/* Counts in the first word, and shows it. */
__handler static int count_header(const ptl_header_t h, void *state)
{
    PtlHandlerFAdd(state, NULL, 1);
    return show_header(h, state);
}
PTL_HANDLER(show_header);
PTL_HANDLER(count_header);

static ptl_handlers_t showing(ptl_handle_hpu_mem_t mem, const void *initial, size_t length)
{
    ptl_handlers_t h = handler_set(show_header, NULL, NULL, initial, length, seen, sizeof(seen));
    h.hpu_mem = mem;
    return h;
}

static ptl_handle_hpu_mem_t allocate(struct port *p, size_t length)
{
    ptl_handle_hpu_mem_t mem;
    OK(PtlHPUAllocMem(p->ni, length, &mem));
    return mem;
}

static ptl_handle_me_t entry_at(struct port *p, ptl_pt_index_t pt, const ptl_handlers_t *h)
{
    ptl_handle_me_t handle;
    ptl_me_t me = port_entry(p, memory, sizeof(memory), PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    OK(handler_append_code(p, pt, &me, h, NULL, &handle));
    return handle;
}

/* Has the handlers at `pt` show `length` bytes of their memory. */
static void show(struct port *p, ptl_pt_index_t pt, size_t length)
{
    memset(seen, 0xee, sizeof(seen));
    ptl_handle_md_t md = port_quiet_md(p, NULL, 0, 0, PTL_CT_NONE);
    OK(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, p->id[p->rank], pt, 0, 0, NULL, length));
    EVENT(p->eq, PTL_EVENT_PUT);
    port_release(md);
}

/* ---- Allocation ---- */

PTEST_KINDS(allocate_and_free, 1)
{
    static const size_t lengths[] = {1, 8, 63, 64, 65, 4095, 4096, 4097, sizeof(seen)};
    struct port p;
    port_open(&p, kind, rank, size);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        ptl_handle_hpu_mem_t mem = allocate(&p, lengths[i]);
        ptl_handlers_t h = showing(mem, NULL, lengths[i]);
        ptl_handle_me_t entry = entry_at(&p, p.pt, &h);
        show(&p, p.pt, lengths[i]);
        CHECK_BYTES(seen, lengths[i], 0);
        ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
        OK(PtlNIHandle(mem, &ni));
        CHECK_EQ(ni, p.ni);
        port_unlink(&p, entry);
        OK(PtlHPUFreeMem(mem));
        INVALID(PtlHPUFreeMem(mem));
        INVALID(PtlNIHandle(mem, &ni));
    }
    port_close(&p);
}

PTEST_KINDS(many_pieces, 1)
{
    enum { N = 500 };
    static ptl_handle_hpu_mem_t mem[N];
    struct port p;
    port_open(&p, kind, rank, size);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            mem[i] = allocate(&p, 64);
            CHECK(mem[i] != PTL_HPU_MEM_NONE && (i == 0 || mem[i] != mem[i - 1]));
        }
        for (int i = 0; i < N; i++) {
            OK(PtlHPUFreeMem(mem[(i * 7) % N]));
        }
        for (int i = 0; i < N; i++) {
            INVALID(PtlHPUFreeMem(mem[i]));
        }
    }
    port_close(&p);
}

PTEST_KINDS(limits, 1)
{
    struct port p;
    ptl_spin_limits_t l;
    ptl_handle_hpu_mem_t mem;
    port_open(&p, kind, rank, size);
    memset(&l, 0xee, sizeof(l));
    OK(PtlSpinLimits(p.ni, &l));
    CHECK_EQ(l.min_fragmentation_limit, 64);
    const char *hpus = getenv("PINWHEEL_HPUS");
    CHECK_EQ(l.num_hpus, hpus != NULL ? (unsigned)atoi(hpus) : PTL_NUM_HPUS);
    CHECK_EQ(l.max_cycles_per_byte, PTL_SIZE_MAX);
    CHECK(l.max_payload_size >= 64 && l.max_payload_size % 64 == 0);
    CHECK(l.max_user_hdr_size > 0 && l.max_user_hdr_size <= l.max_payload_size);
    CHECK(l.max_initial_state > 0 && l.max_initial_state <= l.max_handler_mem);
    INVALID(PtlSpinLimits(p.ni, NULL));
    INVALID(PtlSpinLimits(p.eq, &l));
    INVALID(PtlSpinLimits(PTL_INVALID_HANDLE, &l));
    OK(PtlHPUAllocMem(p.ni, l.max_handler_mem, &mem));
    OK(PtlHPUFreeMem(mem));
    INVALID(PtlHPUAllocMem(p.ni, l.max_handler_mem + 1, &mem));
    INVALID(PtlHPUAllocMem(p.ni, PTL_SIZE_MAX, &mem));
    INVALID(PtlHPUAllocMem(p.ni, 0, &mem));
    INVALID(PtlHPUAllocMem(p.ni, 64, NULL));
    INVALID(PtlHPUAllocMem(p.eq, 64, &mem));
    INVALID(PtlHPUAllocMem(PTL_INVALID_HANDLE, 64, &mem));
    port_close(&p);
}

PTEST(bad_handles, 1)
{
    struct port p;
    ptl_handle_hpu_mem_t mem;
    ptl_handle_ni_t other;
    ptl_spin_limits_t l;
    CHECK_CODE(PtlHPUAllocMem(0, 64, &mem), PTL_NO_INIT);
    CHECK_CODE(PtlHPUFreeMem(0), PTL_NO_INIT);
    CHECK_CODE(PtlSpinLimits(0, &l), PTL_NO_INIT);
    port_open(&p, KIND_MP, rank, size);
    INVALID(PtlHPUFreeMem(PTL_HPU_MEM_NONE));
    INVALID(PtlHPUFreeMem(PTL_INVALID_HANDLE));
    INVALID(PtlHPUFreeMem(p.ni));
    INVALID(PtlHPUFreeMem(p.eq));
    mem = allocate(&p, 64);
    INVALID(PtlEQFree(mem));
    INVALID(PtlCTFree(mem));
    INVALID(PtlMEUnlink(mem));
    INVALID(PtlHPUFreeMem(mem + 1));
    OK(PtlHPUFreeMem(mem));
    /* what an interface still has is freed with it */
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_NP, PTL_PID_ANY, NULL, NULL, &other));
    OK(PtlHPUAllocMem(other, 4096, &mem));
    OK(PtlNIFini(other));
    INVALID(PtlHPUFreeMem(mem));
    INVALID(PtlHPUAllocMem(other, 64, &mem));
    INVALID(PtlSpinLimits(other, &l));
    port_close(&p);
    CHECK_CODE(PtlHPUFreeMem(mem), PTL_NO_INIT);
}

/* ---- Entries and their memory ---- */

PTEST_KINDS(in_use, 1)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_hpu_mem_t mem = allocate(&p, 64);
    ptl_handlers_t h = showing(mem, NULL, 64);
    ptl_handle_me_t first = entry_at(&p, p.pt, &h), second = entry_at(&p, p.pt, &h);
    CHECK_CODE(PtlHPUFreeMem(mem), PTL_IN_USE);
    port_unlink(&p, first);
    CHECK_CODE(PtlHPUFreeMem(mem), PTL_IN_USE);
    port_unlink(&p, second);
    OK(PtlHPUFreeMem(mem));
    /* an entry that its message uses up lets go, too */
    mem = allocate(&p, 64);
    h = showing(mem, NULL, 64);
    ptl_me_t me = port_entry(&p, memory, sizeof(memory),
                             PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_USE_ONCE);
    handler_append(&p, &me, &h);
    CHECK_CODE(PtlHPUFreeMem(mem), PTL_IN_USE);
    show(&p, p.pt, 64);
    EVENT(p.eq, PTL_EVENT_AUTO_UNLINK);
    OK(PtlHPUFreeMem(mem));
    port_close(&p);
}

/* Two entries count in one word; then new entries go on where they stopped. */
PTEST_KINDS(shared_and_outlives, 1)
{
    struct port p;
    ptl_pt_index_t other;
    uint64_t start[2] = {100, 7};
    port_open(&p, kind, rank, size);
    OK(PtlPTAlloc(p.ni, 0, p.eq, PTL_PT_ANY, &other));
    ptl_handle_hpu_mem_t mem = allocate(&p, 64);
    for (uint64_t round = 0; round < 3; round++) {
        ptl_handlers_t h = showing(mem, round == 0 ? start : NULL, sizeof(start));
        h.header_handler = count_header;
        ptl_handle_me_t a = entry_at(&p, p.pt, &h);
        h.hpu_initial_state = NULL;
        ptl_handle_me_t b = entry_at(&p, other, &h);
        show(&p, p.pt, 64);
        CHECK_EQ(seen[0], 101 + 2 * round);
        show(&p, other, 64);
        CHECK_EQ(seen[0], 102 + 2 * round);
        CHECK_EQ(seen[1], 7);
        CHECK_EQ(seen[2], 0);
        port_unlink(&p, a);
        port_unlink(&p, b);
    }
    /* a new initial state covers its own length only */
    start[0] = 5;
    ptl_handlers_t h = showing(mem, start, sizeof(start[0]));
    entry_at(&p, p.pt, &h);
    start[0] = 6; /* it was copied */
    show(&p, p.pt, 64);
    CHECK_EQ(seen[0], 5);
    CHECK_EQ(seen[1], 7);
    port_close(&p);
}

/* Without memory of the program's an entry gets its own: zeroed, or the initial state. */
PTEST_KINDS(own_memory, 1)
{
    static uint64_t state[WORDS];
    static const size_t lengths[] = {1, 8, 64, 100, 4096, sizeof(state)};
    struct port p;
    port_open(&p, kind, rank, size);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        ptest_fill(state, sizeof(state), (unsigned)i);
        ptl_handlers_t h = showing(PTL_HPU_MEM_NONE, state, lengths[i]);
        ptl_handle_me_t entry = entry_at(&p, p.pt, &h);
        memset(state, 0, sizeof(state));
        show(&p, p.pt, lengths[i]);
        CHECK_FILL(seen, lengths[i], (unsigned)i);
        port_unlink(&p, entry);
        h.hpu_initial_state = NULL;
        entry = entry_at(&p, p.pt, &h);
        show(&p, p.pt, lengths[i]);
        CHECK_BYTES(seen, lengths[i], 0);
        port_unlink(&p, entry);
    }
    /* a length of 0 is no memory, and no error */
    ptl_handlers_t h = showing(PTL_HPU_MEM_NONE, state, 0);
    entry_at(&p, p.pt, &h);
    show(&p, p.pt, 0);
    port_close(&p);
}

/* Mappings of this process: HPU memory has some of its own. */
static int mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    int lines = 0;
    CHECK(maps != NULL);
    for (int c; (c = getc(maps)) != EOF;) {
        lines += c == '\n';
    }
    fclose(maps);
    return lines;
}

/* It goes with its entry, unlinked or used up. */
PTEST_KINDS(own_memory_is_freed, 1)
{
    enum { N = 400 };
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handlers_t h = showing(PTL_HPU_MEM_NONE, NULL, 1 << 20);
    port_unlink(&p, entry_at(&p, p.pt, &h));
    int before = mappings();
    for (int i = 0; i < N; i++) {
        port_unlink(&p, entry_at(&p, p.pt, &h));
        ptl_me_t me = port_entry(&p, memory, sizeof(memory),
                                 PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_USE_ONCE |
                                     PTL_ME_EVENT_UNLINK_DISABLE);
        handler_append(&p, &me, &h);
        show(&p, p.pt, 8);
    }
    CHECK(mappings() < before + N / 4);
    port_close(&p);
}

/* ---- What appending refuses ---- */

static void refused(struct port *p, ptl_handlers_t h)
{
    ptl_handle_me_t handle;
    ptl_me_t me = port_entry(p, memory, sizeof(memory), PTL_ME_OP_PUT);
    INVALID(handler_append_code(p, p->pt, &me, &h, NULL, &handle));
}

PTEST_KINDS(bad_handlers, 1)
{
    static unsigned char state[64];
    struct port p;
    ptl_spin_limits_t l;
    ptl_handle_ni_t ni;
    ptl_handle_hpu_mem_t foreign;
    port_open(&p, kind, rank, size);
    OK(PtlSpinLimits(p.ni, &l));
    ptl_handle_hpu_mem_t mem = allocate(&p, 64), stale = allocate(&p, 64);
    OK(PtlHPUFreeMem(stale));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, kind ^ KIND_MP ^ KIND_NL, PTL_PID_ANY, NULL, NULL, &ni));
    OK(PtlHPUAllocMem(ni, 64, &foreign));
    const ptl_handlers_t good = showing(mem, state, 64);
    ptl_handlers_t h = good;
    for (unsigned bit = 3; bit < 8; bit++) {
        h.options = 1u << bit;
        refused(&p, h);
    }
    h.options = PTL_HANDLER_MESSAGE_STATE(PTL_SPIN_MESSAGE_STATE + 1);
    refused(&p, h);
    h = good;
    if (l.num_hpus < 64) {
        h.hpu_mask = UINT64_C(1) << l.num_hpus;
        refused(&p, h);
        h.hpu_mask = UINT64_MAX;
        refused(&p, h);
    }
    h = good;
    h.user_hdr_length = l.max_user_hdr_size + 1;
    refused(&p, h);
    h.user_hdr_length = PTL_SIZE_MAX;
    refused(&p, h);
    h = good;
    h.hpu_initial_length = 65; /* more than the memory has */
    refused(&p, h);
    h = good;
    h.hpu_mem = PTL_HPU_MEM_NONE;
    h.hpu_initial_length = l.max_initial_state + 1;
    refused(&p, h);
    h.hpu_initial_state = NULL;
    refused(&p, h);
    h = good;
    h.handler_host_mem = NULL;
    refused(&p, h);
    const ptl_handle_any_t others[] = {stale, foreign, p.ni, p.eq, PTL_INVALID_HANDLE, PTL_EQ_NONE};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        h = good;
        h.hpu_mem = others[i];
        refused(&p, h);
    }
    CHECK_CODE(PtlEQGet(p.eq, &(ptl_event_t){0}), PTL_EQ_EMPTY); /* nothing was linked */
    OK(PtlHPUFreeMem(mem));                                      /* and nothing refers to it */
    OK(PtlNIFini(ni));
    port_close(&p);
}

PTEST_KINDS(bad_entries, 1)
{
    struct port p;
    ptl_handle_me_t handle;
    port_open(&p, kind, rank, size);
    ptl_handle_hpu_mem_t mem = allocate(&p, 64);
    ptl_handlers_t h = showing(mem, NULL, 64);
    ptl_me_t me = port_entry(&p, memory, sizeof(memory), PTL_ME_OP_PUT);
    ptl_le_t le = {memory, sizeof(memory), PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
    bool m = port_matching(&p);
    if (m) {
        INVALID(PtlLEAppendHandlers(p.ni, p.pt, &le, &h, PTL_PRIORITY_LIST, NULL, &handle));
        INVALID(PtlMEAppendHandlers(p.ni, p.pt, &me, &h, PTL_OVERFLOW_LIST, NULL, &handle));
        INVALID(PtlMEAppendHandlers(p.ni, p.pt, NULL, &h, PTL_PRIORITY_LIST, NULL, &handle));
        INVALID(PtlMEAppendHandlers(p.ni, p.pt, &me, &h, PTL_PRIORITY_LIST, NULL, NULL));
        INVALID(PtlMEAppendHandlers(p.eq, p.pt, &me, &h, PTL_PRIORITY_LIST, NULL, &handle));
    } else {
        INVALID(PtlMEAppendHandlers(p.ni, p.pt, &me, &h, PTL_PRIORITY_LIST, NULL, &handle));
        INVALID(PtlLEAppendHandlers(p.ni, p.pt, &le, &h, PTL_OVERFLOW_LIST, NULL, &handle));
        INVALID(PtlLEAppendHandlers(p.ni, p.pt, NULL, &h, PTL_PRIORITY_LIST, NULL, &handle));
        INVALID(PtlLEAppendHandlers(p.ni, p.pt, &le, &h, PTL_PRIORITY_LIST, NULL, NULL));
        INVALID(PtlLEAppendHandlers(p.eq, p.pt, &le, &h, PTL_PRIORITY_LIST, NULL, &handle));
    }
    INVALID(handler_append_code(&p, p.pt + 1, &me, &h, NULL, &handle));
    INVALID(handler_append_code(&p, 0xffffffff, &me, &h, NULL, &handle));
    me.options |= 1u << 30;
    INVALID(handler_append_code(&p, p.pt, &me, &h, NULL, &handle));
    OK(PtlHPUFreeMem(mem));
    port_close(&p);
}

/* An entry that the list has no room for leaves no reference behind. */
PTEST_KINDS(full_list, 1)
{
    struct port p;
    ptl_handle_me_t handle;
    ptl_ni_limits_t desired;
    memset(&desired, 0, sizeof(desired));
    desired.max_entries = desired.max_list_size = 2;
    desired.max_eqs = desired.max_mds = desired.max_cts = 8;
    desired.max_pt_index = 63;
    desired.max_msg_size = 4096;
    port_open_with(&p, PTL_IFACE_DEFAULT, kind, rank, size, &desired);
    ptl_handle_hpu_mem_t mem = allocate(&p, 64);
    ptl_handlers_t h = showing(mem, NULL, 64);
    ptl_me_t me = port_entry(&p, memory, sizeof(memory), PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    int code;
    ptl_handle_me_t linked[100];
    int n = 0;
    while ((code = handler_append_code(&p, p.pt, &me, &h, NULL, &handle)) == PTL_OK && n < 100) {
        linked[n++] = handle;
    }
    CHECK(code == PTL_LIST_TOO_LONG || code == PTL_NO_SPACE);
    CHECK(n >= 1 && n < 100);
    for (int i = 0; i < n; i++) {
        CHECK_CODE(PtlHPUFreeMem(mem), PTL_IN_USE);
        port_unlink(&p, linked[i]);
    }
    OK(PtlHPUFreeMem(mem));
    port_close(&p);
}

/* `handlers` may be NULL: a plain entry. */
PTEST_KINDS(null_handlers, 1)
{
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_me_t entry = entry_at(&p, p.pt, NULL);
    ptl_handle_md_t md = port_quiet_md(&p, "deposit", 8, 0, PTL_CT_NONE);
    OK(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0));
    EVENT(p.eq, PTL_EVENT_PUT);
    CHECK(memcmp(memory, "deposit", 8) == 0);
    port_unlink(&p, entry);
    port_close(&p);
}
