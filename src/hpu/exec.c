/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The native back end; see exec.h.
 *
 * An exec whose ctx is NULL waits for a context. After a context has parked itself
 * nothing here touches the exec: it may be running on another thread, or gone.
 */
#include "hpu/exec.h"

#include <errno.h>

#include "base/branch.h"
#include "base/list.h"
#include "hpu/device.h"
#include "hpu/dma.h"
#include "hpu/refuse.h"
#include "hpu/timed_calls.h"

/* Internal result: the handler has returned, but a transfer that it left behind has failed on bad
 * memory. */
#define END_SEGV (-2)

/* Runs a native handler, which a fault may end; before and after that the context is not
 * expendable. */
static int run_native(struct hpu_exec *exec)
{
    void *state = exec->env.state;
    int result = FAIL;
    hpu_ctx_set_expendable(exec->ctx, 1);
    switch (exec->call) {
    case HPU_CALL_HEADER:
        result = exec->handler.header(exec->arg.header, state);
        break;
    case HPU_CALL_PAYLOAD:
        result = exec->handler.payload(exec->arg.payload, state);
        break;
    case HPU_CALL_COMPLETION:
        result = exec->handler.completion(exec->arg.completion.dropped,
                                          exec->arg.completion.flow_control, state);
        break;
    }
    hpu_ctx_set_expendable(exec->ctx, 0);
    return result;
}

/* Sets the call up for the packet that follows the current one; false: there is none, or the time
 * is over. */
static bool next_packet(struct hpu_exec *exec)
{
    ptl_payload_t *p = &exec->arg.payload;
    if (exec->behind == 0 || hpu_ctx_overdue(exec->ctx)) {
        return false;
    }
    p->base += p->length;
    p->offset += p->length;
    p->length = exec->behind < exec->packet ? exec->behind : exec->packet;
    exec->behind -= p->length;
    exec->calls++;
    exec->dma_issued = 0;
    hpu_ctx_new_turn(exec->ctx);
    return true;
}

/* Runs on the context: the handler of a call, for each of its packets. Device code is not
 * expendable: its core ends it. */
void hpu_exec_handler(void *arg)
{
    struct hpu_exec *exec = arg;
    do {
        int result = exec->env.code != NULL ? hpu_device_run(exec, &exec->env.code[exec->call])
                                            : run_native(exec);
        if (unlikely(exec->dmas != NULL) && exec->env.timed != NULL) {
            timed_settle(exec);
        }
        int rc = hpu_dma_end(&exec->dmas, true);
        exec->host_fault |= rc == -EIO;
        exec->result = rc < 0 ? END_SEGV : result;
    } while (exec->result == SUCCESS && next_packet(exec));
}

/* Returns FAIL, and logs a return code that no handler of this kind may return; a handler that
 * returns FAIL means it. For device code with an observer, the observer tells it instead. */
static __attribute__((cold, noinline)) int no_result(const struct hpu_exec *exec, int result)
{
    const struct hpu_device_code *code =
        exec->env.code != NULL ? &exec->env.code[exec->call] : NULL;
    if (result != FAIL && (code == NULL || code->device->observer == NULL)) {
        hpu_refuse_code(exec, result);
    }
    return FAIL;
}

/* The return codes that each kind of handler may use, as bits. */
static int valid_result(const struct hpu_exec *exec, int result)
{
    static const unsigned valid[] = {
        [HPU_CALL_HEADER] = 1u << DROP | 1u << DROP_PENDING | 1u << PROCESS_DATA |
                            1u << PROCESS_DATA_PENDING | 1u << PROCEED | 1u << PROCEED_PENDING,
        [HPU_CALL_PAYLOAD] = 1u << SUCCESS | 1u << DROP,
        [HPU_CALL_COMPLETION] = 1u << SUCCESS | 1u << SUCCESS_PENDING,
    };
    return result >= 0 && result < 32 && (valid[exec->call] >> result & 1)
               ? result
               : no_result(exec, result);
}

static void set_up(struct hpu_pool *pool, struct hpu_exec *exec, enum hpu_call call)
{
    exec->pool = pool;
    exec->call = call;
    atomic_store_explicit(&exec->ending, false, memory_order_relaxed);
    exec->host_fault = false;
    exec->behind = 0;
    exec->calls = 1;
    exec->cycles = 0;
    exec->core_cycles = 0;
    exec->dma_issued = 0;
    exec->dmas = NULL;
    exec->core = NULL;
}

