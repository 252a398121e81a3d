/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC's objects. Stages are plain functions on them; none knows a clock or
 * a transport.
 *
 *   process ── nics ── nic ── ni[4] ── tables: EQ, CT, MD, LE/ME, triggered, HPU memory
 *                       │              └─ portal table ── lists of entries
 *                       ├─ peers ── waiting operations
 *                       └─ fabric
 *
 * One lock a NIC guards all of it, its fabric included. It is never held while
 * a handler's own code runs. An object that others refer to is reached by
 * pointer and handle (struct eq_ref, ct_ref): objects of a table never move
 * and their memory stays until the NI is closed, so that a freed one is
 * noticed by its handle.
 */
#ifndef NIC_NIC_H
#define NIC_NIC_H

#include "base/list.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/table.h"
#include "fabric/fabric.h"
#include "hpu/exec.h"
#include "hpu/memory.h"
#include "hpu/sched.h"
#include "hpu/twin.h"
#include "hpu/watch.h"
#include "nic/board.h"
#include "nic/event.h"
#include "nic/match.h"
#include "nic/memory.h"
#include "nic/unexpected.h"
#include "portals4.h"
#include "spin.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define NICS_MAX 8
#define NI_KINDS BOARD_KINDS /* matching or not, logical or physical */
#define ATOMIC_OPERAND 32    /* bytes of the largest element of an atomic */

struct answer;
struct le;
struct ni;
struct nic;

/* ---- counters; event queues are in event.h ---- */

struct ct {
    struct table_slot slot;
    struct ni *ni;
    _Atomic uint64_t success, failure;
    struct list triggers; /* struct triggered, by threshold, then by age */
};

struct ct_ref {
    struct ct *ct;
    uint32_t handle;
};

/* ---- initiator ---- */

struct md {
    struct table_slot slot;
    struct ni *ni;
    void *start;
    struct vector vector; /* PTL_IOVEC: a copy of the parts */
    uint64_t length;
    unsigned options;
    struct eq_ref eq;
    struct ct_ref ct;
    unsigned users; /* operations that have not ended */
};

enum op_kind { OP_PUT, OP_GET, OP_ATOMIC, OP_FETCH /* PtlFetchAtomic and PtlSwap */ };
enum op_origin { FROM_PROGRAM, FROM_TRIGGER, FROM_HANDLER };

/* The arguments of a data movement, checked. */
struct request {
    enum op_kind kind;
    enum op_origin origin;
    ptl_op_t op; /* of atomics, else 0 */
    ptl_datatype_t datatype;
    struct md *md;        /* what is sent comes from there; of OP_GET: the reply goes there.
                             NULL: a handler's */
    struct memory memory; /* its memory */
    struct md *get_md;    /* of OP_FETCH: where the reply goes */
    struct memory get_memory;
    uint64_t length;
    ptl_ack_req_t ack;
    ptl_process_t target;
    uint32_t pt_index;
    uint64_t match_bits;
    uint64_t remote_offset;
    uint64_t hdr_data;
    void *user_ptr;
    /* of a handler (FROM_HANDLER): what it inherits from its entry */
    struct eq_ref eq;
    struct ct_ref ct;                /* with PTL_CT_ACK_REQ and PTL_OC_ACK_REQ */
    struct le *le;                   /* whose memory it uses; NULL: the handler's own */
    struct answer *answer;           /* what the handler waits for, handler_send.c; or NULL */
    void *owned;                     /* freed when the buffer is no longer needed */
    uint8_t operand[ATOMIC_OPERAND]; /* of CSWAP and its relatives, and MSWAP */
};

static inline bool request_sends(const struct request *r)
{
    return r->kind != OP_GET;
}

static inline bool request_fetches(const struct request *r)
{
    return r->kind == OP_GET || r->kind == OP_FETCH;
}

/* The MD that a reply goes to. */
static inline struct md *request_reply_md(const struct request *r)
{
    return r->kind == OP_FETCH ? r->get_md : r->md;
}

static inline const struct memory *request_reply_memory(const struct request *r)
{
    return r->kind == OP_FETCH ? &r->get_memory : &r->memory;
}

/* An operation in flight: queued, or waiting for its response. It keeps the
 * place for that response (wall 2). */
