/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers that run inside calls with a time-out: one that has begun ends, but none begins or goes
 * on once the time is over. No case asks how long anything took: each handler takes longer than
 * the time-out, so that a call may run one.
 */
#include "handler.h"

#include <pthread.h>
#include <unistd.h>

enum { SENDERS = 2, EACH = 6, CALLS = 10000, WAITING_MS = 1 };

/* Well beyond WAITING_MS on any processor. */
static const uint64_t long_cycles = 30000000;

static pthread_t program;
static unsigned call;                         /* of the program, the one that it is in */
static unsigned begun[CALLS], resumed[CALLS]; /* by the program in its calls */
static unsigned all;                          /* that have ended, by whomever */
static unsigned char memory[64], source[8];

#if defined(__clang__)
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

static APART void work(unsigned *turns)
{
    uint64_t start = PtlHandlerCycles();
    if (pthread_equal(pthread_self(), program)) {
        turns[call]++;
    }
    while (PtlHandlerCycles() - start < long_cycles) {
    }
}

/* What a compiler knows of a thread it must not remember across a yield, behind which another one
 * may go on: so work() stays a function of its own, that is not told what it will find. */
__handler static int slow_header(const ptl_header_t h, void *state)
{
    work(begun);
    if (h.hdr_data != 0) {
        PtlHandlerYield();
        work(resumed);
    }
    __atomic_fetch_add(&all, 1, __ATOMIC_RELEASE);
    return DROP;
}
PTL_HANDLER(slow_header);

enum how { BY_COUNTER, BY_QUEUE, ONCE };

static void receive(struct port *p, enum how how)
{
    ptl_handle_ct_t never = port_ct(p);
    ptl_handle_eq_t none;
    OK(PtlEQAlloc(p->ni, 8, &none));
    program = pthread_self();
    ptl_handlers_t h = handler_set(slow_header, NULL, NULL, NULL, 8, NULL, 0);
    ptl_handle_me_t entry =
        handler_target(p, memory, sizeof(memory), PTL_ME_EVENT_COMM_DISABLE, PTL_CT_NONE, &h);
    BARRIER();
    while (__atomic_load_n(&all, __ATOMIC_ACQUIRE) < SENDERS * EACH) {
        ptl_ct_event_t value;
        ptl_event_t event;
        ptl_size_t test = 1;
        unsigned which;
        CHECK(call < CALLS - 1);
        call++;
        if (how == BY_QUEUE) {
            CHECK_CODE(PtlEQPoll(&none, 1, WAITING_MS, &event, &which), PTL_EQ_EMPTY);
        } else {
            CHECK_CODE(PtlCTPoll(&never, &test, 1, WAITING_MS, &value, &which),
                       PTL_CT_NONE_REACHED);
        }
        CHECK(begun[call] + resumed[call] <= 1);
        for (int i = 0; how == ONCE && __atomic_load_n(&all, __ATOMIC_ACQUIRE) < SENDERS * EACH;
             i++) {
            usleep(1000);
            CHECK(i < 20000 * ptest_slow());
        }
    }
    BARRIER();
    port_unlink(p, entry);
    OK(PtlEQFree(none));
    OK(PtlCTFree(never));
}

static void send_and_wait(struct port *p, uint64_t hdr_data)
{
    BARRIER();
    ptl_handle_ct_t acked = port_ct(p);
    ptl_handle_md_t md = port_quiet_md(p, source, sizeof(source), PTL_MD_EVENT_CT_ACK, acked);
    for (int i = 0; i < EACH; i++) {
        OK(PtlPut(md, 0, sizeof(source), PTL_CT_ACK_REQ, p->id[SENDERS], p->pt, HANDLER_BITS, 0,
                  NULL, hdr_data));
    }
    port_wait_ct(acked, EACH);
    BARRIER();
    port_release(md);
    OK(PtlCTFree(acked));
}

static void run(int rank, int size, enum how how, uint64_t hdr_data)
{
    struct port p;
    port_open(&p, KIND_ML, rank, size);
    if (rank == SENDERS) {
        receive(&p, how);
    } else {
        send_and_wait(&p, hdr_data);
    }
    port_close(&p);
}

PTEST(counter, 3)
{
    run(rank, size, BY_COUNTER, 0);
}

PTEST(queue, 3)
{
    run(rank, size, BY_QUEUE, 0);
}

PTEST(suspended, 3)
{
    run(rank, size, BY_COUNTER, 1);
}

/* What the call has left over is not forgotten when the program makes no other one. */
PTEST(left_over, 3)
{
    run(rank, size, ONCE, 1);
}
