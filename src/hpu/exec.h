/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running handlers: the native back end, in which a handler is a function of
 * this process that runs on a context of its own.
 *
 *      NIC                                   handler's context
 *      hpu_exec_payload()                    the call is set up
 *      hpu_exec_take()               locked  it gets a context
 *      hpu_exec_run() ── start ────────────► payload_handler(p, state)   expendable
 *                                              PtlHandlerDMA...()        not expendable
 *                                              PtlHandlerPut...() ──► ops->send() ─ hpu_suspend()
 *      HPU_WAIT ◄──────────────────────────────────────────────────────────┘
 *      hpu_exec_run() ── resume ───────────►   ...
 *      SUCCESS, FAIL, ..., SEGV ◄─────────── return, or the end by a fault
 *      hpu_exec_give()               locked  the context is the pool's again
 *
 * A handler may be given up by a fault only in its own code: the flag is cleared
 * inside every call it makes to us, so that no state of the NIC is torn.
 *
 * A struct hpu_exec is one handler call. It belongs to the NIC, which sets `env`
 * and must keep the exec, the packet and the user header in place until the call
 * has ended. Several threads may run calls of one pool; one call is run by one
 * thread at a time. A pool has no lock of its own: what is marked `locked` is done
 * under the lock of its owner, who holds it at that moment anyway: the NIC, or the
 * scheduler of HPUs that are threads (sched.h).
 */
#ifndef HPU_EXEC_H
#define HPU_EXEC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "hpu/context.h"
#include "portals4.h"
#include "spin.h"
#include "spin_handler.h"

struct hpu_core;
struct hpu_dmas;
struct hpu_env;
struct hpu_dma_engine;
struct hpu_output;
struct hpu_queue;
struct hpu_device_code;
struct vector;

enum hpu_message_kind { HPU_PUT, HPU_GET, HPU_ATOMIC, HPU_FETCH /* and swap */ };

/* A message that a handler sends, and where the answer goes. Ranges of host memory have been
 * checked; `local`, `before` and `operand` have not, and are followed with nic_copy() only. */
struct hpu_message {
    enum hpu_message_kind kind;
    int from_host;          /* all of the message's memory is the entry's; else the handler's */
    const void *local;      /* the data that it sends, unless from_host; not of HPU_GET */
    uint64_t host_offset;   /* the same, if from_host */
    void *before;           /* HPU_GET, HPU_FETCH: where what comes back goes */
    uint64_t before_offset; /* the same, if from_host */
    size_t length;
    ptl_ack_req_t ack; /* without PTL_HANDLER_NOWAIT, which is: */
    bool nowait;
    ptl_process_t target;
    ptl_pt_index_t pt_index; /* unless pt_inherited, then the entry's */
    int pt_inherited;
    ptl_match_bits_t match_bits;
    ptl_size_t remote_offset;
    void *user_ptr;
    ptl_hdr_data_t hdr_data;
    ptl_op_t op; /* of HPU_ATOMIC and HPU_FETCH */
    ptl_datatype_t datatype;
    bool swap;           /* it is a swap */
    const void *operand; /* of a swap; NULL where it does not look at one */
};

enum hpu_count { HPU_COUNT_GET, HPU_COUNT_SET, HPU_COUNT_ADD };

/* The functions that the NIC hands down. The handler's context calls them, outside its code. */
struct hpu_ops {
    /* send() sends. It returns a PTL_ code, which the handler gets, or -EFAULT if the
     * handler's memory cannot be read or written, which ends it with SEGV. It may call
     * hpu_suspend(). */
    int (*send)(struct hpu_env *env, const struct hpu_message *m);
    /* forget() says that the answer that the handler waited for, env->awaited, is nobody's:
     * it was cancelled. Called by who cancels. */
    void (*forget)(struct hpu_env *env);
    /* count() reads or changes a counter of the host. Gives a PTL_ code. */
    int (*count)(struct hpu_env *env, enum hpu_count how, ptl_handle_ct_t ct,
                 ptl_ct_event_t *value);
    /* operand_size() is how long the operand of a swap is; 0: nobody looks at one. */
    size_t (*operand_size)(ptl_op_t op, ptl_datatype_t type);
    /* header() stores the header of the message, with the user header as the handler may see it.
     * Gives a PTL_ code. state() gives the message's own memory, NULL: it has none. */
    int (*header)(struct hpu_env *env, ptl_header_t *header);
    void *(*state)(struct hpu_env *env, size_t *length);
};