struct op {
    struct table_slot slot;
    struct list link; /* of the peer's waiting list */
    struct ni *ni;    /* NULL: its NI was closed; it ends without a sound */
    struct nic_peer *peer;
    bool left;       /* its buffer was given back, SEND was posted */
    bool fabric_has; /* tx is the fabric's */
    bool expects;    /* a response will come */
    bool counted;    /* in the peer's outstanding */

    struct request request; /* from here on not zeroed */
    struct fabric_tx tx;
    uint8_t
        staged[2 * ATOMIC_OPERAND]; /* payload of a swap with an operand: that, and one element */
};

struct triggered {
    struct table_slot slot;
    struct list link; /* of a counter, or of the NIC's fired list */
    struct ni *ni;
    uint64_t threshold;
    enum trigger_kind {
        TRIGGER_REQUEST,
        TRIGGER_CT_INC,
        TRIGGER_CT_SET,
        TRIGGER_APPEND,
        TRIGGER_UNLINK
    } kind;
    struct request request;
    struct ct_ref ct;     /* CT_INC, CT_SET */
    ptl_ct_event_t value; /* the same */
    struct le *le;        /* APPEND; UNLINK, while it has this handle: */
    uint32_t le_handle;
};

/* ---- target ---- */

/* What an entry with handlers has besides. */
struct handlers {
    ptl_header_handler_t header;
    ptl_payload_handler_t payload;
    ptl_completion_handler_t completion;
    struct hpu_memory *memory;
    bool own_memory;
    void *host_base;
    uint64_t host_length;
    uint64_t user_header;
    uint64_t hpu_mask;           /* HPUs that may run them, 0: all */
    struct vector host_vector;   /* PTL_HANDLER_IOVEC: a copy of the parts */
    struct board_context *board; /* what it has done */
    struct hpu_queue queue;      /* with nic->sched */
    bool inactive;               /* no message finds the entry before PtlHandlersActivate() */
    struct hpu_twin twin[3];     /* by enum hpu_call, with nic->twins */
    bool orphaned;               /* one runs on, and its NI is closed: what it uses is kept */
};

struct hpu_memory {
    struct table_slot slot;
    struct ni *ni;
    struct hpu_mem *mem;
    unsigned users; /* entries */
};

/* A list entry or a match list entry. */
struct le {
    struct table_slot slot;
    bool linked;
    bool plain;         /* no handlers, no offset of its own, leaves no header: finish_plain() */
    bool reserved;      /* used up by a message whose handlers have the last word */
    bool auto_unlinked; /* AUTO_UNLINK is due when its last message ends */
    bool unlink_told;   /* AUTO_UNLINK was posted, AUTO_FREE is due with its last header */
    bool awaited;       /* a triggered operation will link it */
    unsigned users;     /* messages in hand */
    unsigned headers;   /* unexpected headers that refer to it */
    uint64_t offset;    /* locally managed */

    struct ni *ni; /* from here on not zeroed: le_new() sets it */
    uint32_t pt_index;
    void *start;
    struct vector vector; /* PTL_IOVEC: a copy of the parts, which are the entry's */
    uint64_t length;
    uint64_t min_free;
    unsigned options;
    ptl_uid_t uid;
    ptl_list_t list;
    struct ct_ref ct;
    void *user_ptr;
    struct handlers *handlers;
    struct match_entry match;
};

/* An unexpected header: a message that an entry of the overflow list took, until
 * an entry of the priority list, or a search, claims it. */
struct unexpected {
    struct table_slot slot;
    struct unexpected_header header;
    struct le *le;       /* that took it */
    struct le *claimant; /* that waits for it to be complete, or NULL */
    bool busy;           /* the message is in hand */
    ptl_event_t event;   /* ..._OVERFLOW, but for user_ptr */
};

struct pt {
    bool allocated;
    bool enabled;
    unsigned options;
    unsigned users; /* messages in hand */
    struct eq_ref eq;
    struct match_list priority, overflow;
    struct unexpected_list unexpected;
    struct le *recent; /* of the priority list: the entry that matched last, while it is in it */
    unsigned with_handlers; /* entries that have some */
    bool refusing;          /* flow control has closed it: not enabled */
    bool refusal_due;       /* PT_DISABLED is to be posted when the last message in hand ends */
};

