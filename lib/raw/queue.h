/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue of requests of a context: host memory, which its handlers reach by DMA as
 * PTL_HANDLER_HOST_MEM, and an eventfd.
 *
 * Invariant: whenever handlers have put a request into the queue, the eventfd is written to before
 * the thread that runs handlers waits for frames or runs the handler that waits for an answer
 * again.
 */
#ifndef LIB_RAW_QUEUE_H
#define LIB_RAW_QUEUE_H

#include "raw/context.h"

#include "spin_queue.h"

struct queue {
    struct spin_queue queue;
    void *memory; /* NULL: there is none */
    size_t length;
    uint64_t told; /* requests that the eventfd was told of */
    int fd;
};

/* queue_open() makes a queue: -EINVAL for a wrong size, -ENOMEM, or the errno of eventfd(). */
int queue_open(struct queue *q, unsigned slots, unsigned room);
/* queue_bind() shows the queue to a context's handlers; it has the end at the beginning of the HPU
 * memory. */
void queue_bind(struct queue *q, struct raw_context *context);
/* queue_tell() writes to the eventfd if there are requests that it was not told of. */
void queue_tell(struct queue *q);
void queue_close(struct queue *q);

#endif
