/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues that several threads wait for (C3 in inside.h). */
#include "inside.h"

int queue_open(struct queue *q, ptl_handle_ni_t ni, size_t events)
{
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    q->polled = false;
    q->taken = 0;
    q->eq = PTL_EQ_NONE;
    return PtlEQAlloc(ni, events, &q->eq);
}

void queue_close(struct queue *q)
{
    if (q->eq != PTL_EQ_NONE) {
        PtlEQFree(q->eq);
    }
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
}

int queue_event(struct queue *q, ptl_time_t wait, take_event *take, void *owner)
{
    if (q->polled) {
        uint64_t taken = q->taken;
        if (wait != 0) {
            pthread_cond_wait(&q->changed, &q->lock);
        }
        return wait == PTL_TIME_FOREVER || q->taken != taken ? 0 : -EAGAIN;
    }
    ptl_event_t event;
    unsigned which;
    q->polled = true;
    pthread_mutex_unlock(&q->lock);
    KILL_POINT("rma-polls");
    int rc = wait == 0                  ? PtlEQGet(q->eq, &event)
             : wait == PTL_TIME_FOREVER ? PtlEQWait(q->eq, &event)
                                        : PtlEQPoll(&q->eq, 1, wait, &event, &which);
    if (rc == PTL_OK) {
        take(owner, &event);
    }
    pthread_mutex_lock(&q->lock);
    q->polled = false;
    q->taken += rc == PTL_OK;
    pthread_cond_broadcast(&q->changed);
    return rc == PTL_OK ? 0 : rc == PTL_EQ_EMPTY ? -EAGAIN : -ECANCELED;
}