/* A counter to which handlers add and that the host reads. */
struct hpu_counter {
    _Atomic uint64_t sum, count;
};

struct hpu_env {
    void *me_base; /* host memory of the entry; may span the whole address space */
    size_t me_length;
    void *host_base; /* handler_host_mem */
    size_t host_length;
    const struct vector *me_vector, *host_vector; /* not NULL: it is in parts, not at `base` */
    void *state;                                  /* HPU memory */
    size_t state_length;
    size_t max_payload; /* of PutFromDevice */
    struct hpu_counter *counters;
    unsigned counter_count;
    const struct hpu_device_code
        *code; /* of the entry's handlers, by enum hpu_call (device.h); NULL: native */
    struct hpu_output *outputs; /* an HPU each (output.h); NULL: what is printed is lost */
    unsigned output_count;
    struct hpu_dma_engine
        *engine; /* that copies beside the handler (dma_engine.h); NULL: nobody does */
    const struct hpu_ops *ops;
    void *owner;   /* the NIC's */
    void *awaited; /* the NIC's, while the handler is suspended in ops->send() */
};

/* The handler has not ended: continue it later. */
#define HPU_WAIT (-1)

enum hpu_wait {
    HPU_WAIT_NONE,    /* it has ended */
    HPU_WAIT_CONTEXT, /* it has not begun: no context was free */
    HPU_WAIT_YIELD,   /* it called PtlHandlerYield() */
    HPU_WAIT_OPS      /* ops->send() called hpu_suspend() */
};

enum hpu_place { HPU_PLACE_NOWHERE, HPU_PLACE_QUEUED, HPU_PLACE_RUNNING, HPU_PLACE_SUSPENDED };

enum hpu_call { HPU_CALL_HEADER, HPU_CALL_PAYLOAD, HPU_CALL_COMPLETION };

/* Where a handler's transfers to the host go, calls.c. A guess from call to call, no more: it is
 * never set up. */
struct hpu_stride {
    uintptr_t last;        /* where the last one went */
    uintptr_t step, ahead; /* from the transfer before; to the one that is prefetched */
    size_t length;         /* of each */
};

struct hpu_exec {
    struct hpu_env env; /* set by the NIC before the call */
    struct hpu_ctx *ctx;
    enum hpu_wait wait; /* event that ends the wait of the call */

    uint64_t slots; /* of the pool that may be taken, 0: any; set before hpu_exec_take() */

    /* The scheduler's (sched.h), while the call is with it. */
    struct list link;
    struct hpu_queue *queue;
    enum hpu_place place;
    unsigned hpu;    /* that has begun it; without the scheduler its slot */
    int64_t charged; /* to its queue in advance, ns */

    /* The call; private. */
    struct hpu_pool *pool;
    enum hpu_call call;
    int result;
    bool host_fault;        /* with SEGV: host memory in its ranges is not there */
    _Atomic bool ending;    /* it is to end, whatever is left of its time */
    size_t behind, packet;  /* bytes that lie behind the current packet, for the same call; of each
                               packet there but the last */
    unsigned calls;         /* of handlers, which this call has begun */
    uint64_t cycles, since; /* in the handler, until it last began or went on; and that moment */
    uint64_t core_cycles;   /* that the core of its device code took, in calls that have ended */
    uint32_t dma_issued;    /* DMA handles 1 to dma_issued were given out */
    struct hpu_dmas *dmas;  /* transfers of this call that are not done, dma.h */
    struct hpu_stride stride;
    struct hpu_core *core; /* that runs the handler's device code; NULL: native code */
    union {
        ptl_header_handler_t header;
        ptl_payload_handler_t payload;
        ptl_completion_handler_t completion;
    } handler;
    struct {
        ptl_header_t header; /* stays: the calls that follow may be of the same message */
        union {
            ptl_payload_t payload;
            struct {
                ptl_size_t dropped;
                bool flow_control;
            } completion;
        };
    } arg;
};

