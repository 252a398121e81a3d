/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the NIC do for each other and for portals/, file by file, on the objects of
 * objects.h. Stages are plain functions; none knows a clock or a transport.
 */
#ifndef NIC_NIC_H
#define NIC_NIC_H

#include "base/branch.h"
#include "nic/atomic.h"
#include "nic/objects.h"

#include <sched.h>

/* ---- process.c ---- */

/* process_current() is the process that the calling thread runs in: the one
 * set for the thread, else the address space's own; NULL before PtlInit. */
extern struct process *process_space;
extern __thread struct process *process_thread __attribute__((tls_model("initial-exec")));
static inline struct process *process_current(void)
{
    struct process *p = process_thread;
    return rare(p != NULL) ? p : __atomic_load_n(&process_space, __ATOMIC_ACQUIRE);
}
int process_init(void);
void process_fini(void);
int process_set_key(struct process *, const void *key, size_t length);
/* process_enter() makes the calling thread run in another process of this
 * address space (NULL: the address space's own) and returns the one before.
 * process_new() makes one that PtlInit can then be called in. */
struct process *process_enter(struct process *p);
struct process *process_new(void);
void process_free(struct process *p);
/* process_renew() begins another epoch: what was found by handles before, in whatever process of
 * this address space, may be gone. The first epoch is 1. */
extern _Atomic uint64_t process_epoch;
void process_renew(void);
/* process_each_nic() calls see() for each NIC that the process, which may be NULL, has or had, also
 * one that is being opened or closed. */
void process_each_nic(struct process *p, void (*see)(struct nic *));
/* process_abort() ends what waits in the process, ni_wait_abort(). */
void process_abort(struct process *p);

/* ---- nic.c, ni.c ---- */

/* nic_open() opens the NIC of an interface; process lock held. Gives a PTL_ code. Both it and
 * nic_close() have the NIC's lock while they change what others may look at. */
int nic_open(struct process *p, unsigned index, ptl_pid_t pid, struct nic **nic)
    __attribute__((cold));
/* nic_no_memory() tells the log that memory is short for an interface; PTL_NO_SPACE. */
int nic_no_memory(void);
/* nic_peers_most() is how many peers it may have at once. */
unsigned nic_peers_most(const struct nic *nic);
/* nic_close() sends what is queued, then closes; no NI is open. */
void nic_close(struct nic *nic);

int ni_open(struct nic *nic, unsigned options, const ptl_ni_limits_t *desired, struct ni **ni);
/* ni_free_memory() frees what a number's NIs had, of a process that no thread is in; or NULL. */
void ni_free_memory(struct ni *ni);
/* ni_close() lets operations in flight end for a while, then cuts them off. */
void ni_close(struct ni *ni);
/* ni_set_map() takes a map that the caller has checked, if there is none; the NI is the one that
 * has this handle. */
int ni_set_map(struct ni *ni, ptl_handle_ni_t handle, uint64_t size, const ptl_process_t *map);

/* ---- progress.c ---- */

static inline void nic_lock(struct nic *nic)
{
    lock_take(&nic->lock);
}
/* nic_tell_news() wakes the program threads that sleep on the bell. */
void nic_tell_news(struct nic *nic);
/* nic_unlock() wakes sleeping program threads if there is news for them. */
static inline void nic_unlock(struct nic *nic)
{
    if (rare(nic->news.due && nic->waiters != 0)) {
        nic_tell_news(nic);
    }
    lock_give(&nic->lock);
}
/* nic_enter_seat() and nic_leave_seat() are these for a thread that has the lock's bias, as
 * lock_enter_seat(); false if it has not. */
static inline bool nic_enter_seat(struct nic *nic, uint32_t seat)
{
    return usual(lock_enter_seat(&nic->lock, seat));
}
static inline void nic_leave_seat(struct nic *nic, uint32_t seat)
{
    if (rare(nic->news.due)) {
        nic_unlock(nic);
    } else {
        lock_leave_seat(&nic->lock, seat);
    }
}
/* nic_step_out() lets go of the lock while user code runs or a fabric copies, nic_step_in() takes
 * it again; in between the thread counts as one that comes back. */
