/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that handlers call (spin_handler.h) for memory, HPUs and telemetry. Other files
 * have those that send, count on the host, or print.
 *
 * Host memory is in this process, so a blocking transfer is a copy. So is a small non-blocking one,
 * or an atomic; a large non-blocking transfer goes on while the handler runs (dma.h).
 */
#include "hpu/calls.h"

#include "base/branch.h"
#include "base/nic_copy.h"
#include "base/sys.h"
#include "hpu/dma.h"
#include "hpu/timed_calls.h"

#include <errno.h>

static ptl_dma_h new_handle(struct hpu_exec *exec)
{
    return ++exec->dma_issued;
}

/* Whether a transfer may go on while the handler runs: it is large, and in one piece. */
static bool may_linger(const struct call_place *host, size_t length)
{
    return length >= HPU_DMA_LATER && host->vector == NULL;
}

/* ---- Host memory ---- */

void call_end_late(struct hpu_exec *exec, const char *name, const void *caller)
{
    /* the log and the loader take locks, so a fault must not end this code */
    hpu_ctx_set_expendable(exec->ctx, 0);
    hpu_refuse_late(exec, name, caller);
    exec->result = TIMEOUT;
    hpu_ctx_abandon(exec->ctx);
}

void call_end_transfer(struct hpu_exec *exec, const char *name, const void *caller,
                       const void *local, size_t length, bool write)
{
    exec->host_fault = hpu_dma_local(local, length, write);
    /* true if the memory that is at fault was to be written */
    bool written = exec->host_fault != write;
    call_refuse_from(exec, name, caller, SEGV, "%zu bytes %s: the %s memory is not there%s", length,
                     write ? "from the host" : "to the host",
                     exec->host_fault ? "host's" : "handler's",
                     written ? ", or may not be written" : "");
}

#define LINE 64
#define STRIDE_LEAST 128 /* for shorter transfers a prefetch gains nothing */
#define STRIDE_MOST 2048 /* in longer ones the processor's own prefetcher does it */
#define AHEAD_BYTES 4096 /* how far ahead, in bytes of transfers, the prefetched one is */

/* Prefetches for transfers in equal strides, as those of a vector datatype: the lines of a transfer
 * that is due some time later, since the processor's prefetcher does not follow gaps. A wrong guess
 * does no harm: a prefetch from an address that is not mapped does nothing. */
static void look_ahead(struct hpu_exec *exec, const void *to, size_t length)
{
    struct hpu_stride *s = &exec->stride;
    uintptr_t step = (uintptr_t)to - s->last; /* wraps if the strides go down */
    s->last = (uintptr_t)to;
    if (step != s->step || length != s->length) {
        s->step = step;
        s->length = length;
        s->ahead = step * (AHEAD_BYTES / length);
        return;
    }
    uintptr_t first = s->last + s->ahead;
    for (uintptr_t at = first; at - first < length; at += LINE) {
        prefetch_write((const void *)at);
    }
}

CALL_INLINE void to_host(struct hpu_exec *exec, const char *name, const void *local,
                         ptl_size_t offset, ptl_size_t length, unsigned options)
{
    struct call_place to = call_place(exec, name, offset, length, options);
    if (unlikely(exec->env.timed != NULL)) {
        timed_write(exec, name, &to, local, length, 0);
        return;
    }
    if (length >= STRIDE_LEAST && length <= STRIDE_MOST && to.vector == NULL) {
        look_ahead(exec, to.base, length);
    }
    call_write_host(exec, name, &to, local, length);
}

int PtlHandlerDMAToHostB(const void *local, ptl_size_t offset, ptl_size_t length,
                         unsigned int options)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    to_host(exec, __func__, local, offset, length, options);
    call_leave(exec, __func__);
    return PTL_OK;
}