struct ni {
    struct nic *nic;
    unsigned kind; /* index in nic->ni: 1 not matching, 2 physical */
    unsigned options;
    unsigned users; /* PtlNIInit less PtlNIFini */
    ptl_handle_ni_t handle;
    ptl_ni_limits_t limits;
    struct table eqs, cts, mds, les, unexpected, triggered, hpu_memories;
    struct pt *pts;
    ptl_process_t *map;
    uint64_t map_size;
    struct nic_peer **map_peers; /* by rank, NULL: to be looked up */
    ptl_rank_t rank;
    uint64_t *registers; /* by ptl_sr_index_t, on the board */
    struct hpu_counter counters[PTL_SPIN_COUNTERS];
    unsigned in_flight; /* ops and messages that refer to it */
    unsigned bundles;   /* PtlStartBundle less PtlEndBundle */
};

static inline bool ni_is_matching(const struct ni *ni)
{
    return (ni->kind & 1) == 0;
}

static inline bool ni_is_logical(const struct ni *ni)
{
    return (ni->kind & 2) == 0;
}

/* ---- NIC and process ---- */

struct nic_peer {
    struct list link; /* of its hash chain */
    struct list all;  /* of nic->all_peers */
    struct list busy; /* of nic->busy, while it has waiting operations */
    struct nic *nic;
    uint32_t nid, pid;
    ptl_uid_t uid;
    struct fabric_peer *fabric;   /* NULL: not found yet */
    const struct fabric_ops *ops; /* of its fabric */
    struct list waiting;          /* struct op, in order */
    unsigned outstanding;         /* ops that expect a response */
    int64_t deadline, retry;      /* to be found until then; when to look next */
    struct rx *rx[FABRIC_CLASSES];
    struct list detached; /* struct invocation (invoke.c), in order */
    uint64_t detached_count;
    bool self; /* the NIC's own */
    bool told; /* the log says why it cannot be reached */
};

#define PEER_BUCKETS 256

struct nic {
    struct process *process;
    unsigned index;
    uint32_t nid, pid;
    uint64_t incarnation;
    ptl_uid_t uid;
    size_t packet_size;
    size_t inline_max;            /* payloads up to here take the fabric's short cut */
    const struct fabric_ops *ops; /* of its home, */
    struct fabric *fabric;
    const struct fabric_ops *net_ops; /* and of the fabric for peers that it does not reach */
    struct fabric *net;               /* NULL: there is none */
    bool net_only;                    /* home is for messages to oneself */
    _Atomic uint32_t *bell;           /* of its home */
    struct ni *ni[NI_KINDS];
    struct list peers[PEER_BUCKETS];
    struct list all_peers;
    struct nic_peer *last_peer; /* of a physical target; NULL: none */
    struct list busy;
    struct table operations; /* struct op */
    unsigned queued_program, queued_handler;
    struct list acks_due; /* struct rx with gathered acks */
    struct list fired;    /* struct triggered whose threshold was reached */
    struct rx *self;      /* self.c */
    struct hpu_pool *hpus;
    struct hpu_sched *sched; /* HPUs that are threads; NULL: whoever makes progress is one */
    struct hpu_twins *twins; /* PINWHEEL_HPU=rv32: what runs handlers; NULL: native code */
    struct hpu_watch *watch; /* over the handlers' time; NULL: not yet, or there is no budget */
    bool sched_paused;       /* an NI is being closed */
    uint64_t hpu_memory_used;
    struct list invoked, invoked_away; /* struct invocation (invoke.c) */
    unsigned invocations;              /* in both */
    struct nic_board *board;           /* the fabric's: what others may know */
    int64_t reported;                  /* when the other fabric told it last of its peers */
    int64_t (*now)(void);              /* nanoseconds, for how long peers are sought */
    unsigned unlocked;                 /* threads that run handlers or copy, without the lock */