static inline void nic_step_out(struct nic *nic)
{
    nic->unlocked++;
    nic_unlock(nic);
}
static inline void nic_step_in(struct nic *nic)
{
    nic_lock(nic);
    nic->unlocked--;
}
int progress_start(struct nic *nic);
void progress_stop(struct nic *nic);
/* progress_have_alarm() makes what progress_wake_at(), which is nic->wake_at, needs; 0 or -errno.
 */
int progress_have_alarm(struct nic *nic);
void progress_wake_at(struct nic *nic, int64_t due);
/* nic_quiet() says, without the lock, that nic_advance() would find nothing. */
static inline bool nic_quiet(struct nic *nic)
{
    struct fabric *net = nic->net;
    return !atomic_load_explicit(&nic->attention, memory_order_relaxed) &&
           !nic->ops->peek(nic->fabric) && (usual(net == NULL) || !nic->net_ops->peek(net));
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
    if (rare(!atomic_load_explicit(&nic->polled, memory_order_relaxed))) {
        atomic_store_explicit(&nic->polled, true, memory_order_relaxed);
    }
    uint32_t bell = atomic_load_explicit(nic->bell, memory_order_relaxed);
    if (rare((bell & BELL_STATE) == BELL_ASLEEP_FD)) {
        nic_take_over_asleep(nic);
    }
}
/* nic_foresee() fetches, without the lock, what the next poll for requests will look at: for a
 * program that has seen all there was, and comes again. */
static inline void nic_foresee(struct nic *nic)
{
    nic->ops->foresee(nic->fabric);
}
/* nic_poll_all() is nic_poll() until all that had come when it was called has been looked at. */
void nic_poll_all(struct nic *nic);
/* nic_poll() is nic_advance() for a program thread, without the lock; it keeps the
 * NIC thread away, and gives the core away now and then when nothing happens. */
void nic_poll(struct nic *nic);
/* nic_note_poll() notes whether a poll found anything to do. With more pollers than cores,
 * somebody else may have the message: give the core away now and then. */
#define EMPTY_POLLS_YIELD 64 /* polls of nothing before a polling program yields */
static inline void nic_note_poll(struct nic *nic, bool found)
{
    unsigned n = found ? 0 : atomic_load_explicit(&nic->empty_polls, memory_order_relaxed) + 1;
    atomic_store_explicit(&nic->empty_polls, n, memory_order_relaxed);
    if (rare(!found && n % EMPTY_POLLS_YIELD == 0)) {
        place_yield(nic);
    }
}
struct ct_mark;
/* nic_sleep_on_bell() gives the lock up and sleeps until the bell rings, there is news or the time
 * is over (negative: never). */
void nic_sleep_on_bell(struct nic *nic, int64_t timeout_ns, struct ct_mark *mark);

/* ---- wait.c ---- */

/* nic_wait() makes progress until ready(arg), called under the lock, is true, or
 * `timeout_ns` have passed (negative: for ever). Returns whether it was.
 * ni_wait_abort() waits for something of an NI, until PtlAbort() or the NI's end at the most,
 * and gives PTL_OK, PTL_ABORTED, PTL_ARG_INVALID, or `over` when the time is over. The NI
 * may be gone then: of what ready() saw, only what it has kept is good. */
bool nic_wait(struct nic *nic, bool (*ready)(void *arg), void *arg, int64_t timeout_ns);
/* What a thread that waits with a time-out tells handlers_go_on() (handler_run.c). */
struct handler_time {
    int64_t end;      /* of the call with a time-out that this thread is in; 0: it is in none */
    bool begun, over; /* it has run a handler; the time is over, so that it runs no other one */
};
extern __thread struct handler_time handler_time __attribute__((tls_model("initial-exec")));
int ni_wait_abort(struct ni *ni, bool (*ready)(void *arg), void *arg, int64_t timeout_ns, int over);
/* ni_wait_mark() is the same without time limit for a thread that waits for one counter to
 * get somewhere: counts that do not get it there leave it asleep. */
