/* SPDX-License-Identifier: BSD-3-Clause */
/* Handler calls in virtual time; see timed_calls.h. */
#include "hpu/timed_calls.h"

#include "base/nic_copy.h"
#include "hpu/dma.h"
#include "hpu/sched.h"

static const struct hpu_sched_time *time_of(const struct hpu_exec *exec)
{
    return hpu_sched_time_of(exec->env.timed);
}

/* Notes when the transfer of a handle is done. Where there is no place for that the handler waits
 * now: a handle that is not noted counts as done. */
static bool note(struct hpu_exec *exec, ptl_dma_h handle, void *to, const void *from, size_t length,
                 bool to_host, uint64_t due)
{
    if (hpu_dma_begin(&exec->dmas, NULL, handle, to, from, length, to_host)) {
        *hpu_dma_due(exec->dmas, handle) = due;
        return true;
    }
    hpu_sched_until(exec, due);
    return false;
}

/* A write that is under way; its bytes follow. */
struct posted {
    void *to;
    size_t length;
    uint8_t bytes[];
};

/* The program may have taken the memory away since; then there is nobody to tell. */
static void land(void *posted)
{
    const struct posted *p = posted;
    (void)nic_copy(p->to, p->bytes, p->length);
}

void timed_write(struct hpu_exec *exec, const char *name, const struct call_place *to,
                 const void *local, size_t length, ptl_dma_h handle)
{
    const struct hpu_sched_time *t = time_of(exec);
    uint64_t taken = t->dma(t->arg, length, true);
    struct posted *p = NULL;
    if (to->vector == NULL && hpu_dma_local(to->base, length, true)) {
        p = t->at_new(t->arg, taken + t->dma_latency, land, sizeof(*p) + length);
    }
    if (p != NULL) {
        *p = (struct posted){.to = to->base};
        call_copy(exec, name, p->bytes, local, length);
        p->length = length;
    } else {
        call_write_host(exec, name, to, local, length); /* into parts, or where a fault is told */
    }
    if (handle == 0) {
        hpu_sched_until(exec, taken);
    } else {
        (void)note(exec, handle, NULL, NULL, 0, true, taken);
    }
}

bool timed_read(struct hpu_exec *exec, const struct call_place *from, void *local, size_t length,
                ptl_dma_h handle)
{
    const struct hpu_sched_time *t = time_of(exec);
    uint64_t there = t->dma(t->arg, length, false) + 2 * t->dma_latency;
    if (handle != 0 && from->vector == NULL) {
        return note(exec, handle, local, from->base, length, false, there);
    }
    hpu_sched_until(exec, there);
    return false;
}

void timed_atomic(struct hpu_exec *exec, size_t size, ptl_dma_h handle)
{
    const struct hpu_sched_time *t = time_of(exec);
    uint64_t there = t->dma(t->arg, size, false) + 2 * t->dma_latency;
    if (handle != 0) {
        (void)note(exec, handle, NULL, NULL, 0, false, there);
    } else {
        hpu_sched_until(exec, there);
    }
}

static uint64_t due_of(const struct hpu_exec *exec, ptl_dma_h handle)
{
    const uint64_t *due = hpu_dma_due(exec->dmas, handle);
    return due != NULL ? *due : 0;
}

bool timed_test(struct hpu_exec *exec, ptl_dma_h handle)
{
    const struct hpu_sched_time *t = time_of(exec);
    if (due_of(exec, handle) <= t->now(t->arg)) {
        return true;
    }
    timed_look(exec);
    return false;
}

void timed_wait(struct hpu_exec *exec, ptl_dma_h handle)
{
    hpu_sched_until(exec, due_of(exec, handle));
}

void timed_settle(struct hpu_exec *exec)
{
    for (unsigned i = 0; exec->dmas != NULL && i < HPU_DMA_PENDING; i++) {
        if (exec->dmas->dma[i].handle != 0) {
            hpu_sched_until(exec, exec->dmas->dma[i].due);
        }
    }
}

void timed_look(struct hpu_exec *exec)
{
    const struct hpu_sched_time *t = time_of(exec);
    if (exec->core == NULL) {
        hpu_sched_until(exec, t->now(t->arg) + t->look);
    }
}
