/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For cases of what handlers ask: an entry whose handler adds one to a word of another process, by
 * a fetch-atomic, and notes how the call has ended. Each program includes it once.
 */
#ifndef ASKING_H
#define ASKING_H

#include "handler.h"

#define PATIENCE_MS "100"
enum { BITS = 7, SHOW_NID = 1, SHOW_PID, SHOW_PT, SHOW_PROCESS, SHOW_WORD };

static uint64_t word;

/* handler_host_mem of both handlers. */
static struct notes {
    uint64_t done, withdrawn, unknown, other; /* ends of calls */
    uint64_t before;                          /* what the last one found */
    uint64_t held, go;
} notes;

struct asking {
    ptl_process_t target;
    uint64_t pt;
};

/* Notes how a call has ended. */
static inline void note_end(int code)
{
    uint64_t field = code == PTL_OK        ? offsetof(struct notes, done)
                     : code == PTL_ABORTED ? offsetof(struct notes, withdrawn)
                     : code == PTL_FAIL    ? offsetof(struct notes, unknown)
                                           : offsetof(struct notes, other);
    PtlHandlerDMAFetchAddB(field, 1, NULL, PTL_UINT64_T, PTL_HANDLER_HOST_MEM);
}

__handler static int add_one(const ptl_header_t h, void *state)
{
    const struct asking *s = state;
    uint64_t one = 1, before = 0;
    int code =
        PtlHandlerFetchAtomicFromDeviceEx(&before, &one, sizeof(one), s->target,
                                          (ptl_pt_index_t)s->pt, BITS, 0, 0, PTL_SUM, PTL_UINT64_T);
    PtlHandlerDMAToHostB(&before, offsetof(struct notes, before), sizeof(before),
                         PTL_HANDLER_HOST_MEM);
    note_end(code);
    return DROP;
}
PTL_HANDLER(add_one);

#define NOTED(field) __atomic_load_n(&notes.field, __ATOMIC_ACQUIRE)

static inline void open_impatient(struct port *p, unsigned kind, int rank, int size)
{
    setenv("PINWHEEL_HPU_PATIENCE_MS", PATIENCE_MS, 1);
    setenv("PINWHEEL_LINGER_MS", "50", 1);
    port_open(p, kind, rank, size);
}

/* An interface of a process that no other one waits for. */
static inline void open_alone(struct port *p, ptl_pid_t pid)
{
    *p = (struct port){.kind = KIND_MP};
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, pid, NULL, NULL, &p->ni));
    OK(PtlEQAlloc(p->ni, 16, &p->eq));
    OK(PtlPTAlloc(p->ni, 0, p->eq, PTL_PT_ANY, &p->pt));
    OK(PtlGetPhysId(p->ni, &p->id[0]));
    OK(PtlGetUid(p->ni, &p->uid));
}

/* An entry of rank 1 whose handler asks. */
static inline ptl_handle_me_t open_entry(struct port *p, ptl_header_handler_t handler,
                                         const void *state, size_t length)
{
    ptl_handlers_t h = handler_set(handler, NULL, NULL, state, length, &notes, sizeof(notes));
    ptl_me_t me = port_entry(p, NULL, 0, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    me.match_bits = HANDLER_BITS;
    me.ignore_bits = 0;
    return handler_append(p, &me, &h);
}

static inline ptl_handle_me_t open_asking(struct port *p, ptl_process_t target, ptl_pt_index_t pt)
{
    struct asking s = {target, pt};
    return open_entry(p, add_one, &s, sizeof(s));
}

/* The word of rank 0 that is added to. */
static inline ptl_handle_me_t open_word(struct port *p)
{
    ptl_me_t me = port_entry(p, &word, sizeof(word),
                             PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                 PTL_ME_EVENT_COMM_DISABLE);
    me.match_bits = BITS;
    me.ignore_bits = 0;
    return port_append(p, &me, NULL);
}

/* Has the handler of rank 1 ask, and waits until the call has ended. */
static inline void ask(struct port *p, ptl_handle_me_t asking)
{
    OK(PtlHandlersInvoke(asking, NULL, 0));
    EVENT(p->eq, PTL_EVENT_PUT);
}

static inline void check_ends(uint64_t done, uint64_t withdrawn, uint64_t unknown)
{
    CHECK_EQ(NOTED(other), 0);
    CHECK_EQ(NOTED(done), done);
    CHECK_EQ(NOTED(withdrawn), withdrawn);
    CHECK_EQ(NOTED(unknown), unknown);
}

enum { MANY = 100 }; /* asks until one ends as it is to: on a busy machine not each one does */

#endif
