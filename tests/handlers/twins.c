/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers on the RV32 cores, on live traffic: what ends one and what is said about it, what
 * they are called with, what calls cost, which handlers are refused. The settings all have
 * PINWHEEL_HPU=rv32 and a budget of BUDGET microseconds.
 */
#include "kit.h"

#include "twins_handlers.h"

enum { BITS = 5, BUDGET = 2000, CYCLES = BUDGET * 1000, PACKET = 1024 };

#define CHECK_SAYS(text, what)                                                                     \
    do {                                                                                           \
        if (strstr(text, what) == NULL) {                                                          \
            ptest_fail(__FILE__, __LINE__, "\"%s\" is not in: %s", what, text);                    \
        }                                                                                          \
    } while (0)

/* ---- Cases ---- */

static ptl_handle_me_t append(struct kit *k, void *memory, const ptl_handlers_t *what,
                              struct twins_state *state, uint64_t user_header,
                              ptl_handle_hpu_mem_t hpu_mem)
{
    ptl_handlers_t h = *what;
    h.hpu_initial_state = state;
    h.user_hdr_length = user_header;
    h.hpu_mem = hpu_mem;
    return kit_entry(k, memory, PACKET, BITS, 0, PTL_CT_NONE, &h);
}

/* A message whose handler strays in that way: it ends with `fail`; rank 1 has what was said. */
static void go_astray(struct kit *k, int rank, uint32_t what, int fail, char *text, size_t room)
{
    static _Alignas(64) uint8_t memory[PACKET], data[64];
    struct twins_state state = {.what = what, .length = sizeof(state)};
    memset(state.header, what == TWINS_DIVIDE ? 0 : '.', sizeof(state.header)); /* no text ends */
    if (rank == 1) {
        begin_capture();
        ptl_handle_me_t entry = append(k, memory, &twins_faulty, &state, 0, PTL_HPU_MEM_NONE);
        BARRIER();
        EVENT_FAIL(k->p.eq, PTL_EVENT_PUT, fail);
        end_capture(text, room);
        port_unlink(&k->p, entry);
    } else {
        BARRIER();
        kit_put_once(k, data, sizeof(data), 1, BITS, 0, 0, fail);
    }
    BARRIER();
}

