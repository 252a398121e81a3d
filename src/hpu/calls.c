/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that handlers call: spin_handler.h.
 *
 * Each begins with enter() and ends with leave() or, when the handler left its memory,
 * with end_handler(), which does not return. In between, a fault
 * would be ours and is not contained: so every pointer that came from the handler is
 * followed by nic_copy() and its atomics only.
 *
 * Host memory is in this process, hence a blocking transfer is a copy. Of non-blocking ones
 * the small ones are, too, and atomics; large ones go on beside the handler (dma.h).
 */
#include <errno.h>

#include "base/nic_copy.h"
#include "hpu/dma.h"
#include "hpu/exec.h"
#include "hpu/twin.h"

static struct hpu_exec *enter(void)
{
    struct hpu_exec *exec = hpu_exec_current();
    if (exec != NULL) {
        hpu_ctx_set_expendable(exec->ctx, 0);
    }
    return exec;
}

static _Noreturn void end_handler(struct hpu_exec *exec, int result)
{
    exec->result = result;
    hpu_twin_ended(exec, result, NULL);
    hpu_ctx_abandon(exec->ctx);
}

/* A handler whose time ran out in here ends here. A twin's time is its core's. */
static void leave(struct hpu_exec *exec)
{
    if (exec->core != NULL) {
        return;
    }
    hpu_ctx_set_expendable(exec->ctx, 1);
    if (hpu_ctx_overdue(exec->ctx)) {
        end_handler(exec, TIMEOUT);
    }
}

/* The address of `length` bytes at `offset` of a host range. A range may be the
 * whole address space, so neither sum may wrap. */
static void *host_address(struct hpu_exec *exec, ptl_size_t offset, ptl_size_t length,
                          unsigned options)
{
    uintptr_t base = 0;
    size_t size = 0;
    if (options == PTL_ME_HOST_MEM) {
        base = (uintptr_t)exec->env.me_base;
        size = exec->env.me_length;
    } else if (options == PTL_HANDLER_HOST_MEM) {
        base = (uintptr_t)exec->env.host_base;
        size = exec->env.host_length;
    } else {
        end_handler(exec, SEGV);
    }
    uintptr_t start, end;
    if (offset > size || length > size - offset || __builtin_add_overflow(base, offset, &start) ||
        __builtin_add_overflow(start, length, &end)) {
        end_handler(exec, SEGV);
    }
    return (void *)start;
}

static void copy(struct hpu_exec *exec, void *dst, const void *src, size_t length)
{
    if (nic_copy(dst, src, length) != 0) {
        end_handler(exec, SEGV);
    }
}

static ptl_dma_h new_handle(struct hpu_exec *exec)
{
    return ++exec->dma_issued;
}

/* Copies now what is small, and else says that it is to be done. */
static ptl_dma_h begin_copy(struct hpu_exec *exec, void *to, const void *from, size_t length)
{
    ptl_dma_h handle = new_handle(exec);
    if (length < HPU_DMA_LATER ||
        !hpu_dma_begin(&exec->dmas, exec->sched, handle, to, from, length)) {
        copy(exec, to, from, length);
    }
    return handle;
}

/* ---- Host memory ---- */

static void to_host(struct hpu_exec *exec, const void *local, ptl_size_t offset, ptl_size_t length,
                    unsigned options)
{
    copy(exec, host_address(exec, offset, length, options), local, length);
}

int PtlHandlerDMAToHostB(const void *local, ptl_size_t offset, ptl_size_t length,
                         unsigned int options)
{
    struct hpu_exec *exec = enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    to_host(exec, local, offset, length, options);
    leave(exec);
    return PTL_OK;
}

ptl_dma_h PtlHandlerDMAToHostNB(const void *local, ptl_size_t offset, ptl_size_t length,
                                unsigned int options)
{
    struct hpu_exec *exec = enter();
    if (exec == NULL) {
        return 0;
    }
    void *to = host_address(exec, offset, length, options);
    ptl_dma_h handle = begin_copy(exec, to, local, length);
    leave(exec);
    return handle;
}

static void from_host(struct hpu_exec *exec, ptl_size_t offset, void *local, ptl_size_t length,
                      unsigned options)
{
    copy(exec, local, host_address(exec, offset, length, options), length);
}

int PtlHandlerDMAFromHostB(ptl_size_t offset, void *local, ptl_size_t length, unsigned int options)
{
    struct hpu_exec *exec = enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    from_host(exec, offset, local, length, options);
    leave(exec);
    return PTL_OK;
}

