/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors and entries that span the whole address space, as run times use
 * them: a local offset is an address here, a remote offset one there. */
#include "port.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 300000, SLOT = 0 };

static const size_t lengths[] = {0, 1, 8, 100, 5000, 100000, BYTES};

static void whole_space(unsigned kind, int rank, int size, int target)
{
    struct port p;
    port_open(&p, kind, rank, size);
    unsigned char *heap = malloc(BYTES), *local = malloc(BYTES);
    CHECK(heap != NULL && local != NULL);
    ptest_show(SLOT, (uintptr_t)heap);
    if (rank == target) {
        port_target(&p, NULL, PTL_SIZE_MAX, PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    }
    BARRIER();
    ptl_size_t remote = ptest_look(target, SLOT);
    ptl_handle_md_t md = port_md(&p, NULL, PTL_SIZE_MAX, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t length = lengths[i], skip = BYTES - length;
        memset(heap, 0xa5, BYTES);
        BARRIER();
        if (rank == 0) {
            ptest_fill(local + skip, length, i);
            OK(PtlPut(md, (uintptr_t)local + skip, length, PTL_ACK_REQ, p.id[target], p.pt, 0,
                      remote + skip, NULL, 0));
            ptl_event_t event = EVENT(p.mdeq, PTL_EVENT_ACK);
            CHECK_EQ(event.mlength, length);
            CHECK_EQ(event.remote_offset, remote + skip);
            memset(local, 0, BYTES);
            OK(PtlGet(md, (uintptr_t)local, length, p.id[target], p.pt, 0, remote + skip, NULL));
            event = EVENT(p.mdeq, PTL_EVENT_REPLY);
            CHECK_EQ(event.mlength, length);
            CHECK_FILL(local, length, i);
        }
        if (rank == target) {
            ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
            CHECK_EQ(event.start, heap + skip);
            CHECK_EQ(event.remote_offset, remote + skip);
            CHECK_EQ(event.mlength, length);
            CHECK_FILL(heap + skip, length, i);
            CHECK_BYTES(heap, skip, 0xa5);
            event = EVENT(p.eq, PTL_EVENT_GET);
            CHECK_EQ(event.start, heap + skip);
        }
        BARRIER();
    }
    free(heap);
    free(local);
    port_close(&p);
}

PTEST_KINDS(whole_space_of_self, 1)
{
    whole_space(kind, rank, size, 0);
}

PTEST_KINDS(whole_space_of_other, 2)
{
    whole_space(kind, rank, size, 1);
}

/* With NO_TRUNCATE, as one-sided run times ask for it. */
PTEST_MATCHING(whole_space_no_truncate, 2)
{
    static uint64_t words[1000];
    struct port p;
    port_open(&p, kind, rank, size);
    ptest_show(SLOT, (uintptr_t)words);
    if (rank == 1) {
        port_target(&p, NULL, PTL_SIZE_MAX,
                    PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_NO_TRUNCATE |
                        PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                    NULL);
    }
    BARRIER();
    if (rank == 0) {
        ptest_fill(words, sizeof(words), 8);
        ptl_handle_md_t md =
            port_md(&p, NULL, PTL_SIZE_MAX, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        OK(PtlPut(md, (uintptr_t)words, sizeof(words), PTL_ACK_REQ, p.id[1], p.pt, 0,
                  ptest_look(1, SLOT), NULL, 0));
        EVENT(p.mdeq, PTL_EVENT_ACK);
    }
    BARRIER();
    NO_EVENT(p.eq);
    CHECK_FILL(words, sizeof(words), 8);
    port_close(&p);
}