/* Each way to stray ends the handler, says where it was, and harms nobody. */
PTEST_LIMIT(faults, 2, 120)
{
    static const struct {
        const char *says;
        int fail;
    } expected[TWINS_FAULTS] = {
        [TWINS_LOAD] = {"SEGV: may not load 4 bytes at 0x00000", PTL_NI_HANDLER_SEGV},
        [TWINS_STORE_CODE] = {"SEGV: may not store 2 bytes at 0x1d0", PTL_NI_HANDLER_SEGV},
        [TWINS_STORE_CONSTANT] = {"SEGV: may not store 4 bytes at 0x1c0", PTL_NI_HANDLER_SEGV},
        [TWINS_BEYOND_STATE] = {"SEGV: may not load 1 byte at 0x10014", PTL_NI_HANDLER_SEGV},
        [TWINS_BEYOND_PACKET] = {"SEGV: may not store 1 byte at 0x10004", PTL_NI_HANDLER_SEGV},
        [TWINS_STACK] = {"SEGV: stack overflow", PTL_NI_HANDLER_SEGV},
        [TWINS_ILLEGAL] = {"SEGV: illegal instruction 0x0000", PTL_NI_HANDLER_SEGV},
        [TWINS_JUMP] = {"SEGV: control left the code", PTL_NI_HANDLER_SEGV},
        [TWINS_SPIN] = {"TIMEOUT: used 20", PTL_NI_HANDLER_TIMEOUT},
        [TWINS_CALL_POINTER] = {"SEGV: in PtlHandlerDMAToHostB: argument 1, 0x00000020, is no "
                                "pointer into its memory",
                                PTL_NI_HANDLER_SEGV},
        [TWINS_CALL_LENGTH] = {"SEGV: in PtlHandlerDMAFromHostB: argument 2", PTL_NI_HANDLER_SEGV},
        [TWINS_CALL_HOST] = {"SEGV: in PtlHandlerDMAToHostB", PTL_NI_HANDLER_SEGV},
        [TWINS_CALL_FORMAT] = {"SEGV: in PtlHandlerPrintf: its text at 0x10014",
                               PTL_NI_HANDLER_SEGV},
        [TWINS_CALL_STRING] = {"SEGV: in PtlHandlerPrintf: its text at 0x00000020 is not in its "
                               "memory",
                               PTL_NI_HANDLER_SEGV},
        [TWINS_CALL_OPERAND] = {"SEGV: in PtlHandlerSwapFromDevice: argument 8, 0x10014",
                                PTL_NI_HANDLER_SEGV},
        [TWINS_CALL_NUMBER] = {"SEGV: in ecall: there is no handler call 4000",
                               PTL_NI_HANDLER_SEGV},
        [TWINS_DIVIDE] = {"SEGV: division by 0", PTL_NI_HANDLER_SEGV},
    };
    struct kit k;
    char text[4096];
    kit_open(&k, rank, size);
    for (uint32_t i = 0; i < TWINS_FAULTS; i++) {
        go_astray(&k, rank, i, expected[i].fail, text, sizeof(text));
        if (rank == 0) {
            continue;
        }
        CHECK_SAYS(text, "warning: handler faulty_payload on RV32 ended with ");
        CHECK_SAYS(text, expected[i].says);
        if (i != TWINS_JUMP) { /* which leads out of all functions */
            CHECK_SAYS(text, i == TWINS_STACK          ? " in deep"
                             : i == TWINS_DIVIDE       ? " in stray"
                             : i >= TWINS_CALL_POINTER ? " in stray_in_call"
                                                       : " in stray");
            CHECK_SAYS(text, "twins_handlers.c:");
        }
    }
    kit_close(&k);
}

/* The cycles of another core, which nothing that speaks of them hides. */
PTEST(timing, 2)
{
    struct kit k;
    char text[4096];
    setenv("PINWHEEL_HPU_TIMING", "arm", 1);
    kit_open(&k, rank, size);
    go_astray(&k, rank, TWINS_SPIN, PTL_NI_HANDLER_TIMEOUT, text, sizeof(text));
    if (rank == 1) {
        CHECK_SAYS(text, "TIMEOUT: used 5000"); /* at 2.5 GHz */
        CHECK_SAYS(text, "(cycles of arm: uncalibrated)");
    }
    kit_close(&k);
}

PTEST(arguments, 2)
{
    static _Alignas(64) uint8_t memory[PACKET], data[3 * 65536];
    struct kit k;
    kit_open(&k, rank, size);
    ptest_fill(data, sizeof(data), 1);
    const struct {
        size_t length, user_header;
    } cases[] = {{0, 0}, {1, 0}, {16, 16}, {5, 16}, {100, 7}, {2 * k.packet + 16, 16}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t length = cases[i].length, user = cases[i].user_header;
        user = user < length ? user : length;
        if (rank == 1) {
            struct twins_state state = {.what = 0}, got;
            ptl_handle_hpu_mem_t mem;
            OK(PtlHPUAllocMem(k.p.ni, sizeof(state), &mem));
            ptl_handle_me_t entry =
                append(&k, memory, &twins_telling, &state, cases[i].user_header, mem);
            BARRIER();
            BARRIER();
            OK(PtlHPURead(mem, 0, &got, sizeof(got)));
            size_t rest = length - user, first = rest < k.packet ? rest : k.packet;
            uint64_t sum = 0;
            for (size_t j = 0; j < rest; j++) {
                sum += j * data[user + j] % 251;
            }
            const uint64_t want[] = {
                length, BITS,         3, 0xfedcba9876543210u, user, 1, PTL_REQUEST_PUT,
                sum,    rest - first, 0};
            for (int j = 0; j < 10; j++) {
                CHECK_EQ(got.result[j], want[j]);
            }
            CHECK_SAME(got.header, data, user);
            port_unlink(&k.p, entry);
            OK(PtlHPUFreeMem(mem));
        } else {
            BARRIER();
            kit_put_once(&k, data, length, 1, BITS, 3, 0xfedcba9876543210u, PTL_NI_OK);
            BARRIER();
        }
    }
    kit_close(&k);
}