ptl_dma_h PtlHandlerDMAFromHostNB(ptl_size_t offset, void *local, ptl_size_t length,
                                  unsigned int options)
{
    struct hpu_exec *exec = enter();
    if (exec == NULL) {
        return 0;
    }
    const void *from = host_address(exec, offset, length, options);
    ptl_dma_h handle = begin_copy(exec, local, from, length);
    leave(exec);
    return handle;
}

static void host_cas(struct hpu_exec *exec, ptl_size_t offset, uint64_t *cmpval, uint64_t swapval,
                     unsigned options)
{
    uint64_t *p = host_address(exec, offset, sizeof(*p), options);
    uint64_t expected;
    bool swapped;
    copy(exec, &expected, cmpval, sizeof(expected));
    if (nic_cas64(p, &expected, swapval, &swapped) != 0) {
        end_handler(exec, SEGV);
    }
    if (!swapped) {
        copy(exec, cmpval, &expected, sizeof(expected));
    }
}

int PtlHandlerDMACASB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval, unsigned int options)
{
    struct hpu_exec *exec = enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    host_cas(exec, offset, cmpval, swapval, options);
    leave(exec);
    return PTL_OK;
}

ptl_dma_h PtlHandlerDMACASNB(ptl_size_t offset, uint64_t *cmpval, uint64_t swapval,
                             unsigned int options)
{
    struct hpu_exec *exec = enter();
    if (exec == NULL) {
        return 0;
    }
    host_cas(exec, offset, cmpval, swapval, options);
    ptl_dma_h handle = new_handle(exec);
    leave(exec);
    return handle;
}

/* Size of an integer type, or 0; *is_signed tells how to widen it. */
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

static void host_fetch_add(struct hpu_exec *exec, ptl_size_t offset, uint64_t inc, uint64_t *before,
                           ptl_datatype_t type, unsigned options)
{
    bool is_signed;
    size_t size = integer_size(type, &is_signed);
    if (size == 0) {
        end_handler(exec, FAIL);
    }
    uint64_t found = 0;
    void *p = host_address(exec, offset, size, options);
    if (nic_fetch_add(p, &inc, &found, size) != 0) {
        end_handler(exec, SEGV);
    }
    uint64_t sign = UINT64_C(1) << (8 * size - 1);
    if (is_signed && (found & sign)) {
        found |= ~(sign - 1);
    }
    if (before != NULL) {
        copy(exec, before, &found, sizeof(found));
    }
}

int PtlHandlerDMAFetchAddB(ptl_size_t offset, uint64_t inc, uint64_t *before, ptl_datatype_t type,
                           unsigned int options)
{
    struct hpu_exec *exec = enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    host_fetch_add(exec, offset, inc, before, type, options);
    leave(exec);
    return PTL_OK;
}

ptl_dma_h PtlHandlerDMAFetchAddNB(ptl_size_t offset, uint64_t inc, uint64_t *before,
                                  ptl_datatype_t type, unsigned int options)
{
    struct hpu_exec *exec = enter();
    if (exec == NULL) {
        return 0;
    }
    host_fetch_add(exec, offset, inc, before, type, options);
    ptl_dma_h handle = new_handle(exec);
    leave(exec);
    return handle;
}

/* Asks about a transfer, one way or the other. */
static bool ask(struct hpu_exec *exec, ptl_dma_h handle, int (*how)(struct hpu_dmas *, ptl_dma_h))
{
    if (exec == NULL) {
        return false;
    }
    if (handle == 0 || handle > exec->dma_issued) {
        end_handler(exec, FAIL);
    }
    int done = how(exec->dmas, handle);
    if (done < 0) {
        end_handler(exec, SEGV);
    }
    leave(exec);
    return done > 0;
}

bool PtlHandlerDMATest(ptl_dma_h handle)
{
    return ask(enter(), handle, hpu_dma_test);
}

void PtlHandlerDMAWait(ptl_dma_h handle)
{
    (void)ask(enter(), handle, hpu_dma_wait);
}

/* ---- HPU memory ---- */

/* Outside a handler these work as well; then a bad address is just refused. */
bool PtlHandlerCAS(uint64_t *value, uint64_t cmpval, uint64_t swapval)
{
    struct hpu_exec *exec = enter();
    bool swapped = false;
    int rc = nic_cas64(value, &cmpval, swapval, &swapped);
    if (exec != NULL) {
        if (rc != 0) {
            end_handler(exec, SEGV);
        }
        leave(exec);
    }
    return swapped;
}