/* hpu_exec_header(), _payload() and _completion() set up the call of a handler on a
 * context of `pool` with *arg (copied) and env.state. */
void hpu_exec_header(struct hpu_pool *pool, struct hpu_exec *exec, ptl_header_handler_t handler,
                     const ptl_header_t *arg);
void hpu_exec_payload(struct hpu_pool *pool, struct hpu_exec *exec, ptl_payload_handler_t handler,
                      const ptl_payload_t *arg);
void hpu_exec_completion(struct hpu_pool *pool, struct hpu_exec *exec,
                         ptl_completion_handler_t handler, ptl_size_t dropped, bool flow_control);

/* hpu_exec_behind() gives a payload handler's call more packets than one: `bytes` more, in packets
 * of `packet`, lie behind the first. The handler is called for one after the other, each with a
 * budget of its own, until one call does not end with SUCCESS; arg.payload is the packet that
 * the result is for. */
static inline void hpu_exec_behind(struct hpu_exec *exec, size_t bytes, size_t packet)
{
    exec->behind = bytes;
    exec->packet = packet;
}

/* hpu_exec_header_of() is where the header may be built that hpu_exec_header() is then
 * given, to save the copy. All of its fields are to be set. */
static inline ptl_header_t *hpu_exec_header_of(struct hpu_exec *exec)
{
    return &exec->arg.header;
}

/* hpu_exec_take(), locked, gets the call its context; a call that has one keeps it. False:
 * none is free (HPU_WAIT_CONTEXT), try again later. */
bool hpu_exec_take(struct hpu_exec *exec);

/* hpu_exec_run() starts the handler of a call that has a context, or continues it, without
 * the lock. It returns the handler's return code, FAIL for a code that its kind may not
 * return, SEGV if it left its memory, TIMEOUT if it ran for longer than its budget, or
 * HPU_WAIT if it has not ended. After HPU_WAIT
 * with HPU_WAIT_OPS the exec must not be touched if another thread may have continued it
 * meanwhile: any may, from the moment before hpu_suspend() is called. The calling thread
 * must not be on a context with a handler's code beneath it. */
int hpu_exec_run(struct hpu_exec *exec);

/* hpu_exec_give(), locked, gives back the context of a call that has ended. */
void hpu_exec_give(struct hpu_exec *exec);

/* hpu_exec_end() says that the time of a handler that runs on a context is over: native code ends
 * at once, or with the call that it is in, device code in its next call or a little later. Any
 * thread may call it while the context cannot be given back. hpu_exec_ending() says whether it was.
 */
void hpu_exec_end(struct hpu_exec *exec);
static inline bool hpu_exec_ending(const struct hpu_exec *exec)
{
    return atomic_load_explicit(&exec->ending, memory_order_relaxed);
}

/* hpu_exec_cancel(), locked, gives up a handler that has not ended, and frees its context.
 * What ops->send() had on the stack when it called hpu_suspend() is lost. */
void hpu_exec_cancel(struct hpu_exec *exec);

/* hpu_exec_park() suspends the handler that this code runs for. */
void hpu_exec_park(struct hpu_exec *exec, enum hpu_wait wait);

/* hpu_exec_current() is the call whose context this code runs on, or NULL; hpu_exec_handler() is
 * what contexts of calls run. */
void hpu_exec_handler(void *exec);
static inline struct hpu_exec *hpu_exec_current(void)
{
    return hpu_ctx_arg(hpu_exec_handler);
}

/* hpu_suspend() makes the hpu_exec_run() that runs this context return HPU_WAIT,
 * and returns when it is continued. For ops->send() only. */
void hpu_suspend(struct hpu_env *env);

#endif
