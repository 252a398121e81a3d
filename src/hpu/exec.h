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
 * A fault gives up a handler only in the handler's own code: in each call to the NIC the context
 * is not expendable, so that no state of the NIC is left half changed.
 *
 * A struct hpu_exec is one handler call. It belongs to the NIC, which sets `env`
 * and must keep the exec, the packet and the user header in place until the call
 * has ended. Several threads may run calls of one pool; one call is run by one
 * thread at a time. A pool has no lock of its own: what is marked `locked` is done
 * under the lock of the pool's owner, the NIC or the scheduler of HPUs that are threads (sched.h).
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
struct hpu_sched;
struct hpu_device_code;
struct vector;

/* HPU_FETCH: fetch-atomic or swap */
enum hpu_message_kind { HPU_PUT, HPU_GET, HPU_ATOMIC, HPU_FETCH };

/* A message that a handler sends, and where its answer goes. Ranges of host memory were checked;
 * `local`, `before` and `operand` were not, and are dereferenced by nic_copy() only. */
struct hpu_message {
    enum hpu_message_kind kind;
    int from_host;          /* all memory of the message is the entry's; 0: the handler's */
    const void *local;      /* the data to send, unless from_host; not for HPU_GET */
    uint64_t host_offset;   /* the data to send, if from_host */
    void *before;           /* HPU_GET, HPU_FETCH: where the fetched data go, unless from_host */
    uint64_t before_offset; /* where they go, if from_host */
    size_t length;
    ptl_ack_req_t ack; /* without PTL_HANDLER_NOWAIT, which is in: */
    bool nowait;
    ptl_process_t target;
    ptl_pt_index_t pt_index; /* of the target; with pt_inherited that of the handler's entry */
    int pt_inherited;
    ptl_match_bits_t match_bits;
    ptl_size_t remote_offset;
    void *user_ptr;
    ptl_hdr_data_t hdr_data;
    ptl_op_t op; /* of HPU_ATOMIC and HPU_FETCH */
    ptl_datatype_t datatype;
    bool swap;           /* HPU_FETCH is a swap */
    const void *operand; /* of a swap; NULL if the operation takes none */
};

/* What a handler asks for that runs on a frame of an interface. */
enum hpu_frame_call {
    HPU_FRAME_REPLY, /* its frame, `length` bytes of it, is to be sent */
    HPU_FRAME_PASS,  /* its frame is to be the kernel's */
    HPU_FRAME_ROOM,  /* *room is to be where a frame of `length` bytes may be written */
    HPU_FRAME_SEND   /* what has been written there is to be sent */
};

enum hpu_count { HPU_COUNT_GET, HPU_COUNT_SET, HPU_COUNT_ADD };

/* Functions of the NIC. The context of a handler calls them, while it is not expendable. */
struct hpu_ops {
    /* send() sends a message. It returns a PTL_ code, which the handler gets; or -EFAULT if the
     * handler's memory cannot be read or written, which ends the handler with SEGV. It may call
     * hpu_suspend(). */
    int (*send)(struct hpu_env *env, const struct hpu_message *m);
    /* forget() drops the answer, env->awaited, for which a cancelled handler has waited. The thread
     * that cancels calls it. */
    void (*forget)(struct hpu_env *env);
    /* count() reads or changes a counter of the host, and returns a PTL_ code. */
    int (*count)(struct hpu_env *env, enum hpu_count how, ptl_handle_ct_t ct,
                 ptl_ct_event_t *value);
    /* operand_size() returns the length of a swap's operand; 0: the operation takes none. */
    size_t (*operand_size)(ptl_op_t op, ptl_datatype_t type);
    /* header() copies the header of the message, with the user header as far as the handler may see
     * it; it returns a PTL_ code. state() returns the message state; NULL: the message has none. */
    int (*header)(struct hpu_env *env, ptl_header_t *header);
    void *(*state)(struct hpu_env *env, size_t *length);
    /* frame() does what the handler of a frame asks for, and returns a PTL_ code. NULL: the
     * messages are no frames. */
    int (*frame)(struct hpu_env *env, enum hpu_frame_call what, uint8_t **room, size_t length);
};

