/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that is not there, on either side of a put or a get. Each process maps
 * an arena of pages of different kinds:
 *
 *      | writable HALF | no access HALF |   the half-mapped range
 *      | read-only     |   | unmapped   |
 *
 * An operation that touches what it may not ends with PTL_NI_SEGV at both ends;
 * nobody dies, and the next operation works.
 */
#include "port.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HALF = 1 << 20 };

static unsigned char *half;     /* HALF bytes writable, HALF bytes without access */
static unsigned char *readonly; /* HALF bytes */
static unsigned char *nothing;  /* HALF bytes without a mapping */
static unsigned char good[2 * HALF];

static void *map(size_t length, int protection)
{
    void *at = mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static void make_arena(void)
{
    char nothing_here;
    half = map(2 * HALF, PROT_NONE);
    CHECK_EQ(mprotect(half, HALF, PROT_READ | PROT_WRITE), 0);
    ptest_fill(half, HALF, 1);
    readonly = map(HALF, PROT_READ | PROT_WRITE);
    ptest_fill(readonly, HALF, 2);
    CHECK_EQ(mprotect(readonly, HALF, PROT_READ), 0);
    /* Below the stack's limit and above where mmap() begins: what is unmapped there
     * stays so, whatever the library maps later. */
    nothing = (unsigned char *)(((uintptr_t)&nothing_here - (64u << 20)) & ~(uintptr_t)4095);
    unsigned char resident;
    CHECK(mincore(nothing, 1, &resident) != 0 && errno == ENOMEM);
}

enum place { GOOD, HALF_MAPPED, READ_ONLY, UNMAPPED, PLACES };

static const char *const place_names[] = {"good", "half-mapped", "read-only", "unmapped"};

static unsigned char *place_start(enum place place, size_t length)
{
    switch (place) {
    case HALF_MAPPED:
        return half + HALF - length / 2; /* its second half is not there */
    case READ_ONLY:
        return readonly;
    case UNMAPPED:
        return nothing;
    default:
        return good;
    }
}

static bool readable(enum place place)
{
    return place == GOOD || place == READ_ONLY;
}

/* Rank 0 has `local`, rank 1 `remote` behind the operation. */
static void one_case(struct port *p, bool get, size_t length, enum place local, enum place remote)
{
    bool fails = get ? !readable(remote) || local != GOOD : !readable(local) || remote != GOOD;
    int fail = fails ? PTL_NI_SEGV : PTL_NI_OK;
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    ptl_handle_ct_t ct = port_ct(p);
    ptl_ct_event_t value;
    memset(good, 0, length);
    if (p->rank == 1) {
        ptl_me_t me = port_entry(p, place_start(remote, length), length,
                                 PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM |
                                     PTL_ME_EVENT_LINK_DISABLE);
        me.ct_handle = ct;
        entry = port_append(p, &me, NULL);
    }
    BARRIER();
    if (p->rank == 0) {
        ptl_handle_md_t md =
            port_md(p, place_start(local, length), length,
                    PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_SEND_DISABLE, ct);
        if (get) {
            OK(PtlGet(md, 0, length, p->id[1], p->pt, 0, 0, &half));
        } else {
            OK(PtlPut(md, 0, length, PTL_ACK_REQ, p->id[1], p->pt, 0, 0, &half, 0));
        }
        ptl_event_t event;
        do { /* a failed SEND may come before the ACK */
            unsigned which;
            OK(PtlEQPoll(&p->mdeq, 1, 10000u * (unsigned)ptest_slow(), &event, &which));
            if (event.ni_fail_type != fail) {
                FAIL("%s of %zu bytes, local memory %s, remote memory %s: ni_fail_type is %d, not "
                     "%d",
                     get ? "get" : "put", length, place_names[local], place_names[remote],
                     event.ni_fail_type, fail);
            }
        } while (event.type == PTL_EVENT_SEND);
        CHECK_EQ(event.type, get ? PTL_EVENT_REPLY : PTL_EVENT_ACK);
        CHECK_EQ(event.user_ptr, &half);
        OK(PtlCTWait(ct, 1, &value));
        CHECK_EQ(value.success, !fails);
        CHECK_EQ(value.failure, fails);
        if (get && local == GOOD && remote == READ_ONLY) {
            CHECK_FILL(good, length, 2);
        }
        port_release(md);
    } else {
        ptl_event_t event;
        unsigned which;
        OK(PtlEQPoll(&p->eq, 1, 10000u * (unsigned)ptest_slow(), &event, &which));
        CHECK_EQ(event.type, get ? PTL_EVENT_GET : PTL_EVENT_PUT);
        /* a target that has sent its part well cannot know that there is no
         * room for it at the initiator */
        if (!get || readable(remote)) {
            if (!(get && local != GOOD && event.ni_fail_type == PTL_NI_OK) &&
                event.ni_fail_type != fail) {
                FAIL("%s of %zu bytes, local memory %s, remote memory %s: at the target "
                     "ni_fail_type is %d, not %d",
                     get ? "get" : "put", length, place_names[local], place_names[remote],
                     event.ni_fail_type, fail);
            }
        } else {
            CHECK_EQ(event.ni_fail_type, PTL_NI_SEGV);
        }
        OK(PtlCTWait(ct, 1, &value));
        CHECK_EQ(value.failure, event.ni_fail_type != PTL_NI_OK);
        if (!get && local == READ_ONLY && remote == GOOD) {
            CHECK_FILL(good, length, 2);
        }
        port_unlink(p, entry);
    }
    BARRIER();
    CHECK_FILL(readonly, length, 2); /* nobody wrote there */
    OK(PtlCTFree(ct));
}

static void all_cases(int rank, int size, unsigned kind, const char *large)
{
    /* inline, a packet, some packets, many; and at every alignment of the edge */
    static const size_t lengths[] = {2, 8, 63, 64, 500, 1024, 1025, 4096, 5001, 65536, HALF};
    struct port p;
    setenv("PINWHEEL_SHM_LARGE", large, 1);
    port_open(&p, kind, rank, size);
    make_arena();
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (int get = 0; get < 2; get++) {
            for (int local = 0; local < PLACES; local++) {
                for (int remote = 0; remote < PLACES; remote++) {
                    one_case(&p, get != 0, lengths[i], (enum place)local, (enum place)remote);
                }
            }
        }
    }
    NO_EVENT(p.eq);
    NO_EVENT(p.mdeq);
    port_close(&p);
}

