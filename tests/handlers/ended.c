/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is said of a handler that is ended: of a call, which argument, its value, and what it
 * might have been; of a fault, where from; of time and return codes, that it was these. The same
 * for native ones and twins on RV32; PINWHEEL_HPU says which.
 */
#include "kit.h"

#include "ended_handlers.h"

#include <stdlib.h>
#include <time.h>

enum { BITS = 5, ROOM = 1024 };

static void check_says(const char *text, const char *what, uint32_t how)
{
    if (strstr(text, what) == NULL) {
        ptest_fail(__FILE__, __LINE__, "%u: \"%s\" is not in: %s", how, what, text);
    }
}

/* A message whose handler ends so: with `fail`; of one that ends well nobody but its sender hears.
 */
static void run(struct kit *k, int rank, uint32_t how, int fail, char *text, size_t room)
{
    static _Alignas(64) uint8_t memory[ROOM], data[64];
    struct ended_state state = {.how = how};
    if (rank == 1) {
        ptl_handlers_t h = ended_handlers;
        h.hpu_initial_state = &state;
        begin_capture();
        ptl_handle_me_t entry = kit_entry(k, memory, ROOM, BITS, 0, PTL_CT_NONE, &h);
        BARRIER();
        if (fail != PTL_NI_OK) {
            EVENT_FAIL(k->p.eq, PTL_EVENT_PUT, fail);
        }
        BARRIER();
        end_capture(text, room);
        port_unlink(&k->p, entry);
    } else {
        BARRIER();
        kit_put_once(k, data, sizeof(data), 1, BITS, 0, 0, fail);
        BARRIER();
    }
}

static bool are_twins(void)
{
    const char *hpu = getenv("PINWHEEL_HPU");
    return hpu != NULL && strcmp(hpu, "rv32") == 0;
}

static const char *word_of(int fail)
{
    return fail == PTL_NI_HANDLER_SEGV ? "SEGV" : fail == PTL_NI_HANDLER_FAIL ? "FAIL" : "TIMEOUT";
}

PTEST_LIMIT(says, 2, 120)
{
    static const struct {
        const char *call, *says, *native;
        int fail;
    } rows[ENDED_HOWS] = {
        [ENDED_OFFSET] = {"DMAToHostB",
                          "offset 1100, length 8: the entry (PTL_ME_HOST_MEM) has 1024 bytes", NULL,
                          PTL_NI_HANDLER_SEGV},
        [ENDED_LENGTH] = {"DMAFromHostB",
                          "offset 1020, length 8: the entry (PTL_ME_HOST_MEM) has 1024 bytes", NULL,
                          PTL_NI_HANDLER_SEGV},
        [ENDED_OPTIONS] = {"DMAToHostNB",
                           "options 0x7 is neither PTL_ME_HOST_MEM nor PTL_HANDLER_HOST_MEM", NULL,
                           PTL_NI_HANDLER_SEGV},
        [ENDED_NO_HANDLER_MEM] = {"DMAFromHostNB",
                                  "offset 0, length 8: PTL_HANDLER_HOST_MEM has 0 bytes", NULL,
                                  PTL_NI_HANDLER_SEGV},
        [ENDED_ATOMIC] = {"DMACASB",
                          "offset 2048, length 8: the entry (PTL_ME_HOST_MEM) has 1024 bytes", NULL,
                          PTL_NI_HANDLER_SEGV},
        [ENDED_HANDLE] = {"DMAWait", "handle 9 was not given: this handler has had 1, from 1", NULL,
                          PTL_NI_HANDLER_FAIL},
        [ENDED_NO_HANDLE] = {"DMATest", "handle 0 was not given: this handler has had 0, from 1",
                             NULL, PTL_NI_HANDLER_FAIL},
        [ENDED_TYPE] = {"DMAFetchAddB", "is no integer of 8 to 64 bits", NULL, PTL_NI_HANDLER_FAIL},
        [ENDED_DMA_ODD] = {"DMAFetchAddB", "offset 4: misaligned by 4, an atomic of 8 bytes", NULL,
                           PTL_NI_HANDLER_SEGV},
        [ENDED_DMA_CAS_ODD] = {"DMACASNB", "offset 11: misaligned by 3, an atomic of 8 bytes", NULL,
                               PTL_NI_HANDLER_SEGV},
        [ENDED_FADD_ODD] = {"FAdd", "value 0x1001440c: misaligned by 4, an atomic of 8 bytes",
                            ": misaligned by 4, an atomic of 8 bytes", PTL_NI_HANDLER_SEGV},
        [ENDED_CAS_ODD] = {"CAS", "value 0x1001440d: misaligned by 5, an atomic of 8 bytes",
                           ": misaligned by 5, an atomic of 8 bytes", PTL_NI_HANDLER_SEGV},
        [ENDED_SENDS] = {"PutFromHost",
                         "offset 1020, length 8: the entry (PTL_ME_HOST_MEM) has 1024 bytes", NULL,
                         PTL_NI_HANDLER_SEGV},
        [ENDED_TIME] = {NULL, "used ",
                        "used more than PINWHEEL_HANDLER_BUDGET_US; in handlers_ended+0x",
                        PTL_NI_HANDLER_TIMEOUT},
        [ENDED_TIME_CALLS] = {NULL, "used ", "used more than PINWHEEL_HANDLER_BUDGET_US; in ",
                              PTL_NI_HANDLER_TIMEOUT},
        [ENDED_CODE] = {NULL, NULL, NULL, PTL_NI_HANDLER_FAIL},
        [ENDED_JUMP] = {NULL, "control left the code; pc 0x00000000, from 0x1d",
                        "control left the code for 0x0, called from handlers_ended+0x",
                        PTL_NI_HANDLER_SEGV},
        [ENDED_STACK] = {NULL, ", a stack overflow by 4: the stack has 65536 bytes at 0x1b000000",
                         "a stack overflow by 4: the stack has 65536 bytes at 0x",
                         PTL_NI_HANDLER_SEGV},
    };
    bool twin = are_twins();
    struct kit k;
    char text[4096], call[80];
    kit_open(&k, rank, size);
    for (uint32_t i = 0; i < ENDED_HOWS; i++) {
        run(&k, rank, i, rows[i].fail, text, sizeof(text));
        if (rank == 0) {
            continue;
        }
        check_says(text,
                   twin ? "warning: handler ended_payload on RV32 "
                        : "warning: handler ended_payload (handlers_ended+0x",
                   i);
        if (i == ENDED_CODE) {
            check_says(text,
                       "returned 99, which counts as FAIL: a payload handler may return "
                       "SUCCESS or DROP\n",
                       i);
            continue;
        }
        bool calls = rows[i].call != NULL;
        snprintf(call, sizeof(call), " ended with %s: %s%s%s", word_of(rows[i].fail),
                 calls ? "in PtlHandler" : "", calls ? rows[i].call : "", calls ? ": " : "");
        check_says(text, call, i);
        check_says(text, !twin && rows[i].native != NULL ? rows[i].native : rows[i].says, i);
        if (twin) {
            check_says(text, "ended_handlers.c:", i);
        } else if (calls) {
            check_says(text, "; called from handlers_ended+0x", i);
        }
    }
    kit_close(&k);
}