    /* progress.c */
    struct lock lock;
    _Atomic bool polled;
    _Atomic bool attention; /* operations wait or have fired: only nic_advance() can tell */
    int64_t linger_end;     /* until when closing may take; 0: not closing */
    /* Under the lock, in a word of their own: compilers load several at once. */
    bool thread_idle; /* it sleeps without a lease */
    bool events_due;  /* it was rung or told of a death */
    bool stalled;     /* a message with handlers finds no room: its patience has an end */
    bool stop;
    bool news;            /* what somebody below waits for has happened since */
    unsigned waiters;     /* program threads asleep on the bell: */
    unsigned curious;     /* to whom whatever changes is news, */
    struct list counting; /* and struct ct_mark of the others */
    int wake_fd;
    int thread_epoll;
    pthread_t thread;
    unsigned poll_next; /* place of the queue that PtlEQPoll looks at first */
    _Atomic unsigned empty_polls;
    _Atomic int64_t spin_ns, yield_ns; /* how long waiting threads spin and yield; learnt */
    _Atomic int64_t slept_ns;          /* how long waits are that end asleep, on average */
    _Atomic int64_t probe_at;          /* when what was learnt is put to the test again */
    _Atomic bool probe_due;
    _Atomic unsigned probes;
};

struct process {
    pthread_mutex_t lock;
    _Atomic unsigned users;  /* PtlInit less PtlFini */
    _Atomic unsigned aborts; /* PtlAbort */
    struct options options;
    bool asymmetric;
    struct nic *nics[NICS_MAX];
    struct ni *nis[NICS_MAX * NI_KINDS];
    _Atomic uint64_t epoch; /* no other process had it; another one once an NI is gone */
    unsigned generations[NICS_MAX * NI_KINDS];
};

/* ---- process.c ---- */

/* process_current() is the process that the calling thread runs in: the one
 * set for the thread, else the address space's own; NULL before PtlInit. */
extern struct process *process_space;
extern __thread struct process *process_thread __attribute__((tls_model("initial-exec")));
static inline struct process *process_current(void)
{
    struct process *p = process_thread;
    return p != NULL ? p : __atomic_load_n(&process_space, __ATOMIC_ACQUIRE);
}
int process_init(void);
void process_fini(void);
/* process_enter() makes the calling thread run in another process of this
 * address space (NULL: the address space's own) and returns the one before.
 * process_new() makes one that PtlInit can then be called in. */
struct process *process_enter(struct process *p);
struct process *process_new(void);
void process_free(struct process *p);
/* process_renew() begins another epoch: what was found by handles before may be gone. */
void process_renew(struct process *p);
/* process_abort() ends what waits in the process, nic_wait_abort(). */
void process_abort(struct process *p);

/* ---- nic.c, ni.c ---- */

/* nic_open() opens the NIC of an interface; process lock held. Gives a PTL_ code. */
int nic_open(struct process *p, unsigned index, ptl_pid_t pid, struct nic **nic);
/* nic_peers_most() is how many peers it may have at once. */
unsigned nic_peers_most(const struct nic *nic);
/* nic_close() sends what is queued, then closes; no NI is open. */
void nic_close(struct nic *nic);

int ni_open(struct nic *nic, unsigned options, const ptl_ni_limits_t *desired, struct ni **ni);
/* ni_close() lets operations in flight end for a while, then cuts them off. */
void ni_close(struct ni *ni);
/* ni_set_map() takes a map that the caller has checked. */
int ni_set_map(struct ni *ni, uint64_t size, const ptl_process_t *map);

/* ---- progress.c ---- */

static inline void nic_lock(struct nic *nic)
{
    lock_take(&nic->lock);
}
/* nic_tell_news() wakes the program threads that sleep on the bell. */
void nic_tell_news(struct nic *nic);
/* nic_news() says that an event was posted, or that something else but a counter changed. */
static inline void nic_news(struct nic *nic)
{
    nic->news |= nic->curious != 0;
}
/* nic_unlock() wakes sleeping program threads if there is news for them. */
static inline void nic_unlock(struct nic *nic)
{
    if (nic->news && nic->waiters != 0) {
        nic_tell_news(nic);
    }
    lock_give(&nic->lock);
}
int progress_start(struct nic *nic);
void progress_stop(struct nic *nic);
/* nic_quiet() says, without the lock, that nic_advance() would find nothing. */
static inline bool nic_quiet(struct nic *nic)
{
    return !atomic_load_explicit(&nic->attention, memory_order_relaxed) &&
           !nic->ops->peek(nic->fabric) && (nic->net == NULL || !nic->net_ops->peek(nic->net));
}
/* nic_follow_up() goes on with what the end of a handler has let go on; lock held. For HPUs
 * that are threads: the others need not look after what is with them. */
