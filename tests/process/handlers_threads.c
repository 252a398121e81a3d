/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers and threads: whoever makes progress runs handlers, so several threads of a
 * process do, together with the NIC's own; and with a target that computes, the NIC's
 * alone.
 */
#include "handler.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, MESSAGES = 100, LENGTH = 20000 };

static unsigned char source[LENGTH], memory[LENGTH];

/* HPU memory. `inside` has a bit for each HPU that runs a handler. */
struct state {
    uint64_t inside, packets, bytes, completions;
    uint64_t clashes; /* in handler_host_mem, as `completions` also is */
};

__handler static int busy_payload(const ptl_payload_t p, void *state)
{
    struct state *s = state;
    uint64_t bit = UINT64_C(1) << PTL_MY_HPU, before;
    PtlHandlerFAdd(&s->inside, &before, bit);
    if (before & bit) {
        PtlHandlerDMAFetchAddB(offsetof(struct state, clashes), 1, NULL, PTL_UINT64_T,
                               PTL_HANDLER_HOST_MEM);
    }
    uint64_t sum = 0;
    for (ptl_size_t i = 0; i < p.length; i++) {
        sum += p.base[i];
    }
    for (uint64_t i = 0; i < sum % 4; i++) {
        PtlHandlerYield(); /* and perhaps go on in another thread */
    }
    PtlHandlerFAdd(&s->inside, NULL, (uint64_t)0 - bit);
    PtlHandlerFAdd(&s->packets, NULL, 1);
    PtlHandlerFAdd(&s->bytes, NULL, p.length);
    return SUCCESS;
}

__handler static int busy_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    struct state *s = state;
    PtlHandlerFAdd(&s->completions, NULL, 1);
    PtlHandlerYield();
    PtlHandlerDMAFetchAddB(offsetof(struct state, completions), 1, NULL, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(busy_payload);
PTL_HANDLER(busy_completion);

/* What the threads of rank 0 share. */
struct crew {
    struct port *p;
    atomic_int left; /* events that are still to come */
    ptl_handle_ct_t ct;
    uint64_t until;
    int way;
};

/* Each thread waits in a way of its own; an event goes to one of them. */
static void *wait_for_events(void *arg)
{
    struct crew *crew = arg;
    int way = __atomic_fetch_add(&crew->way, 1, __ATOMIC_RELAXED) % THREADS;
    ptl_event_t event;
    ptl_ct_event_t value;
    unsigned which;
    while (atomic_load(&crew->left) > 0) {
        int code = PTL_EQ_EMPTY;
        switch (way) {
        case 0:
            code = PtlEQGet(crew->p->eq, &event);
            break;
        case 1:
            OK(PtlCTGet(crew->ct, &value));
            break;
        case 2:
            (void)PtlCTPoll(&crew->ct, &(ptl_size_t){crew->until}, 1, 5, &value, &which);
            break;
        default:
            code = PtlEQPoll(&crew->p->eq, 1, 5, &event, &which);
        }
        if (code == PTL_OK) {
            CHECK_EQ(event.type, PTL_EVENT_PUT);
            CHECK_EQ(event.ni_fail_type, PTL_NI_OK);
            CHECK_EQ(event.mlength, LENGTH);
            atomic_fetch_sub(&crew->left, 1);
        } else {
            CHECK_CODE(code, PTL_EQ_EMPTY);
        }
    }
    return NULL;
}

static void run(pthread_t *threads, int n, void *(*body)(void *), void *arg)
{
    for (int i = 0; i < n; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, body, arg), 0);
    }
}