/* This processor does misaligned atomics, the cores do not (docs/rv32-handlers.md). */
PTEST(misaligned, 2)
{
    static const char *const says[] = {"0x1001440a: misaligned by 2, an atomic of 8 bytes",
                                       "0x1001440a: misaligned by 2"};
    bool twin = are_twins();
    char text[4096];
    struct kit k;
    kit_open(&k, rank, size);
    for (uint32_t i = 0; i < 2; i++) {
        run(&k, rank, ENDED_C11_ODD_8 + i, twin ? PTL_NI_HANDLER_SEGV : PTL_NI_OK, text,
            sizeof(text));
        if (rank == 1 && twin) {
            check_says(text, says[i], i);
            check_says(text, "must be a multiple of ", i);
            check_says(text, "ended_handlers.c:", i); /* not the line of the run time alone */
        }
    }
    kit_close(&k);
}

/* Of these the kernel knows no address. */
PTEST(no_address, 2)
{
    static const char *const says[] = {
        "an address that cannot be, a misaligned vector access, or a privileged instruction; in "
        "handlers_ended+0x",
        "control left the code for an address that cannot be; in handlers_ended+0x",
        "an address that cannot be, a misaligned vector access, or a privileged instruction; in "
        "handlers_ended+0x",
        "an address that cannot be, a misaligned vector access, or a privileged instruction; in "
        "handlers_ended+0x"};
    char text[4096];
    struct kit k;
    kit_open(&k, rank, size);
    for (uint32_t i = ENDED_NO_ADDRESS; i <= ENDED_ODD_VECTOR && !are_twins(); i++) {
        run(&k, rank, i, PTL_NI_HANDLER_SEGV, text, sizeof(text));
        if (rank == 1) {
            check_says(text, says[i - ENDED_NO_ADDRESS], i);
        }
    }
    kit_close(&k);
}

/* The same end again and again is told ten times, then once a second; another one is told. */
PTEST_LIMIT(flood, 2, 120)
{
    enum { TIMES = 60 };
    static char text[1 << 14], whole[TIMES][1 << 12];
    struct kit k;
    struct timespec from, to;
    unsigned lines = 0;
    kit_open(&k, rank, size);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < TIMES; i++) {
        run(&k, rank, ENDED_HANDLE, PTL_NI_HANDLER_FAIL, whole[i], sizeof(whole[i]));
        lines += rank == 1 && strstr(whole[i], "handle 9 was not given") != NULL;
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    run(&k, rank, ENDED_OFFSET, PTL_NI_HANDLER_SEGV, text, sizeof(text));
    if (rank == 1) {
        CHECK(lines >= 10 && lines <= 10 + (unsigned)(to.tv_sec - from.tv_sec + 1));
        check_says(whole[9], "; from here on one line a second\n", 9);
        check_says(text, "offset 1100", TIMES);
    }
    kit_close(&k);
}

/* A fault in the run time of RV32 is somebody's who called it. */
PTEST(run_time, 2)
{
    static const char *const says[] = {" in clear", " in divide"};
    char text[4096];
    struct kit k;
    kit_open(&k, rank, size);
    for (uint32_t i = ENDED_MEMSET; i <= ENDED_DIVIDE && are_twins(); i++) {
        run(&k, rank, i, PTL_NI_HANDLER_SEGV, text, sizeof(text));
        if (rank == 1) {
            check_says(text, ", called from 0x1d", i);
            check_says(text, says[i - ENDED_MEMSET], i);
            check_says(text, "ended_handlers.c:", i);
        }
    }
    kit_close(&k);
}