int PtlHandlerFAdd(uint64_t *value, uint64_t *before, uint64_t inc)
{
    struct hpu_exec *exec = enter();
    uint64_t found;
    int rc = nic_fetch_add(value, &inc, &found, sizeof(found));
    if (rc == 0 && before != NULL) {
        rc = nic_copy(before, &found, sizeof(found));
    }
    if (exec != NULL) {
        if (rc != 0) {
            end_handler(exec, SEGV);
        }
        leave(exec);
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
    struct hpu_exec *exec = enter();
    if (exec != NULL) {
        exec->wait = HPU_WAIT_YIELD;
        hpu_ctx_suspend(exec->ctx);
        hpu_twin_resumed(exec);
        leave(exec);
    }
}

/* ---- Telemetry ---- */

uint64_t PtlHandlerCycles(void)
{
    return __builtin_ia32_rdtsc();
}

int PtlHandlerCounterAdd(unsigned int index, uint64_t value)
{
    struct hpu_exec *exec = enter();
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
    leave(exec);
    return rc;
}

/* ---- Messages ---- */

static int put(struct hpu_exec *exec, const struct hpu_put *p)
{
    if (p->from_host) {
        (void)host_address(exec, p->host_offset, p->length, PTL_ME_HOST_MEM);
    } else if (p->length > exec->env.max_payload) {
        return PTL_ARG_INVALID;
    }
    int rc = exec->env.ops->put(&exec->env, p);
    if (rc == -EFAULT) {
        end_handler(exec, SEGV);
    }
    return rc;
}

int PtlHandlerPutFromDevice(const void *local, ptl_size_t length, ptl_ack_req_t ack_req,
                            ptl_process_t target_id, ptl_match_bits_t match_bits,
                            ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data)
{
    struct hpu_exec *exec = enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    int rc = put(exec, &(struct hpu_put){.local = local,
                                         .length = length,
                                         .ack = ack_req,
                                         .target = target_id,
                                         .pt_inherited = 1,
                                         .match_bits = match_bits,
                                         .remote_offset = remote_offset,
                                         .user_ptr = user_ptr,
                                         .hdr_data = hdr_data});
    leave(exec);
    return rc;
}

int PtlHandlerPutFromDeviceEx(const void *local, ptl_size_t length, ptl_ack_req_t ack_req,
                              ptl_process_t target_id, ptl_pt_index_t pt_index,
                              ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                              ptl_hdr_data_t hdr_data)
{
    struct hpu_exec *exec = enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    int rc = put(exec, &(struct hpu_put){.local = local,
                                         .length = length,
                                         .ack = ack_req,
                                         .target = target_id,
                                         .pt_index = pt_index,
                                         .match_bits = match_bits,
                                         .remote_offset = remote_offset,
                                         .user_ptr = user_ptr,
                                         .hdr_data = hdr_data});
    leave(exec);
    return rc;
}

int PtlHandlerPutFromHost(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req,
                          ptl_process_t target_id, ptl_match_bits_t match_bits,
                          ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data)
{
    struct hpu_exec *exec = enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    int rc = put(exec, &(struct hpu_put){.from_host = 1,
                                         .host_offset = offset,
                                         .length = length,
                                         .ack = ack_req,
                                         .target = target_id,
                                         .pt_inherited = 1,
                                         .match_bits = match_bits,
                                         .remote_offset = remote_offset,
                                         .user_ptr = user_ptr,
                                         .hdr_data = hdr_data});
    leave(exec);
    return rc;
}

int PtlHandlerPutFromHostEx(ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack_req,
                            ptl_process_t target_id, ptl_pt_index_t pt_index,
                            ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                            ptl_hdr_data_t hdr_data)
{
    struct hpu_exec *exec = enter();
    if (exec == NULL) {
        return PTL_FAIL;
    }
    int rc = put(exec, &(struct hpu_put){.from_host = 1,
                                         .host_offset = offset,
                                         .length = length,
                                         .ack = ack_req,
                                         .target = target_id,
                                         .pt_index = pt_index,
                                         .match_bits = match_bits,
                                         .remote_offset = remote_offset,
                                         .user_ptr = user_ptr,
                                         .hdr_data = hdr_data});
    leave(exec);
    return rc;
}
