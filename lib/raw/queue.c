/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of requests of a context; see queue.h. */
#include "queue.h"

#include "base/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int queue_open(struct queue *q, unsigned slots, unsigned room)
{
    enum { LINE = 64 };
    *q = (struct queue){.fd = -1};
    if (slots == 0) {
        return room == 0 ? 0 : -EINVAL;
    }
    q->length = (spin_queue_size(slots, room) + LINE - 1) / LINE * LINE;
    q->memory = aligned_alloc(LINE, q->length);
    if (q->memory == NULL) {
        return -ENOMEM;
    }
    memset(q->memory, 0, q->length);
    if (spin_queue_open(&q->queue, q->memory, q->length, slots, room) != PTL_OK) {
        return -EINVAL;
    }
    q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return q->fd >= 0 ? 0 : -errno;
}

static void waits(void *owner)
{
    queue_tell(owner);
}

void queue_bind(struct queue *q, struct raw_context *context)
{
    struct spin_queue_end end = spin_queue_end_of(&q->queue, 0, PTL_HANDLER_HOST_MEM, PTL_CT_NONE);
    if (q->memory == NULL) {
        return;
    }
    raw_context_host(context, q->memory, q->length, waits, q);
    memcpy(context->state->base, &end, sizeof(end));
}

void queue_tell(struct queue *q)
{
    if (q->memory == NULL) {
        return;
    }
    const uint64_t *tail = (const uint64_t *)(q->queue.memory + SPIN_QUEUE_TAIL);
    uint64_t now = __atomic_load_n(tail, __ATOMIC_ACQUIRE), more = now - q->told;
    if (more > 0) {
        q->told = now;
        (void)!write(q->fd, &more, sizeof(more));
    }
}

void queue_close(struct queue *q)
{
    free(q->memory);
    if (q->fd >= 0) {
        close(q->fd);
    }
}