/* What a handler sees of its time is the core's, the same each time; beats of 64 bytes cost
 * one cycle each, and a transfer that is waited for at once costs about what a blocking one
 * does. */
PTEST(clock, 2)
{
    static _Alignas(64) uint8_t memory[PACKET], data[640];
    struct kit k;
    uint64_t first[5];
    kit_open(&k, rank, size);
    for (int i = 0; i < 5; i++) {
        if (rank == 1) {
            struct twins_state state = {.what = 0};
            ptl_handle_hpu_mem_t mem;
            OK(PtlHPUAllocMem(k.p.ni, sizeof(state), &mem));
            ptl_handle_me_t entry = append(&k, memory, &twins_timing, &state, 0, mem);
            BARRIER();
            BARRIER();
            OK(PtlHPURead(mem, 0, &state, sizeof(state)));
            for (int j = 0; j < 5 && i > 0; j++) {
                CHECK_EQ(state.result[j], first[j]);
            }
            memcpy(first, state.result, sizeof(first));
            CHECK(first[0] >= 5000 && first[0] <= 12000);
            CHECK_EQ(first[2] - first[1], 9);
            CHECK(first[3] < 40 && first[4] + 20 > first[2] && first[4] < first[2] + 20);
            port_unlink(&k.p, entry);
            OK(PtlHPUFreeMem(mem));
        } else {
            BARRIER();
            kit_put_once(&k, data, sizeof(data), 1, BITS, 0, 0, PTL_NI_OK);
            BARRIER();
        }
    }
    kit_close(&k);
}

/* Who asks again and again whether a transfer is done waits as long as who has it wait, but for the
 * last time it asks, and no answer comes too early. */
PTEST(polling, 2)
{
    static _Alignas(64) uint8_t memory[PACKET], data[640];
    struct kit k;
    uint64_t first[2][9];
    kit_open(&k, rank, size);
    for (unsigned i = 0; i < 6; i++) {
        bool yields = i % 2 != 0;
        if (rank == 1) {
            struct twins_state state = {.length = yields};
            ptl_handle_hpu_mem_t mem;
            OK(PtlHPUAllocMem(k.p.ni, sizeof(state), &mem));
            ptl_handle_me_t entry = append(&k, memory, &twins_polling, &state, 0, mem);
            BARRIER();
            BARRIER();
            OK(PtlHPURead(mem, 0, &state, sizeof(state)));
            CHECK_EQ(state.what, 0);
            for (int kind = 0; kind < 4; kind++) {
                uint64_t waits = state.result[2 * kind], asks = state.result[2 * kind + 1];
                CHECK(asks + 8 > waits && asks < waits + 40);
            }
            CHECK(state.result[8] < 20);
            for (int j = 0; j < 9; j++) {
                CHECK(i < 2 || state.result[j] == first[yields][j]);
                first[yields][j] = state.result[j];
            }
            port_unlink(&k.p, entry);
            OK(PtlHPUFreeMem(mem));
        } else {
            BARRIER();
            kit_put_once(&k, data, sizeof(data), 1, BITS, 0, 0, PTL_NI_OK);
            BARRIER();
        }
    }
    kit_close(&k);
}

/* The budget is that from one suspension to the next. */
PTEST(yielding, 2)
{
    static _Alignas(64) uint8_t memory[PACKET], data[8];
    struct kit k;
    char text[1024];
    kit_open(&k, rank, size);
    for (int i = 0; i < 2; i++) {
        int fail = i == 0 ? PTL_NI_OK : PTL_NI_HANDLER_TIMEOUT;
        if (rank == 1) {
            struct twins_state state = {.length = i == 0 ? CYCLES * 3 / 4 : CYCLES * 5 / 4};
            begin_capture();
            ptl_handle_me_t entry =
                append(&k, memory, &twins_yielding, &state, 0, PTL_HPU_MEM_NONE);
            BARRIER();
            BARRIER();
            end_capture(text, sizeof(text));
            CHECK(i == 1 || text[0] == '\0');
            if (i == 1) {
                EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_TIMEOUT);
            }
            port_unlink(&k.p, entry);
        } else {
            BARRIER();
            kit_put_once(&k, data, sizeof(data), 1, BITS, 0, 0, fail);
            BARRIER();
        }
    }
    kit_close(&k);
}