void nic_follow_up(struct nic *nic);
/* nic_advance() does all that can be done now; lock held. True if anything was. */
bool nic_advance(struct nic *nic);
/* nic_take_over() says that a program thread looks after the NIC for a while. */
void nic_take_over_asleep(struct nic *nic);
static inline void nic_take_over(struct nic *nic)
{
    if (!atomic_load_explicit(&nic->polled, memory_order_relaxed)) {
        atomic_store_explicit(&nic->polled, true, memory_order_relaxed);
    }
    uint32_t bell = atomic_load_explicit(nic->bell, memory_order_relaxed);
    if ((bell & BELL_STATE) == BELL_ASLEEP_FD) {
        nic_take_over_asleep(nic);
    }
}
/* nic_poll() is nic_advance() for a program thread, without the lock; it keeps the
 * NIC thread away, and gives the core away now and then when nothing happens. */
void nic_poll(struct nic *nic);
/* nic_note_poll() notes whether a poll found anything. With more pollers than cores,
 * somebody else may have the message: give the core away now and then. */
#define EMPTY_POLLS_YIELD 64 /* polls of nothing before a polling program yields */
static inline void nic_note_poll(struct nic *nic, bool found)
{
    unsigned n = found ? 0 : atomic_load_explicit(&nic->empty_polls, memory_order_relaxed) + 1;
    atomic_store_explicit(&nic->empty_polls, n, memory_order_relaxed);
    if (!found && n % EMPTY_POLLS_YIELD == 0) {
        sched_yield();
    }
}
/* nic_look() is ready(arg), called under the lock; with `idle` after some progress and only
 * if something moved, since the caller has seen that it is false. Inlined, ready() and all:
 * most looks are at nothing, and a program that polls makes many for each message. */
static inline __attribute__((always_inline)) bool
nic_look(struct nic *nic, bool (*ready)(void *arg), void *arg, bool idle)
{
    nic_take_over(nic);
    bool done = false;
    if (!idle || !nic_quiet(nic)) {
        nic_lock(nic);
        done = (!idle || nic_advance(nic)) && ready(arg);
        nic_unlock(nic);
    }
    nic_note_poll(nic, done);
    return done;
}
/* nic_wait() makes progress until ready(arg), called under the lock, is true, or
 * `timeout_ns` have passed (negative: for ever). Returns whether it was.
 * nic_wait_abort() does so until PtlAbort() at the most, and gives PTL_OK,
 * PTL_ABORTED, or `over` when the time is over. */
bool nic_wait(struct nic *nic, bool (*ready)(void *arg), void *arg, int64_t timeout_ns);
int nic_wait_abort(struct nic *nic, bool (*ready)(void *arg), void *arg, int64_t timeout_ns,
                   int over);
/* nic_wait_mark() is the same without time limit for a thread that waits for one counter to
 * get somewhere: counts that do not get it there leave it asleep. */
struct ct_mark {
    struct list link; /* of nic->counting, while it sleeps */
    const struct ct *ct;
    uint64_t success; /* or any failure */
};
int nic_wait_mark(struct nic *nic, bool (*ready)(void *arg), void *arg, struct ct_mark *mark);
/* nic_linger() is nic_wait() for closing: PINWHEEL_LINGER_MS at most, all calls since
 * linger_end was 0 together, for things that nobody announces. */
bool nic_linger(struct nic *nic, bool (*ready)(void *arg), void *arg);

/* ---- peer.c ---- */

struct nic_peer *peer_get(struct nic *nic, uint32_t nid, uint32_t pid);
/* peer_resolve() finds the peer of a target in the terms of an NI, or NULL. The
 * one of a physical target that was found last is remembered. */
struct nic_peer *peer_look_up(struct ni *ni, ptl_process_t target);
static inline struct nic_peer *peer_resolve(struct ni *ni, ptl_process_t target)
{
    struct nic_peer *p;
    if (ni_is_logical(ni)) {
        p = target.rank < ni->map_size ? ni->map_peers[target.rank] : NULL;
    } else {
        p = ni->nic->last_peer;
        p = p != NULL && p->nid == target.phys.nid && p->pid == target.phys.pid ? p : NULL;
    }
    return p != NULL && p->fabric != NULL ? p : peer_look_up(ni, target);
}
/* peers_advance() sends what waits; peers_deadline() is when it must be called
 * next, or -1. */