struct ct_mark {
    struct list link; /* of nic->counting, while it sleeps */
    const struct ct *ct;
    uint64_t success; /* or any failure */
};
int ni_wait_mark(struct ni *ni, bool (*ready)(void *arg), void *arg, struct ct_mark *mark);
/* ni_end_waits() tells all program threads that wait for something of an NI to leave it. */
void ni_end_waits(struct ni *ni);
/* nic_linger() is nic_wait() for closing: PINWHEEL_LINGER_MS at most, all calls since
 * linger_end was 0 together, for things that nobody announces. */
bool nic_linger(struct nic *nic, bool (*ready)(void *arg), void *arg);

/* ---- peer.c ---- */

struct nic_peer *peer_get(struct nic *nic, uint32_t nid, uint32_t pid);
/* peer_resolve() finds the peer of a target in the terms of an NI, or NULL. The
 * one of a physical target that was found last is remembered: peer_met() finds it if a fabric
 * has it. */
struct nic_peer *peer_look_up(struct ni *ni, ptl_process_t target);
static inline struct nic_peer *peer_met(struct ni *ni, ptl_process_t target)
{
    struct nic_peer *p;
    if (ni_is_logical(ni)) {
        p = target.rank < ni->map_size ? ni->map_peers[target.rank] : NULL;
    } else {
        p = ni->nic->last_peer;
        p = p != NULL && p->nid == target.phys.nid && p->pid == target.phys.pid ? p : NULL;
    }
    return usual(p != NULL && p->fabric != NULL) ? p : NULL;
}
static inline struct nic_peer *peer_resolve(struct ni *ni, ptl_process_t target)
{
    struct nic_peer *p = peer_met(ni, target);
    return usual(p != NULL) ? p : peer_look_up(ni, target);
}
/* peers_advance() sends what waits; peers_deadline() is when it must be called
 * next, or -1. */
bool peers_advance_busy(struct nic *nic);
static inline bool peers_advance(struct nic *nic)
{
    return rare(!list_empty(&nic->busy)) && peers_advance_busy(nic);
}
int64_t peers_deadline(struct nic *nic);
void peers_free(struct nic *nic);
/* nic_upcalls are what the NIC does for a fabric; nic_upcalls_staged the same without fast paths.
 */
extern const struct fabric_upcalls nic_upcalls, nic_upcalls_staged;

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
 * the event queue and the counter that its answer would go to: ack_sound(), request_fits() and
 * target_sound(). */
static inline bool ack_sound(ptl_ack_req_t ack, struct eq_ref eq, struct ct_ref ct)
{
    return ack <= PTL_OC_ACK_REQ && (ack != PTL_ACK_REQ || eq.eq != NULL) &&
           (ack != PTL_CT_ACK_REQ || ct.ct != NULL);
}
static inline bool request_fits(const struct ni *ni, const struct request *r)
{
    /* Atomics have limits of their own. */
    bool short_enough = r->length <= ni->limits.max_msg_size || r->kind > OP_GET;
    return short_enough && r->pt_index <= UINT16_MAX;
}
static inline bool request_sound(const struct ni *ni, const struct request *r, struct eq_ref eq,
                                 struct ct_ref ct)
{
    return ack_sound(r->ack, eq, ct) && request_fits(ni, r) && target_sound(ni, r->target);
}
/* Whether a response is due. */
static inline bool request_expects(const struct request *r)
{
    return request_fetches(r) || r->ack != PTL_NO_ACK_REQ;
}
/* request_atomic_sound() makes those that atomics have besides. */
static inline bool request_atomic_sound(const struct ni *ni, const struct request *r, bool swap)
{
    bool fetch = r->kind == OP_FETCH;
    enum atomic_call call = swap ? ATOMIC_SWAP : fetch ? ATOMIC_FETCH : ATOMIC_PLAIN;
    return atomic_is_legal(call, r->op, r->datatype) &&
           atomic_fits(r->length, r->op, r->datatype) &&
           r->length <= (fetch ? ni->limits.max_fetch_atomic_size : ni->limits.max_atomic_size);
}
/* Options that say what SEND does. A handler's request has no MD: it gets the ACK it asked for,
 * and SEND only when its message was lost. */