ptl_dma_h PtlHandlerDMAToHostNB(const void *local, ptl_size_t offset, ptl_size_t length,
                                unsigned int options)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return 0;
    }
    struct call_place to = call_place(exec, __func__, offset, length, options);
    ptl_dma_h handle = new_handle(exec);
    if (unlikely(exec->env.timed != NULL)) {
        timed_write(exec, __func__, &to, local, length, handle);
    } else if (!may_linger(&to, length) || !hpu_dma_begin(&exec->dmas, exec->env.engine, handle,
                                                          to.base, local, length, true)) {
        call_write_host(exec, __func__, &to, local, length);
    }
    call_leave(exec, __func__);
    return handle;
}

CALL_INLINE void from_host(struct hpu_exec *exec, const char *name, ptl_size_t offset, void *local,
                           ptl_size_t length, unsigned options)
{
    struct call_place from = call_place(exec, name, offset, length, options);
    if (unlikely(exec->env.timed != NULL)) {
        (void)timed_read(exec, &from, local, length, 0);
    }
    call_read_host(exec, name, local, &from, length);
}

int PtlHandlerDMAFromHostB(ptl_size_t offset, void *local, ptl_size_t length, unsigned int options)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    from_host(exec, __func__, offset, local, length, options);
    call_leave(exec, __func__);
    return PTL_OK;
}

ptl_dma_h PtlHandlerDMAFromHostNB(ptl_size_t offset, void *local, ptl_size_t length,
                                  unsigned int options)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return 0;
    }
    struct call_place from = call_place(exec, __func__, offset, length, options);
    ptl_dma_h handle = new_handle(exec);
    bool lingers =
        likely(exec->env.timed == NULL)
            ? may_linger(&from, length) && hpu_dma_begin(&exec->dmas, exec->env.engine, handle,
                                                         local, from.base, length, false)
            : timed_read(exec, &from, local, length, handle);
    if (!lingers) {
        call_read_host(exec, __func__, local, &from, length);
    }
    call_leave(exec, __func__);
    return handle;
}

/* Ends a handler whose atomic on host memory failed. The address must be aligned, not the offset,
 * since host memory may begin anywhere. */
static _Noreturn __attribute__((cold)) void refuse_atomic(struct hpu_exec *exec, const char *name,
                                                          const void *caller, int rc, const void *p,
                                                          ptl_size_t offset, size_t size)
{
    if (rc == -EINVAL) {
        call_refuse_from(exec, name, caller, SEGV,
                         "offset %" PRIu64 ": misaligned by %zu, an atomic of %zu bytes", offset,
                         (uintptr_t)p % size, size);
    }
    exec->host_fault = true;
    call_refuse_from(exec, name, caller, SEGV,
                     "offset %" PRIu64 ": the host has no memory there to change", offset);
}

/* Both functions of an atomic, blocking and not, share one body: it gets the name of the function
 * and the return address in its caller. It returns 0 outside of handlers, the handle of the
 * transfer if `handled`, else 1. */
static __attribute__((noinline)) ptl_dma_h cas_from(const char *name, const void *caller,
                                                    bool handled, ptl_size_t offset,
                                                    uint64_t *cmpval, uint64_t swapval,
                                                    unsigned options)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return 0;
    }
    uint64_t *p = call_element_from(exec, name, caller, offset, sizeof(*p), options);
    uint64_t expected;
    bool swapped;
    call_copy_from(exec, name, caller, &expected, cmpval, sizeof(expected));
    ptl_dma_h handle = handled ? new_handle(exec) : 1;
    if (unlikely(exec->env.timed != NULL)) {
        timed_atomic(exec, sizeof(*p), handled ? handle : 0);
    }
    int rc = nic_cas64(p, &expected, swapval, &swapped);
    if (rc != 0) {
        refuse_atomic(exec, name, caller, rc, p, offset, sizeof(*p));
    }
    if (!swapped) {
        call_copy_from(exec, name, caller, cmpval, &expected, sizeof(expected));
    }
    call_leave_from(exec, name, caller);
    return handle;
}