bool peers_advance_busy(struct nic *nic);
static inline bool peers_advance(struct nic *nic)
{
    return !list_empty(&nic->busy) && peers_advance_busy(nic);
}
int64_t peers_deadline(struct nic *nic);
void peers_free(struct nic *nic);
extern const struct fabric_upcalls nic_upcalls;

/* ---- initiate.c ---- */

/* Whether somebody may have this id, in the terms of the NI. */
static inline bool target_sound(const struct ni *ni, ptl_process_t target)
{
    if (ni_is_logical(ni)) {
        return target.rank < ni->map_size;
    }
    return target.phys.nid != PTL_NID_ANY && target.phys.pid != 0 && target.phys.pid <= PTL_PID_MAX;
}

/* request_sound() makes the checks that every data movement has in common, with
 * the event queue and the counter that its answer would go to. */
static inline bool request_sound(const struct ni *ni, const struct request *r, struct eq_ref eq,
                                 struct ct_ref ct)
{
    if ((r->ack == PTL_ACK_REQ && eq.eq == NULL) || (r->ack == PTL_CT_ACK_REQ && ct.ct == NULL)) {
        return false;
    }
    return r->ack <= PTL_OC_ACK_REQ && r->length <= ni->limits.max_msg_size &&
           r->pt_index <= UINT16_MAX && target_sound(ni, r->target);
}
/* Whether a response is due. */
static inline bool request_expects(const struct request *r)
{
    return request_fetches(r) || r->ack != PTL_NO_ACK_REQ;
}
/* request_atomic_sound() makes those that atomics have besides. */
bool request_atomic_sound(const struct ni *ni, const struct request *r, bool swap);
/* Options that say what SEND does. A handler's request has no MD: it gets the ACK it asked for,
 * and SEND only when its message was lost. */
static inline unsigned request_send_options(const struct request *r)
{
    return r->md != NULL ? r->md->options : PTL_MD_EVENT_SUCCESS_DISABLE;
}
/* Nobody wants to know when the data of a successful request have left. */
static inline bool request_is_silent(const struct request *r)
{
    return (request_send_options(r) & (PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_SUCCESS_DISABLE)) ==
           PTL_MD_EVENT_SUCCESS_DISABLE;
}
/* request_operand_size() is what leads the payload of a swap. */
size_t request_operand_size(const struct request *r);
struct message;
/* request_message() fills the header of its message. */
void request_message(const struct ni *ni, const struct request *r, uint32_t cookie,
                     struct message *m);
/* request_left() posts and counts SEND, request_answered() ACK or REPLY. */
void request_left(const struct request *r, ptl_ni_fail_t fail);
void request_answered(const struct request *r, ptl_ni_fail_t fail, uint64_t mlength,
                      uint64_t remote_offset, ptl_list_t list);
/* nic_request() starts an operation; lock held. The request is copied. Gives
 * PTL_OK, or PTL_NO_SPACE when no place for it is left; `owned` then is the
 * caller's still. */
int nic_request(struct ni *ni, const struct request *request);
/* nic_request_now() starts an operation only if it can be over when the call
 * returns: its buffer is the caller's at once. True if it did. */
bool nic_request_now(struct ni *ni, const struct request *request);
/* nic_has_place() is true while the queue of that origin has room. */
bool nic_has_place(struct nic *nic, enum op_origin origin);
/* op_send() tries to hand an op to the fabric; false if there is no room. */
bool op_send(struct op *op);
/* op_left() notes that the buffer is free; op_response() ends the op. */
void op_left(struct op *op, ptl_ni_fail_t fail);
void op_response(struct op *op, ptl_ni_fail_t fail, uint64_t mlength, uint64_t remote_offset,
                 bool silent, ptl_list_t list);
/* op_fail() ends an op that will not be answered; op_end() forgets one that has
 * left and been answered. */
void op_fail(struct op *op, ptl_ni_fail_t fail);
void op_end(struct op *op);

/* ---- handler_send.c ---- */

/* A request of a handler becomes an operation, is answered (true: with an event), and ends;
 * `closed`: its NI was. */
void handler_request_begin(const struct request *r);
bool handler_request_answered(const struct request *r, ptl_ni_fail_t fail, uint64_t mlength);
void handler_request_end(struct request *r, bool closed);