static void join(pthread_t *threads, int n)
{
    for (int i = 0; i < n; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

/* The other ranks send, with threads of their own. */
static void *send_messages(void *arg)
{
    struct crew *crew = arg;
    struct port *p = crew->p;
    ptl_handle_md_t md = port_quiet_md(p, source, LENGTH, 0, PTL_CT_NONE);
    for (int i = 0; i < MESSAGES; i++) {
        OK(PtlPut(md, 0, LENGTH, PTL_NO_ACK_REQ, p->id[0], p->pt, 0, 0, NULL, 0));
    }
    port_release(md);
    return NULL;
}

static void many_threads(int rank, int size, unsigned kind, int senders)
{
    static struct state seen;
    struct port p;
    pthread_t threads[2 * THREADS];
    port_open(&p, kind, rank, size);
    int messages = MESSAGES * senders * (size == 1 ? 1 : size - 1);
    struct crew crew = {.p = &p, .left = messages, .ct = port_ct(&p), .until = (uint64_t)messages};
    ptest_fill(source, LENGTH, 1);
    if (rank == 0) {
        ptl_handlers_t h = handler_set(NULL, busy_payload, busy_completion, NULL,
                                       sizeof(struct state), &seen, sizeof(seen));
        handler_target(&p, memory, LENGTH, 0, crew.ct, &h);
    }
    BARRIER();
    int n = 0;
    if (rank == 0) {
        run(threads, THREADS, wait_for_events, &crew);
        n = THREADS;
    }
    if (rank != 0 || size == 1) {
        run(threads + n, senders, send_messages, &crew);
        n += senders;
    }
    join(threads, n);
    if (rank == 0) {
        handler_check_ct(crew.ct, (uint64_t)messages, 0);
        CHECK_EQ(seen.completions, messages);
        CHECK_EQ(seen.clashes, 0);
    }
    port_close(&p);
}

PTEST_KINDS(several_poll, 3)
{
    many_threads(rank, size, kind, 2);
}

PTEST_KINDS(several_poll_and_send, 1)
{
    many_threads(rank, size, kind, THREADS);
}

/* ---- Entries that come and go ---- */

__handler static int plain_header(const ptl_header_t h, void *state)
{
    PtlHandlerFAdd(state, NULL, 1);
    PtlHandlerYield();
    return PROCESS_DATA;
}
PTL_HANDLER(plain_header);

/* Each thread has an index, an entry and HPU memory of its own, again and again. */
static void *come_and_go(void *arg)
{
    struct port *p = arg;
    for (int i = 0; i < MESSAGES; i++) {
        ptl_handle_eq_t eq;
        ptl_pt_index_t pt;
        ptl_handle_me_t entry;
        ptl_handle_hpu_mem_t mem;
        unsigned char into[1000];
        OK(PtlEQAlloc(p->ni, 4, &eq));
        OK(PtlPTAlloc(p->ni, 0, eq, PTL_PT_ANY, &pt));
        OK(PtlHPUAllocMem(p->ni, 64, &mem));
        ptl_handlers_t h = handler_set(plain_header, NULL, NULL, NULL, 8, NULL, 0);
        h.hpu_mem = i % 2 ? mem : PTL_HPU_MEM_NONE;
        ptl_me_t me = port_entry(p, into, sizeof(into), PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        OK(handler_append_code(p, pt, &me, &h, NULL, &entry));
        ptl_handle_md_t md = port_quiet_md(p, source, sizeof(into), 0, PTL_CT_NONE);
        OK(PtlPut(md, 0, sizeof(into), PTL_NO_ACK_REQ, p->id[p->rank], pt, 0, 0, NULL, 0));
        EVENT(eq, PTL_EVENT_PUT);
        CHECK(memcmp(into, source, sizeof(into)) == 0);
        port_unlink(p, entry);
        OK(PtlHPUFreeMem(mem));
        OK(PtlPTFree(p->ni, pt));
        OK(PtlEQFree(eq));
        port_release(md);
    }
    return NULL;
}

PTEST_KINDS(coming_and_going, 1)
{
    struct port p;
    pthread_t threads[THREADS];
    port_open(&p, kind, rank, size);
    ptest_fill(source, LENGTH, 2);
    run(threads, THREADS, come_and_go, &p);
    join(threads, THREADS);
    port_close(&p);
}

/* ---- A target that computes ---- */

/* Sends the packet back, changed. */
__handler static int answer_payload(const ptl_payload_t p, void *state)
{
    const ptl_process_t *to = state;
    for (ptl_size_t i = 0; i < p.length; i++) {
        p.base[i] ^= 0xff;
    }
    PtlHandlerYield();
    return PtlHandlerPutFromDevice(p.base, p.length, PTL_NO_ACK_REQ, *to, 0, p.offset, NULL, 0) ==
                   PTL_OK
               ? SUCCESS
               : FAIL;
}
PTL_HANDLER(answer_payload);

PTEST_KINDS(computing_target, 2)
{
    enum { N = 5, DONE = 0 };
    struct port p;
    port_open(&p, kind, rank, size);
    ptl_handle_ct_t ct = port_ct(&p);
    ptest_fill(source, LENGTH, 3);
    if (rank == 1) {
        ptl_handlers_t h =
            handler_set(NULL, answer_payload, NULL, &p.id[0], sizeof(p.id[0]), NULL, 0);
        handler_target(&p, NULL, 0, PTL_ME_EVENT_SUCCESS_DISABLE, PTL_CT_NONE, &h);
    } else {
        ptl_me_t me =
            port_entry(&p, memory, LENGTH,
                       PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE |
                           PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES);
        me.ct_handle = ct;
        port_append(&p, &me, NULL);
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_quiet_md(&p, source, LENGTH, 0, PTL_CT_NONE);
        uint64_t sent = 0;
        for (int i = 0; i < N; i++) {
            size_t length = i % 2 ? LENGTH : 64;
            memset(memory, 0, sizeof(memory));
            OK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, p.id[1], p.pt, 0, 0, NULL, 0));
            port_wait_ct(ct, sent += length);
            for (size_t k = 0; k < length; k++) {
                CHECK_EQ(memory[k], source[k] ^ 0xff);
            }
        }
        ptest_show(DONE, 1);
    } else {
        /* For as long as it takes: the machine may be busy, and nobody here helps. */
        volatile unsigned x = 1;
        uint64_t end = ptest_now_ms() + 20000u * (unsigned)ptest_slow();
        while (ptest_look(0, DONE) == 0 && ptest_now_ms() < end) {
            for (int i = 0; i < 100000; i++) {
                x = x * 1664525u + 1013904223u;
            }
        }
        CHECK_EQ(ptest_look(0, DONE), 1); /* before this process called anything */
    }
    port_close(&p);
}