int PtlHandlerDMACASB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval, unsigned int options)
{
    return cas_from(__func__, __builtin_return_address(0), false, offset, cmpval, swapval,
                    options) != 0
               ? PTL_OK
               : PTL_FAIL;
}

ptl_dma_h PtlHandlerDMACASNB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval,
                             unsigned int options)
{
    return cas_from(__func__, __builtin_return_address(0), true, offset, cmpval, swapval, options);
}

/* Returns the size of an integer type, or 0 for other types; *is_signed tells how to widen it. */
static size_t integer_size(ptl_datatype_t type, bool *is_signed)
{
    *is_signed =
        type == PTL_INT8_T || type == PTL_INT16_T || type == PTL_INT32_T || type == PTL_INT64_T;
    switch (type) {
    case PTL_INT8_T:
    case PTL_UINT8_T:
        return 1;
    case PTL_INT16_T:
    case PTL_UINT16_T:
        return 2;
    case PTL_INT32_T:
    case PTL_UINT32_T:
        return 4;
    case PTL_INT64_T:
    case PTL_UINT64_T:
        return 8;
    default:
        return 0;
    }
}

static __attribute__((noinline)) ptl_dma_h fetch_add_from(const char *name, const void *caller,
                                                          bool handled, ptl_size_t offset,
                                                          uint64_t inc, uint64_t *before,
                                                          ptl_datatype_t type, unsigned options)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return 0;
    }
    bool is_signed;
    size_t size = integer_size(type, &is_signed);
    if (size == 0) {
        call_refuse_from(exec, name, caller, FAIL, "datatype %u is no integer of 8 to 64 bits",
                         (unsigned)type);
    }
    uint64_t found = 0;
    void *p = call_element_from(exec, name, caller, offset, size, options);
    ptl_dma_h handle = handled ? new_handle(exec) : 1;
    if (unlikely(exec->env.timed != NULL)) {
        timed_atomic(exec, size, handled ? handle : 0);
    }
    int rc = nic_fetch_add(p, &inc, &found, size);
    if (rc != 0) {
        refuse_atomic(exec, name, caller, rc, p, offset, size);
    }
    uint64_t sign = UINT64_C(1) << (8 * size - 1);
    if (is_signed && (found & sign)) {
        found |= ~(sign - 1);
    }
    if (before != NULL) {
        call_copy_from(exec, name, caller, before, &found, sizeof(found));
    }
    call_leave_from(exec, name, caller);
    return handle;
}

int PtlHandlerDMAFetchAddB(ptl_size_t offset, uint64_t inc, uint64_t *before, ptl_datatype_t type,
                           unsigned int options)
{
    return fetch_add_from(__func__, __builtin_return_address(0), false, offset, inc, before, type,
                          options) != 0
               ? PTL_OK
               : PTL_FAIL;
}

ptl_dma_h PtlHandlerDMAFetchAddNB(ptl_size_t offset, uint64_t inc, uint64_t *before,
                                  ptl_datatype_t type, unsigned int options)
{
    return fetch_add_from(__func__, __builtin_return_address(0), true, offset, inc, before, type,
                          options);
}

/* Tests a transfer, or waits for it, by how(). Returns whether it is done. */
CALL_INLINE bool ask(struct hpu_exec *exec, const char *name, ptl_dma_h handle,
                     int (*how)(struct hpu_dmas *, ptl_dma_h))
{
    if (exec == NULL) {
        return false;
    }
    if (handle == 0 || handle > exec->dma_issued) {
        call_refuse(exec, name, FAIL, "handle %u was not given: this handler has had %u, from 1",
                    (unsigned)handle, (unsigned)exec->dma_issued);
    }
    if (unlikely(exec->env.timed != NULL)) {
        if (how == hpu_dma_test && !timed_test(exec, handle)) {
            call_leave(exec, name);
            return false;
        }
        timed_wait(exec, handle);
        how = hpu_dma_wait;
    }
    int done = how(exec->dmas, handle);
    if (done < 0) {
        exec->host_fault = done == -EIO;
        call_refuse(exec, name, SEGV, "the transfer of handle %u: host memory is not there",
                    (unsigned)handle);
    }
    call_leave(exec, name);
    return done > 0;
}