/* A counter that handlers add to and the host reads. */
struct hpu_counter {
    _Atomic uint64_t sum, count;
};

struct hpu_env {
    void *me_base; /* host memory of the entry; may span the whole address space */
    size_t me_length;
    void *host_base; /* handler_host_mem */
    size_t host_length;
    /* not NULL: the memory is these parts, and not at `base` */
    const struct vector *me_vector, *host_vector;
    void *state; /* HPU memory */
    size_t state_length;
    size_t max_payload; /* longest payload of PutFromDevice */
    struct hpu_counter *counters;
    unsigned counter_count;
    const struct hpu_device_code
        /* device code of the entry's handlers, by enum hpu_call (device.h); NULL: they are
         * native */
        *code;
    struct hpu_output *outputs; /* one for each HPU (output.h); NULL: text is dropped */
    unsigned output_count;
    struct hpu_dma_engine *engine; /* copies beside the handler (dma_engine.h); NULL: no engine */
    struct hpu_sched *timed;       /* the scheduler, if time is virtual (sched_virtual.c) */
    const struct hpu_ops *ops;
    void *owner; /* for the NIC's use */
    /* for the NIC's use: the answer, while the handler is suspended in ops->send() */
    void *awaited;
};

/* Result: the handler has not ended, and the call must be continued later. */
#define HPU_WAIT (-1)

enum hpu_wait {
    HPU_WAIT_NONE,    /* the handler has ended */
    HPU_WAIT_CONTEXT, /* the handler has not begun: no context was free */
    HPU_WAIT_YIELD,   /* the handler has called PtlHandlerYield() */
    HPU_WAIT_OPS,     /* ops->send() called hpu_suspend() */
    HPU_WAIT_TIME     /* virtual time is to pass, and the HPU is taken meanwhile */
};

enum hpu_place { HPU_PLACE_NOWHERE, HPU_PLACE_QUEUED, HPU_PLACE_RUNNING, HPU_PLACE_SUSPENDED };

enum hpu_call { HPU_CALL_HEADER, HPU_CALL_PAYLOAD, HPU_CALL_COMPLETION };

/* Where a handler's transfers to the host go (calls.c). It is only a guess from the last ones, so
 * it is never initialised. */
struct hpu_stride {
    uintptr_t last; /* where the last transfer went */
    /* distance from the transfer before; distance to the transfer to be prefetched */
    uintptr_t step, ahead;
    size_t length; /* of each transfer */
};

struct hpu_exec {
    struct hpu_env env; /* set by the NIC before the call */
    struct hpu_ctx *ctx;
    enum hpu_wait wait; /* what the call waits for */

    /* HPUs of the pool that may run the call, as bits; 0: any; set before hpu_exec_take() */
    uint64_t slots;

    /* For the scheduler (sched.h), while it has the call. */
    struct list link;
    struct hpu_queue *queue;
    enum hpu_place place;
    /* HPU that has begun the call; without the scheduler the slot of its context */
    unsigned hpu;
    int64_t charged;       /* nanoseconds charged to its queue in advance */
    uint64_t queued, lead; /* in virtual time: when it was submitted; the time's lead() of then */

    /* Private state of the call. */
    struct hpu_pool *pool;
    enum hpu_call call;
    int result;
    /* with SEGV: memory in the host ranges was not there, rather than the handler's own */
    bool host_fault;
    _Atomic bool ending; /* the call is to end, even if its time is not over */
    /* bytes that follow the current packet and belong to the call; and the length of each packet of
     * these but the last */
    size_t behind, packet;
    unsigned calls; /* times that this call has called the handler */
    /* cycles in the handler until it was last started or resumed; and the time of that */
    uint64_t cycles, since;
    /* cycles of the core that runs its device code, in calls of the handler that have ended */
    uint64_t core_cycles;
    uint32_t dma_issued;   /* handles 1 to dma_issued were given out */
    struct hpu_dmas *dmas; /* transfers of this call that are not done (dma.h) */
    struct hpu_stride stride;
    /* core that runs the handler's device code; NULL: the handler is native */
    struct hpu_core *core;
    union {
        ptl_header_handler_t header;
        ptl_payload_handler_t payload;
        ptl_completion_handler_t completion;
    } handler;
    struct {
        ptl_header_t header; /* kept, since later calls may be for the same message */
        union {
            ptl_payload_t payload;
            struct {
                ptl_size_t dropped;
                bool flow_control;
            } completion;
        };
    } arg;
};

