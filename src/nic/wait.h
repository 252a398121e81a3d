/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the program that wait for something of a NIC (wait.c). */
#ifndef NIC_WAIT_H
#define NIC_WAIT_H

#include "nic/objects.h"

/* nic_wait() makes progress until ready(arg), called under the lock, is true, or
 * `timeout_ns` have passed (negative: for ever). Returns whether it was.
 * ni_wait_abort() waits for something of an NI, until PtlAbort() or the NI's end at the most,
 * and gives PTL_OK, PTL_ABORTED, PTL_ARG_INVALID, or `over` when the time is over. The NI
 * may be gone then: of what ready() saw, only what it has kept is good. */
bool nic_wait(struct nic *nic, bool (*ready)(void *arg), void *arg, int64_t timeout_ns);
/* The time that a thread which waits with a time-out gives to handlers_go_on() (handler_run.c). */
struct handler_time {
    int64_t end;      /* of the call with a time-out that this thread is in; 0: it is in none */
    bool begun, over; /* it has run a handler; the time is over, so that it runs no other one */
};
extern __thread struct handler_time handler_time __attribute__((tls_model("initial-exec")));
int ni_wait_abort(struct ni *ni, bool (*ready)(void *arg), void *arg, int64_t timeout_ns, int over);
/* ni_wait_mark() is the same without time limit for a thread that waits for one counter to
 * get somewhere: counts that do not get it there leave it asleep. */
int ni_wait_mark(struct ni *ni, bool (*ready)(void *arg), void *arg, struct ct_mark *mark);
/* ni_end_waits() tells all program threads that wait for something of an NI to leave it. */
void ni_end_waits(struct ni *ni);
/* nic_linger() is nic_wait() for closing: PINWHEEL_LINGER_MS at most, all calls since
 * linger_end was 0 together, for things that nobody announces. */
bool nic_linger(struct nic *nic, bool (*ready)(void *arg), void *arg);

#endif
