/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the program that wait for something of a NIC (wait.c). */
#ifndef NIC_WAIT_H
#define NIC_WAIT_H

#include "nic/objects.h"

/* nic_wait() makes progress until ready(arg), which it calls under the lock, returns true, or
 * `timeout_ns` have passed (negative: for ever); it returns whether ready() did. ni_wait_abort()
 * does so for something of an NI, and also ends with PtlAbort() or the end of the NI: it returns
 * PTL_OK, PTL_ABORTED, PTL_ARG_INVALID, or `over` when the time is over. The NI may be gone then,
 * so the caller may use only what ready() has copied. */
bool nic_wait(struct nic *nic, bool (*ready)(void *arg), void *arg, int64_t timeout_ns);
/* What handlers_go_on() (handler_run.c) knows of the call with a time-out that this thread is
 * in. */
struct handler_time {
    int64_t end; /* when the call's time is over; 0: this thread is in no such call */
    /* it has run a handler in the call; its time is over, and it runs no further one */
    bool begun, over;
};
extern __thread struct handler_time handler_time __attribute__((tls_model("initial-exec")));
int ni_wait_abort(struct ni *ni, bool (*ready)(void *arg), void *arg, int64_t timeout_ns, int over);
/* ni_wait_mark() is ni_wait_abort() without a time limit, for a thread that waits until one counter
 * reaches a value: counts below that leave it asleep. */
int ni_wait_mark(struct ni *ni, bool (*ready)(void *arg), void *arg, struct ct_mark *mark);
/* ni_end_waits() tells all program threads that wait for something of an NI to leave it. */
void ni_end_waits(struct ni *ni);
/* nic_linger() is nic_wait() while an NI or NIC is closed. All its calls since linger_end was 0
 * take PINWHEEL_LINGER_MS together at the most. It looks every millisecond, as no thread announces
 * these conditions. */
bool nic_linger(struct nic *nic, bool (*ready)(void *arg), void *arg);

#endif