/* hpu_exec_header(), _payload() and _completion() set up a handler's call, with *arg (copied) and
 * env.state, to run on a context of `pool`. */
void hpu_exec_header(struct hpu_pool *pool, struct hpu_exec *exec, ptl_header_handler_t handler,
                     const ptl_header_t *arg);
void hpu_exec_payload(struct hpu_pool *pool, struct hpu_exec *exec, ptl_payload_handler_t handler,
                      const ptl_payload_t *arg);
void hpu_exec_completion(struct hpu_pool *pool, struct hpu_exec *exec,
                         ptl_completion_handler_t handler, ptl_size_t dropped, bool flow_control);

/* hpu_exec_behind() gives the call of a payload handler further packets: `bytes` in all, each of
 * `packet` bytes but the last, which follow the first one in memory. The handler is called for one
 * after the other, each time with a new budget, until it returns anything but SUCCESS; arg.payload
 * is then the packet of that result. */
static inline void hpu_exec_behind(struct hpu_exec *exec, size_t bytes, size_t packet)
{
    exec->behind = bytes;
    exec->packet = packet;
}

/* hpu_exec_header_of() returns where the NIC may build the header that it then passes to
 * hpu_exec_header(), to save a copy. It must set all fields. */
static inline ptl_header_t *hpu_exec_header_of(struct hpu_exec *exec)
{
    return &exec->arg.header;
}

/* hpu_exec_take(), locked, gets a context for the call; a call that has one keeps it. False: none
 * is free (HPU_WAIT_CONTEXT), and the caller tries again later. */
bool hpu_exec_take(struct hpu_exec *exec);

/* hpu_exec_run() starts the handler of a call that has a context, or continues it, without the
 * lock. It returns the handler's code; FAIL for a code that a handler of its kind may not return;
 * SEGV if it left its memory; TIMEOUT if it ran for longer than its budget; or HPU_WAIT if it has
 * not ended. After HPU_WAIT with HPU_WAIT_OPS the caller must not touch the exec if another thread
 * may have continued the call: any may, from just before hpu_suspend() on. The calling thread must
 * not itself be running a handler. */
int hpu_exec_run(struct hpu_exec *exec);

/* hpu_exec_give(), locked, gives back the context of a call that has ended. */
void hpu_exec_give(struct hpu_exec *exec);

/* hpu_exec_end() ends the time of a handler that runs on a context: native code ends at once, or
 * with the call that it is in; device code in its next call, or at its next slice. Any thread may
 * call it while the context cannot be given back. hpu_exec_ending() says whether it was called. */
void hpu_exec_end(struct hpu_exec *exec);
static inline bool hpu_exec_ending(const struct hpu_exec *exec)
{
    return atomic_load_explicit(&exec->ending, memory_order_relaxed);
}

/* hpu_exec_cancel(), locked, gives up a handler that has not ended, and frees its context. The
 * stack frames of ops->send(), if that has called hpu_suspend(), are lost. */
void hpu_exec_cancel(struct hpu_exec *exec);

/* hpu_exec_park() suspends the handler on whose context the calling code runs. */
void hpu_exec_park(struct hpu_exec *exec, enum hpu_wait wait);

/* hpu_exec_current() returns the call on whose context the calling code runs, or NULL.
 * hpu_exec_handler() is the function that the contexts of calls run. */
void hpu_exec_handler(void *exec);
static inline struct hpu_exec *hpu_exec_current(void)
{
    return hpu_ctx_arg(hpu_exec_handler);
}

/* hpu_suspend() makes the hpu_exec_run() that runs this context return HPU_WAIT; hpu_suspend()
 * itself returns when the call is continued. Only ops->send() may call it. */
void hpu_suspend(struct hpu_env *env);

#endif