/* ---- self.c ---- */

/* self_request() carries out a request to oneself if it can be done at once, with all that
 * follows from it; false: nothing was done. */
bool self_request(struct ni *ni, struct nic_peer *peer, const struct request *r);
void self_free(struct nic *nic);

/* ---- counter.c ---- */

void ct_add(struct ct_ref ref, uint64_t success, uint64_t failure);
/* ct_count() counts one operation: `bytes` or 1 on success, one failure else. */
void ct_count(struct ct_ref ref, ptl_ni_fail_t fail, bool count_bytes, uint64_t bytes);
void ct_set(struct ct *ct, ptl_ct_event_t value);
/* ct_cancel() forgets the triggered operations that wait for a counter. */
void ct_cancel(struct ct *ct);
void ct_drop(struct ct *ct);
static inline bool ct_ref_alive(struct ct_ref ref)
{
    return ref.ct != NULL && ref.ct->slot.handle == ref.handle;
}

/* ---- trigger.c ---- */

/* trigger_arm() queues `t` on a counter, or fires it when that is reached. */
void trigger_arm(struct ct *ct, struct triggered *t);
/* trigger_check() moves what a counter has reached to the fired list. */
void trigger_check(struct ct *ct);
/* trigger_forget() drops a triggered operation that is in no list. */
void trigger_forget(struct triggered *t);
/* trigger_run() carries out what has fired; true if anything had. */
void trigger_run_fired(struct nic *nic);
static inline bool trigger_run(struct nic *nic)
{
    if (list_empty(&nic->fired)) {
        return false;
    }
    trigger_run_fired(nic);
    return true;
}

/* ---- receive.c, deliver.c ---- */

struct rx;
struct fabric_rx *rx_new(struct nic_peer *peer, enum fabric_class class);
void rx_free(struct nic_peer *peer, struct fabric_rx *rx);
enum rx_step rx_short(struct nic_peer *peer, struct fabric_rx *rx, const void *payload);
enum rx_step rx_header(struct nic_peer *peer, struct fabric_rx *rx);
enum rx_step rx_packet(struct nic_peer *peer, struct fabric_rx *rx, void *data, uint64_t offset,
                       size_t length);
enum rx_step rx_done(struct nic_peer *peer, struct fabric_rx *rx, enum fabric_status status);
/* acks_advance() sends the acks that were gathered while messages were taken, but
 * leaves those for which there is no room. */
void acks_advance_all(struct nic *nic);
static inline void acks_advance(struct nic *nic)
{
    if (!list_empty(&nic->acks_due)) {
        acks_advance_all(nic);
    }
}
/* rx_reply_sent() notes that the last byte of a get's data has left. */
void rx_reply_sent(struct fabric_tx *tx, enum fabric_status status);

/* ---- entry.c ---- */

/* le_append() links an entry whose arguments were checked; `handlers` is taken
 * over. Gives a PTL_ code. */
struct le_setup {
    const ptl_me_t *me; /* for a non-matching NI only its ptl_le_t part is read */
    bool matching;
    ptl_list_t list;
    void *user_ptr;
    struct handlers *handlers;
    struct vector vector; /* with PTL_IOVEC: a copy of the parts, taken over, */
    uint64_t length;      /* and their bytes; else that of `me` */
    struct ct_ref ct;
};
int le_append(struct ni *ni, uint32_t pt_index, const struct le_setup *setup,
              ptl_handle_le_t *handle);
/* The same in two steps: le_new() makes an entry that no message finds, le_link()
 * takes the unexpected headers that it matches and links it. An entry that
 * le_link() could not link is the caller's still; le_free() forgets it. */
struct le *le_new(struct ni *ni, uint32_t pt_index, const struct le_setup *setup);
int le_link(struct le *le);
void le_free(struct le *le);
/* le_search() posts what a search finds. */
void le_search(struct ni *ni, uint32_t pt_index, const struct le_setup *setup, ptl_search_op_t op);
/* handlers_release() frees what an entry has besides, and HPU memory of its own. */
void handlers_release(struct handlers *handlers);
/* ---- telemetry.c: what handlers do, on the board ---- */

