/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who has nothing to do does nothing, and who computes is served all the same
 * (W5): idle processes use no CPU and make no system call; a program that
 * computes without calling Portals receives puts, gets and messages with
 * handlers meanwhile.
 */
#include "port.h"

#include "spin.h"
#include "spin_handler.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { IDLE_MS = 3000, LENGTH = 50000, ROUNDS = 5, DONE = 40 };

static unsigned char memory[LENGTH], mine[LENGTH];

struct usage {
    long ticks, sleeps;
};

/* Time in clock ticks and voluntary switches of all threads of this process. */
static struct usage usage(void)
{
    struct rusage u;
    struct usage result = {0, 0};
    unsigned long user = 0, kernel = 0;
    FILE *f = fopen("/proc/self/stat", "r");
    CHECK(f != NULL);
    CHECK(fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                 &kernel) == 2);
    fclose(f);
    getrusage(RUSAGE_SELF, &u);
    result.ticks = (long)(user + kernel);
    result.sleeps = u.ru_nvcsw;
    return result;
}

PTEST(idle_pair_uses_no_cpu, 2)
{
    struct port p;
    port_open(&p, KIND_MP, rank, size);
    port_target(&p, memory, LENGTH, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    ptl_handle_ct_t ct = port_ct(&p);
    ptl_handle_md_t md =
        port_quiet_md(&p, mine, LENGTH, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, ct);
    BARRIER();
    for (uint64_t i = 1; i <= 20; i++) { /* both know each other and were busy */
        OK(PtlPut(md, 0, i * 1000, PTL_CT_ACK_REQ, p.id[1 - rank], p.pt, 0, 0, NULL, 0));
        port_wait_ct(ct, 2 * i - 1);
        OK(PtlGet(md, 0, i * 1000, p.id[1 - rank], p.pt, 0, 0, NULL));
        port_wait_ct(ct, 2 * i);
    }
    BARRIER();
    ptest_sleep_ms(300); /* leases run out */
    struct usage before = usage();
    ptest_sleep_ms(IDLE_MS);
    struct usage after = usage();
    /* One sleep is this one; one tick may fall on anybody. */
    CHECK(after.sleeps - before.sleeps <= 5);
    CHECK(after.ticks - before.ticks <= 1);
    port_close(&p);
}

/* ---- a program that computes ---- */

__handler static int count_bytes(const ptl_payload_t payload, void *state)
{
    uint64_t sum = 0;
    for (ptl_size_t i = 0; i < payload.length; i++) {
        sum += payload.base[i];
    }
    PtlHandlerFAdd(state, NULL, sum);
    return SUCCESS;
}

__handler static int answer(ptl_size_t dropped_bytes, bool flow_control_triggered, void *state)
{
    uint64_t *s = state; /* sum, rounds, nid and pid of the asker, its portal index */
    uint64_t round = ++s[1];
    ptl_process_t to = {.phys = {.nid = (ptl_nid_t)s[2], .pid = (ptl_pid_t)s[3]}};
    return PtlHandlerPutFromDeviceEx(s, 8, PTL_NO_ACK_REQ, to, (ptl_pt_index_t)s[4], 0, 0, NULL,
                                     round) == PTL_OK
               ? SUCCESS
               : FAIL;
}

/* Rank 1 computes until rank 0 says that puts, gets and messages with handlers
 * have all been served; it has made no call of Portals then. */
PTEST_LIMIT(computing_program_is_served, 2, 60)
{
    struct port p;
    port_open(&p, KIND_MP, rank, size);
    ptl_pt_index_t handled;
    OK(PtlPTAlloc(p.ni, 0, p.eq, PTL_PT_ANY, &handled));
    ptest_fill(memory, LENGTH, 5);
    uint64_t sum = 0, got = 0;
    for (size_t i = 0; i < LENGTH; i++) {
        sum += memory[i];
    }
    if (rank == 1) {
        uint64_t state[5] = {0, 0, p.phys[0].phys.nid, p.phys[0].phys.pid, p.pt};
        ptl_handlers_t h = {.payload_handler = count_bytes,
                            .completion_handler = answer,
                            .hpu_mem = PTL_HPU_MEM_NONE,
                            .hpu_initial_state = state,
                            .hpu_initial_length = sizeof(state)};
        ptl_me_t me = port_entry(&p, mine, LENGTH, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        ptl_handle_me_t handle;
        OK(PtlMEAppendHandlers(p.ni, handled, &me, &h, PTL_PRIORITY_LIST, NULL, &handle));
        port_target(&p, memory, LENGTH, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    } else {
        port_target(&p, &got, sizeof(got), PTL_ME_OP_PUT, NULL);
    }
    BARRIER();
    if (rank == 0) {
        ptest_fill(mine, LENGTH, 5);
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_handle_md_t md =
            port_quiet_md(&p, mine, LENGTH, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, ct);
        ptest_sleep_ms(50); /* rank 1 computes by now */
        for (uint64_t i = 0; i < ROUNDS; i++) {
            size_t length = i % 2 ? LENGTH : 64;
            OK(PtlPut(md, 0, length, PTL_CT_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
            port_wait_ct(ct, 3 * i + 1);
            OK(PtlGet(md, 0, length, p.id[1], p.pt, 0, 0, NULL));
            port_wait_ct(ct, 3 * i + 2);
            CHECK_FILL(mine, length, 5);
            OK(PtlPut(md, 0, LENGTH, PTL_CT_ACK_REQ, p.id[1], handled, 0, 0, NULL, 0));
            port_wait_ct(ct, 3 * i + 3);
            CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).hdr_data, i + 1);
            CHECK_EQ(got, (i + 1) * sum);
        }
        ptest_show(DONE, 1);
    } else {
        volatile unsigned x = 1;
        uint64_t end = ptest_now_ms() + 20000u * (unsigned)ptest_slow();
        while (ptest_look(0, DONE) == 0 && ptest_now_ms() < end) {
            for (int i = 0; i < 100000; i++) {
                x = x * 1664525u + 1013904223u;
            }
        }
        CHECK_EQ(ptest_look(0, DONE), 1);
        for (int i = 0; i < ROUNDS; i++) { /* and in the order in which they came */
            EVENT(p.eq, PTL_EVENT_PUT);
            EVENT(p.eq, PTL_EVENT_GET);
            CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).pt_index, handled);
        }
        NO_EVENT(p.eq);
    }
    port_close(&p);
}