static inline unsigned request_send_options(const struct request *r)
{
    return r->md != NULL ? r->md->options : PTL_MD_EVENT_SUCCESS_DISABLE;
}
/* Nobody wants to know when the data of a successful request have left. */
static inline bool md_is_silent(const struct md *md)
{
    return (md->options & PTL_MD_EVENT_CT_SEND) == 0 &&
           ((md->options & (PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_SEND_DISABLE)) != 0 ||
            md->eq.eq == NULL);
}
static inline bool request_is_silent(const struct request *r)
{
    return r->md == NULL || md_is_silent(r->md);
}
/* request_operand_size() is what leads the payload of a swap. */
size_t request_operand_size(const struct request *r);
struct message;
/* request_message() fills the header of its message. */
void request_message(const struct ni *ni, const struct request *r, uint32_t cookie,
                     struct message *m);
/* request_event() posts an event of a request, made where it is posted: a copy would have to wait
 * for the stores of the original. */
static inline __attribute__((always_inline)) void
request_event(struct eq *eq, ptl_event_kind_t type, const struct request *r, ptl_ni_fail_t fail,
              uint64_t mlength, uint64_t remote_offset, ptl_list_t list)
{
    ptl_event_t *event = eq_place(eq);
    *event =
        (ptl_event_t){.user_ptr = r->user_ptr, .mlength = mlength, .remote_offset = remote_offset};
    eq_kinds(event, type, list, fail, 0, 0);
    eq_placed(eq);
}
/* request_left() posts and counts SEND. */
void request_left(const struct request *r, ptl_ni_fail_t fail);
/* nic_request() starts an operation; lock held. The request is copied. Gives
 * PTL_OK, or PTL_NO_SPACE when no place for it is left; `owned` then is the
 * caller's still. */
int nic_request(struct ni *ni, const struct request *request);
/* nic_request_now() starts an operation only if it can be over when the call
 * returns: its buffer is the caller's at once. True if it did. */
bool nic_request_now(struct ni *ni, const struct request *request);
/* nic_has_place() is true while the queue of that origin has room. */
static inline bool nic_has_place(const struct nic *nic, enum op_origin origin)
{
    const int64_t *limit = nic->process->options.number;
    switch (origin) {
    case FROM_PROGRAM:
        return nic->queued_program < (unsigned)limit[OPT_SEND_QUEUE];
    case FROM_HANDLER:
        return nic->queued_handler < (unsigned)limit[OPT_HANDLER_QUEUE];
    default:
        return true; /* its place is the one it had while it waited for its counter */
    }
}
/* op_send() tries to hand an op to the fabric; false if there is no room. */
bool op_send(struct op *op);
/* op_left() notes that the buffer is free. */
void op_left(struct op *op, ptl_ni_fail_t fail);

/* ---- answer.c ---- */

/* request_answered() posts and counts ACK or REPLY. */
void request_answered(const struct request *r, ptl_ni_fail_t fail, uint64_t mlength,
                      uint64_t remote_offset, ptl_list_t list);
/* op_response() ends the op that a response is for. */
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

/* ---- trigger.c ---- */

/* trigger_new() is a triggered operation of an NI, of which nothing else is set; or NULL. */
struct triggered *trigger_new(struct ni *ni);
/* trigger_arm() queues `t` on a counter, or fires it when that is reached. */
void trigger_arm(struct ct *ct, struct triggered *t);
/* trigger_check() moves what a counter has reached to the fired list. */
void trigger_check(struct ct *ct);
/* trigger_run() carries out what has fired; true if anything had. */
void trigger_run_fired(struct nic *nic);
static inline bool trigger_run(struct nic *nic)
{
    if (usual(list_empty(&nic->fired))) {
        return false;
    }
    trigger_run_fired(nic);
    return true;
}

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
/* ct_changed() has follow what a change is to set off: ct_tell() tells who sleeps. */
void ct_tell(struct ct *ct);
static inline void ct_changed(struct ct *ct)
{
    if (rare(ct->ni->nic->waiters != 0)) {
        ct_tell(ct);
    }
    if (!list_empty(&ct->triggers)) {
        trigger_check(ct);
    }
}
static inline void ct_step(_Atomic uint64_t *value, uint64_t increment)
{
    uint64_t before = atomic_load_explicit(value, memory_order_relaxed);
    atomic_store_explicit(value, before + increment, memory_order_release);
}
/* ct_add_success() is ct_add() without failures, inline. */
static inline void ct_add_success(struct ct_ref ref, uint64_t increment)
{
    if (ct_ref_alive(ref)) {
        ct_step(&ref.ct->success, increment);
        ct_changed(ref.ct);
    }
}