/* telemetry_begin() finds an execution context its place there, telemetry_end() gives it back. */
void telemetry_begin(struct le *le);
void telemetry_end(struct nic *nic, struct handlers *h);
/* telemetry_call() counts a call that has ended; `h` NULL: its context is no more. */
void telemetry_call(struct nic *nic, struct handlers *h, const struct hpu_exec *exec, int code);

/* handlers_prepare() makes the NIC ready to run handlers: the first ones' need of a watch. 0
 * or -errno. */
int handlers_prepare(struct nic *nic);
extern const struct hpu_sched_ops nic_sched_ops;
/* hpu_memory_new() makes a piece of HPU memory, NULL when there is no room for it or its
 * handle; hpu_memory_free() ends it. The lock is held. */
struct hpu_memory *hpu_memory_new(struct ni *ni, uint64_t length);
void hpu_memory_free(struct hpu_memory *m);

/* ---- invoke.c ---- */

/* invoke() has the handlers of an entry run on a copy of `length` bytes; lock held. Gives a
 * PTL_ code. */
int invoke(struct le *le, const void *data, uint64_t length);
/* invoke_advance() goes on with what was invoked; true if anything moved. invoke_waits() is
 * true while somebody must do so without being told. */
bool invoke_advance_all(struct nic *nic);
static inline bool invoke_advance(struct nic *nic)
{
    return !list_empty(&nic->invoked) && invoke_advance_all(nic);
}
bool invoke_waits(const struct nic *nic);
/* invoke_stir() says that a handler of one that waits has ended. */
struct rx;
void invoke_stir(struct rx *rx);
/* invoke_detach() lets a message of a channel that is here whole go on without it; false: it
 * stays. invoke_behind_entry() and invoke_behind_ack() say whether a message, in a channel or not,
 * must wait for one that has left the channel before it: for its entry, or with its ack. */
bool invoke_detach(struct rx *rx, const void *data);
bool invoke_behind_entry(const struct rx *rx);
bool invoke_behind_ack(const struct rx *rx);
/* invoke_peer_down() forgets a peer, whose messages go on. */
void invoke_peer_down(struct nic_peer *peer);
/* invoke_end() ends the handlers that run for messages of an NI. */
void invoke_end(struct ni *ni);
/* invoke_cut() gives up what refers to an NI that is being closed. */
void invoke_cut(struct ni *ni);
/* invoke_free() forgets the rest, when no NI is left. */
void invoke_free(struct nic *nic);
/* rx_adopt() takes an entry for a message that has not come through a fabric. */
void rx_adopt(struct rx *rx, struct le *le);
/* le_activate() lets messages find an entry whose handlers were inactive; PTL_ARG_INVALID if
 * they were not. */
int le_activate(struct le *le);
/* le_unlink() gives PTL_IN_USE while a message is in hand. */
int le_unlink(struct le *le);
/* le_take_out() removes an entry from its list because a message used it up. */
void le_take_out(struct le *le);
/* le_use_up() does so, with what follows, for one that has no message in hand. */
void le_use_up(struct le *le);
/* le_release() ends a message's use of an entry; the last posts AUTO_UNLINK. */
void le_release(struct le *le);
/* Whether a message that it takes leaves an unexpected header. */
static inline bool le_leaves_header(const struct le *le)
{
    return le->list == PTL_OVERFLOW_LIST && (le->options & PTL_ME_UNEXPECTED_HDR_DISABLE) == 0;
}
/* le_memory() is its memory from an offset on. */
static inline struct memory le_memory(const struct le *le, uint64_t offset)
{
    return memory_of(le->start, &le->vector, offset);
}
/* le_room() is what is left in the entry behind `offset`. */
static inline uint64_t le_room(const struct le *le, uint64_t offset)
{
    return offset < le->length ? le->length - offset : 0;
}
/* unexpected_end() says that the message of a header is complete, or was lost. */
void unexpected_end(struct unexpected *u, ptl_ni_fail_t fail);
/* pt_refuse() closes a portal table entry to messages: `le` (or NULL) found no
 * room for one. pt_release() ends a message's use of it. */
void pt_refuse(struct ni *ni, uint32_t pt_index, const struct le *le);
void pt_release(struct ni *ni, uint32_t pt_index);
/* pt_clear() drops its unexpected headers and its entries. */
void pt_clear(struct pt *pt);

#endif