PTEST(segv_cells, 2)
{
    all_cases(rank, size, KIND_MP, "cells");
}

PTEST(segv_vm, 2)
{
    all_cases(rank, size, KIND_NL, "vm");
}

/* Both ends in one process. */
PTEST_KINDS(segv_of_self, 1)
{
    static const size_t lengths[] = {2, 64, 1025, 5001, HALF};
    struct port p;
    port_open(&p, kind, rank, size);
    make_arena();
    for (int i = 0; i < 5 * PLACES * PLACES; i++) {
        size_t length = lengths[i % 5];
        enum place local = (enum place)(i / 5 % PLACES), remote = (enum place)(i / 5 / PLACES);
        if (local == remote) {
            continue; /* a range onto itself is no test */
        }
        ptl_handle_me_t entry = port_target(&p, place_start(remote, length), length,
                                            PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
        ptl_handle_md_t md =
            port_md(&p, place_start(local, length), length, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        ptl_event_t event;
        int put_fail = readable(local) && remote == GOOD ? PTL_NI_OK : PTL_NI_SEGV;
        int get_fail = readable(remote) && local == GOOD ? PTL_NI_OK : PTL_NI_SEGV;
        OK(PtlPut(md, 0, length, PTL_ACK_REQ, p.id[0], p.pt, 0, 0, NULL, 0));
        do {
            OK(PtlEQWait(p.mdeq, &event));
            CHECK_EQ(event.ni_fail_type, put_fail);
        } while (event.type == PTL_EVENT_SEND);
        EVENT_FAIL(p.eq, PTL_EVENT_PUT, put_fail);
        OK(PtlGet(md, 0, length, p.id[0], p.pt, 0, 0, NULL));
        EVENT_FAIL(p.mdeq, PTL_EVENT_REPLY, get_fail);
        OK(PtlEQWait(p.eq, &event));
        CHECK_EQ(event.type, PTL_EVENT_GET);
        port_unlink(&p, entry);
        port_release(md);
    }
    CHECK_FILL(readonly, HALF, 2);
    port_close(&p);
}

/* Memory that goes away while an MD and an entry name it. */
PTEST_KINDS(unmapped_later, 2)
{
    struct port p;
    port_open(&p, kind, rank, size);
    unsigned char *memory = map(HALF, PROT_READ | PROT_WRITE);
    ptl_handle_md_t md = port_md(&p, memory, HALF, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    if (rank == 1) {
        port_target(&p, memory, HALF, PTL_ME_OP_PUT | PTL_ME_EVENT_COMM_DISABLE, NULL);
    }
    for (int round = 0; round < 2; round++) {
        BARRIER();
        if (rank == 0) {
            OK(PtlPut(md, 0, HALF, PTL_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
            EVENT_FAIL(p.mdeq, PTL_EVENT_ACK, round == 0 ? PTL_NI_OK : PTL_NI_SEGV);
        }
        BARRIER();
        if (round == 0 && rank == 1) {
            CHECK_EQ(munmap(memory, HALF), 0);
        }
    }
    port_close(&p);
}