bool PtlHandlerDMATest(ptl_dma_h handle)
{
    return ask(call_enter(), __func__, handle, hpu_dma_test);
}

void PtlHandlerDMAWait(ptl_dma_h handle)
{
    (void)ask(call_enter(), __func__, handle, hpu_dma_wait);
}

/* ---- HPU memory ---- */

/* Ends a handler whose atomic on HPU memory failed. Of device code the log gets its own address,
 * the first argument of its call. */
static _Noreturn __attribute__((cold)) void
refuse_value(struct hpu_exec *exec, const char *name, const void *caller, int rc, const void *value)
{
    enum { A0 = 10, SIZE = sizeof(uint64_t) };
    uintptr_t at = exec->core != NULL ? exec->core->rv32.x[A0] : (uintptr_t)value;
    if (rc == -EINVAL) {
        call_refuse_from(exec, name, caller, SEGV,
                         "value 0x%" PRIxPTR ": misaligned by %u, an atomic of %d bytes", at,
                         (unsigned)(at % SIZE), SIZE);
    }
    call_refuse_from(exec, name, caller, SEGV,
                     "value 0x%" PRIxPTR ": there are no %d bytes to change", at, SIZE);
}

/* The atomics on HPU memory may also be called outside of handlers; then they refuse a bad address
 * by their result. */
bool PtlHandlerCAS(uint64_t *value, uint64_t cmpval, uint64_t swapval)
{
    struct hpu_exec *exec = call_enter();
    bool swapped = false;
    int rc = nic_cas64(value, &cmpval, swapval, &swapped);
    if (exec != NULL) {
        if (rc != 0) {
            refuse_value(exec, __func__, __builtin_return_address(0), rc, value);
        }
        if (unlikely(exec->env.timed != NULL) && !swapped) {
            timed_look(exec);
        }
        call_leave(exec, __func__);
    }
    return swapped;
}

int PtlHandlerFAdd(uint64_t *value, uint64_t *before, uint64_t inc)
{
    struct hpu_exec *exec = call_enter();
    uint64_t found;
    int rc = nic_fetch_add(value, &inc, &found, sizeof(found));
    if (exec != NULL && rc != 0) {
        refuse_value(exec, __func__, __builtin_return_address(0), rc, value);
    }
    if (rc == 0 && before != NULL) {
        rc = nic_copy(before, &found, sizeof(found));
    }
    if (exec != NULL) {
        if (rc != 0) {
            call_refuse(exec, __func__, SEGV, "before %p: there are no 8 bytes to change",
                        (void *)before);
        }
        call_leave(exec, __func__);
    }
    return rc == 0 ? PTL_OK : PTL_FAIL;
}

/* ---- HPUs ---- */

unsigned int PtlHandlerMyHPU(void)
{
    struct hpu_ctx *ctx = hpu_ctx_current();
    return ctx != NULL ? hpu_ctx_slot(ctx) : 0;
}

void PtlHandlerYield(void)
{
    struct hpu_exec *exec = call_enter();
    if (exec != NULL) {
        hpu_exec_park(exec, HPU_WAIT_YIELD);
        call_leave(exec, __func__);
    }
}

/* ---- Telemetry ---- */

uint64_t PtlHandlerCycles(void)
{
    return __builtin_ia32_rdtsc();
}

int PtlHandlerCounterAdd(unsigned int index, uint64_t value)
{
    struct hpu_exec *exec = call_enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    int rc = PTL_ARG_INVALID;
    if (index < exec->env.counter_count) {
        struct hpu_counter *c = &exec->env.counters[index];
        atomic_fetch_add_explicit(&c->sum, value, memory_order_relaxed);
        atomic_fetch_add_explicit(&c->count, 1, memory_order_relaxed);
        rc = PTL_OK;
    }
    call_leave(exec, __func__);
    return rc;
}