/* Counters of the host, structs by value; and the handler suspended until an answer is there. */
PTEST(asking, 2)
{
    static _Alignas(64) uint8_t memory[PACKET], data[8];
    static _Alignas(16) uint64_t pair[2] = {100, 1000};
    struct kit k;
    kit_open(&k, rank, size);
    if (rank == 1) {
        ptl_handle_ct_t ct;
        ptl_ct_event_t value;
        ptl_handle_hpu_mem_t mem;
        OK(PtlCTAlloc(k.p.ni, &ct));
        struct twins_state state = {.what = ct, .length = BITS + 1, .header = {(uint8_t)k.p.pt}},
                           got;
        OK(PtlHPUAllocMem(k.p.ni, sizeof(state), &mem));
        ptl_handle_me_t entry = append(&k, memory, &twins_asking, &state, 0, mem);
        BARRIER();
        BARRIER();
        OK(PtlHPURead(mem, 0, &got, sizeof(got)));
        const uint64_t want[] = {
            PTL_OK, PTL_OK, UINT64_C(3) << 32, PTL_OK, PTL_OK, 100, PTL_OK, 105, 1000, PTL_OK};
        for (int j = 0; j < 10; j++) {
            CHECK_EQ(got.result[j], want[j]);
        }
        OK(PtlCTGet(ct, &value));
        CHECK_EQ(value.success, 7);
        CHECK_EQ(value.failure, 1);
        port_unlink(&k.p, entry);
        OK(PtlHPUFreeMem(mem));
        OK(PtlCTFree(ct));
    } else {
        ptl_handle_ct_t counted;
        OK(PtlCTAlloc(k.p.ni, &counted));
        ptl_handle_me_t entry = kit_entry(&k, pair, sizeof(pair), BITS + 1, 0, counted, NULL);
        BARRIER();
        kit_put_once(&k, data, sizeof(data), 1, BITS, 0, 0, PTL_NI_OK);
        kit_wait(counted, 3); /* the fetch, the get, the atomic */
        CHECK_EQ(pair[0], 105);
        CHECK_EQ(pair[1], 1005);
        BARRIER();
        port_unlink(&k.p, entry);
        OK(PtlCTFree(counted));
    }
    kit_close(&k);
}

/* ---- Handlers without twins ---- */

__handler static int native_only(const ptl_payload_t p, void *state)
{
    return SUCCESS;
}
PTL_HANDLER(native_only);

PTEST(refused, 1)
{
    static _Alignas(64) uint8_t memory[PACKET];
    struct kit k;
    char text[1024];
    const struct {
        ptl_payload_handler_t handler;
        const char *says;
    } cases[] = {
        {native_only, "the handler native_only has no RV32 code; compile its file with "
                      "`pinwheel cc`"},
        {twins_unregistered, "is not registered; put PTL_HANDLER("},
    };
    kit_open(&k, rank, size);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ptl_handlers_t h = twins_faulty;
        ptl_me_t me = port_entry(&k.p, memory, sizeof(memory), PTL_ME_OP_PUT);
        ptl_handle_me_t entry;
        h.payload_handler = cases[i].handler;
        begin_capture();
        int rc = PtlMEAppendHandlers(k.p.ni, k.p.pt, &me, &h, PTL_PRIORITY_LIST, NULL, &entry);
        end_capture(text, sizeof(text));
        CHECK_EQ(rc, PTL_ARG_INVALID);
        CHECK_SAYS(text, cases[i].says);
    }
    kit_close(&k);
}