void hpu_exec_header(struct hpu_pool *pool, struct hpu_exec *exec, ptl_header_handler_t handler,
                     const ptl_header_t *arg)
{
    exec->handler.header = handler;
    if (arg != &exec->arg.header) {
        exec->arg.header = *arg;
    }
    set_up(pool, exec, HPU_CALL_HEADER);
}

void hpu_exec_payload(struct hpu_pool *pool, struct hpu_exec *exec, ptl_payload_handler_t handler,
                      const ptl_payload_t *arg)
{
    exec->handler.payload = handler;
    exec->arg.payload = *arg;
    set_up(pool, exec, HPU_CALL_PAYLOAD);
}

void hpu_exec_completion(struct hpu_pool *pool, struct hpu_exec *exec,
                         ptl_completion_handler_t handler, ptl_size_t dropped, bool flow_control)
{
    exec->handler.completion = handler;
    exec->arg.completion.dropped = dropped;
    exec->arg.completion.flow_control = flow_control;
    set_up(pool, exec, HPU_CALL_COMPLETION);
}

bool hpu_exec_take(struct hpu_exec *exec)
{
    if (exec->ctx != NULL) {
        return true;
    }
    exec->ctx = hpu_ctx_get_of(exec->pool, exec->slots != 0 ? exec->slots : ~UINT64_C(0));
    exec->wait = exec->ctx != NULL ? HPU_WAIT_NONE : HPU_WAIT_CONTEXT;
    exec->hpu = exec->ctx != NULL ? hpu_ctx_slot(exec->ctx) : 0;
    return exec->ctx != NULL;
}

/* The call begins, or goes on; and it has stopped, or ended. In virtual time nobody asks for the
 * processor's cycles, and to read them is slow. */
static inline void cycles_begin(struct hpu_exec *exec)
{
    if (likely(exec->env.timed == NULL)) {
        exec->since = __builtin_ia32_rdtsc();
    }
}

static inline void cycles_end(struct hpu_exec *exec)
{
    if (likely(exec->env.timed == NULL)) {
        exec->cycles += __builtin_ia32_rdtsc() - exec->since;
    }
}

int hpu_exec_run(struct hpu_exec *exec)
{
    struct hpu_ctx *ctx = exec->ctx;
    bool begun = exec->wait != HPU_WAIT_NONE;
    int result = SEGV;
    cycles_begin(exec);
    enum hpu_ctx_exit exit =
        begun ? hpu_ctx_resume(ctx) : hpu_ctx_start(ctx, hpu_exec_handler, exec);
    if (exit == HPU_CTX_PARKED) {
        return HPU_WAIT;
    }
    cycles_end(exec);
    if (likely(exit == HPU_CTX_DONE)) {
        return likely(exec->result != END_SEGV) ? valid_result(exec, exec->result) : SEGV;
    }
    switch (exit) {
    case HPU_CTX_ABANDONED:
        result = exec->result;
        break;
    case HPU_CTX_OVERDUE:
        hpu_refuse_late(exec, NULL, NULL);
        result = TIMEOUT;
        break;
    default:
        hpu_refuse_fault(exec);
        break;
    }
    hpu_dma_end(&exec->dmas, false);
    return result;
}

void hpu_exec_give(struct hpu_exec *exec)
{
    if (exec->ctx != NULL) {
        hpu_ctx_put(exec->ctx);
        exec->ctx = NULL;
    }
    exec->wait = HPU_WAIT_NONE;
}

void hpu_exec_end(struct hpu_exec *exec)
{
    atomic_store_explicit(&exec->ending, true, memory_order_relaxed);
    hpu_ctx_end(exec->ctx);
}

void hpu_exec_cancel(struct hpu_exec *exec)
{
    if (exec->ctx != NULL) {
        hpu_ctx_cancel(exec->ctx);
        hpu_dma_end(&exec->dmas, false);
        if (exec->env.awaited != NULL) {
            exec->env.ops->forget(&exec->env);
        }
    }
    hpu_exec_give(exec);
}

void hpu_exec_park(struct hpu_exec *exec, enum hpu_wait wait)
{
    exec->wait = wait;
    cycles_end(exec);
    hpu_ctx_suspend(exec->ctx);
    hpu_device_resumed(exec);
}

void hpu_suspend(struct hpu_env *env)
{
    hpu_exec_park(container_of(env, struct hpu_exec, env), HPU_WAIT_OPS);
}