/* ---- rx.c, plain.c, receive.c, deliver.c ---- */

struct rx;
struct fabric_rx *rx_new(struct nic_peer *peer, enum fabric_class class);
void rx_free(struct nic_peer *peer, struct fabric_rx *rx);
enum rx_step rx_short(struct nic_peer *peer, struct fabric_rx *rx, const void *payload);
/* plain_short() (plain.c) is the same; it ends most messages in fewer steps. */
enum rx_step plain_short(struct nic_peer *peer, struct fabric_rx *rx, const void *payload);
/* staged_short() sends every message through the stages, which begin with rx_header(). */
enum rx_step staged_short(struct nic_peer *peer, struct fabric_rx *rx, const void *payload);
enum rx_step rx_header(struct nic_peer *peer, struct fabric_rx *rx);
enum rx_step rx_packet(struct nic_peer *peer, struct fabric_rx *rx, void *data, uint64_t offset,
                       size_t length);
enum rx_step rx_done(struct nic_peer *peer, struct fabric_rx *rx, enum fabric_status status);
/* acks_advance() sends the acks that were gathered while messages were taken, but
 * leaves those for which there is no room. */
void acks_advance_all(struct nic *nic);
static inline void acks_advance(struct nic *nic)
{
    if (rare(!list_empty(&nic->acks_due))) {
        acks_advance_all(nic);
    }
}
/* rx_reply_sent() notes that the last byte of a get's data has left. */
void rx_reply_sent(struct fabric_tx *tx, enum fabric_status status);

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
/* hpu_memory_forget() unmaps what is kept for the next ones. */
void hpu_memory_forget(struct nic *nic);

/* ---- invoke.c ---- */

/* invoke() has the handlers of an entry run on a copy of `length` bytes, or on none as a tick of a
 * timer; lock held. Gives a PTL_ code. */
struct timer;
struct invoke_what {
    const void *data;
    uint64_t length;
    uint64_t hdr_data;
    struct timer *timer;
};
int invoke(struct le *le, const struct invoke_what *what);
/* invoke_advance() goes on with what was invoked; true if anything moved. invoke_waits() is
 * true while somebody must do so without being told. */
bool invoke_advance_all(struct nic *nic);
static inline bool invoke_advance(struct nic *nic)
{
    return rare(!list_empty(&nic->invoked)) && invoke_advance_all(nic);
}
bool invoke_waits(const struct nic *nic);
/* invoke_stir() says that a handler of one that waits has ended. */
struct rx;
void invoke_stir(struct rx *rx);
/* detach_peer_down() forgets a peer, whose messages that have left its channel go on (detach.c). */
void detach_peer_down(struct nic_peer *peer);
/* invoke_any() asks each message of an NI that is in no channel; true if any says so. */
bool invoke_any(struct ni *ni, bool (*ask)(struct rx *rx));
/* invoke_cut() gives up what refers to an NI that is being closed. */
void invoke_cut(struct ni *ni);
/* invoke_free() forgets the rest, when no NI is left. */
void invoke_free(struct nic *nic);
/* rx_adopt() takes an entry for a message that has not come through a fabric. */
void rx_adopt(struct rx *rx, struct le *le);

/* ---- timer.c ---- */

/* timers_end() forgets the timers of an NI, timers_end_entry() those of an entry; ticks that have
 * begun go on. timers_advance() lets begin what is due; true if anything was. */
void timers_end(struct ni *ni);
void timers_end_entry(struct le *le);
bool timers_advance(struct nic *nic);

#endif
