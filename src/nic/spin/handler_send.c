/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How handlers send messages, count, and ask about their message.
 *
 *   from the entry's memory   queued, as if the host had sent it: the operation is a user of the
 *                             entry until it ends, and tells its event queue and counter
 *   from the handler's own    copied, unless it leaves at once; if data come back, the handler is
 *                             suspended, and waits for a struct answer:
 *
 *      handler ──► struct answer ◄── struct op            the last of its two users frees it, so
 *                      ▲ its data: the reply goes there    a handler may be cancelled, and an
 *                      └─ copied by the handler, resumed   operation end, in any order
 */
#include "nic/spin/handler_send.h"

#include "base/nic_copy.h"
#include "nic/ask.h"
#include "nic/entry.h"
#include "nic/initiate.h"
#include "nic/peer.h"
#include "nic/progress.h"
#include "nic/spin/handlers.h"

#include <errno.h>
#include <stdlib.h>

/* how long a handler that may wait retries, before its data are copied into a queue */
#define ROOM_NS 200000

struct answer {
    unsigned users; /* the handler and the operation, while they use it */
    struct op *op;  /* the ask, valid until `done` */
    bool done;
    ptl_ni_fail_t fail;
    uint64_t mlength;
    uint8_t data[];
};

/* ---- Answers ---- */

static void drop_answer(struct answer *a)
{
    if (a != NULL && --a->users == 0) {
        free(a);
    }
}

void handler_request_begin(const struct request *r)
{
    if (r->le != NULL) {
        r->le->users++;
    }
    if (r->answer != NULL) {
        r->answer->users++;
    }
}

void handler_request_end(struct request *r, bool closed)
{
    if (r->le != NULL && !closed) {
        le_release(r->le);
    }
    if (r->answer != NULL && !r->answer->done) {
        r->answer->done = true; /* the operation ends without an answer */
        r->answer->fail = PTL_NI_UNDELIVERABLE;
    }
    drop_answer(r->answer);
    r->le = NULL;
    r->answer = NULL;
}

bool handler_request_answered(const struct request *r, ptl_ni_fail_t fail, uint64_t mlength)
{
    if (r->answer != NULL) {
        r->answer->done = true;
        r->answer->fail = fail;
        r->answer->mlength = mlength;
        return false;
    }
    if (!request_fetches(r)) {
        if (r->ack >= PTL_CT_ACK_REQ) {
            ct_count(r->ct, fail, false, 0);
        }
        return r->ack == PTL_ACK_REQ;
    }
    /* At the entry, the data that its handler has fetched count as a message that has come. */
    le_count(r->le, PTL_ME_EVENT_CT_COMM, fail, mlength);
    return le_wants_event(r->le, PTL_ME_EVENT_COMM_DISABLE, fail);
}

/* ---- Requests ---- */

static const enum op_kind kinds[] = {
    [HPU_PUT] = OP_PUT, [HPU_GET] = OP_GET, [HPU_ATOMIC] = OP_ATOMIC, [HPU_FETCH] = OP_FETCH};

/* Sets where the data that come back go: to the entry, or into a struct answer, from which the
 * handler copies them. */
static int receive_at(struct request *r, const struct hpu_message *m, const struct le *le)
{
    struct memory *to = r->kind == OP_GET ? &r->memory : &r->get_memory;
    if (m->from_host) {
        *to = le_memory(le, m->before_offset);
        return PTL_OK;
    }
    r->answer = malloc(sizeof(*r->answer) + m->length);
    if (r->answer == NULL) {
        return PTL_NO_SPACE;
    }
    *r->answer = (struct answer){.users = 1};
    *to = (struct memory){r->answer->data, NULL, 0};
    r->eq = (struct eq_ref){NULL, 0}; /* no event: the handler itself gets the result */
    return PTL_OK;
}

static int read_operand(struct request *r, const struct hpu_message *m)
{
    size_t size = request_operand_size(r);
    return size != 0 && nic_copy(r->operand, m->operand, size) != 0 ? -EFAULT : PTL_OK;
}

static bool is_sound(const struct ni *ni, const struct request *r, const struct hpu_message *m)
{
    if (!ack_sound(r->ack, r->eq, r->ct) || !request_fits(ni, r) || !target_sound(ni, r->target)) {
        return false;
    }
    bool atomic = m->kind == HPU_ATOMIC || m->kind == HPU_FETCH;
    return !atomic || request_atomic_sound(ni, r, m->swap);
}

static int make_request(struct handler_run *run, const struct hpu_message *m, struct request *r)
{
    struct le *le = run->le;
    struct ni *ni = le->ni;
    *r = (struct request){
        .kind = kinds[m->kind],
        .origin = FROM_HANDLER,
        .op = m->op,
        .datatype = m->datatype,
        .length = m->length,
        .ack = m->ack,
        .target = m->target,
        .pt_index = m->pt_inherited ? le->pt_index : m->pt_index,
        .context = le->slot.handle,
        .match_bits = m->match_bits,
        .remote_offset = m->remote_offset,
        .hdr_data = m->hdr_data,
        .user_ptr = m->user_ptr,
        .eq = ni->pts[le->pt_index].eq,
        .ct = le->ct,
        .le = m->from_host ? le : NULL,
    };
    if (!is_sound(ni, r, m)) {
        return PTL_ARG_INVALID;
    }
    if (request_sends(r)) {
        r->memory = m->from_host ? le_memory(le, m->host_offset)
                                 : (struct memory){(void *)m->local, NULL, 0};
    }
    int rc = read_operand(r, m);
    return rc == PTL_OK && request_fetches(r) ? receive_at(r, m, le) : rc;
}

/* ---- Sending ---- */

/* Whether a handler may read all of its data: it reads one byte of each page. So a handler that
 * names memory which it does not have is ended before anything is sent. */
static bool readable(const void *base, uint64_t length)
{
    enum { PAGE = 4096 };
    uint64_t done = 0;
    char byte;
    while (done < length) {
        const char *at = (const char *)base + done;
        if (nic_copy(&byte, at, 1) != 0) {
            return false;
        }
        done += PAGE - (uintptr_t)at % PAGE;
    }
    return true;
}

/* Suspends the handler, and releases the lock meanwhile. */
static void rest(struct hpu_env *env, struct nic *nic)
{
    nic_unlock(nic);
    hpu_suspend(env);
    nic_lock(nic);
}

/* Suspends the handler once more; false: it has waited for PINWHEEL_HPU_PATIENCE_MS. */
static bool be_patient(struct hpu_env *env, struct nic *nic, int64_t since)
{
    int64_t patience = nic->process->options.number[OPT_HPU_PATIENCE_MS] * 1000000;
    if (nic->now() - since >= patience) {
        return false;
    }
    rest(env, nic);
    return true;
}

/* Whether the peer can be expected to take messages soon, though its ring is full now. */
static bool takes(struct ni *ni, const struct request *r)
{
    const struct nic_peer *peer = peer_resolve(ni, r->target);
    return peer != NULL && peer->fabric != NULL && list_empty(&peer->waiting);
}

/* Sends from the handler's memory without a copy. It is faster to hold up a stream of packets for a
 * moment, and with it the sender, than to copy the packets into a queue. False: the caller has to
 * copy the data, as always where time is virtual and a copy takes none. */
static bool send_from_there(struct hpu_env *env, struct ni *ni, const struct request *r, bool waits)
{
    struct nic *nic = ni->nic;
    int64_t since = 0;
    if (nic->time != NULL) {
        return false;
    }
    while (!nic_request_now(ni, r)) {
        int64_t now = nic->now();
        since = since == 0 ? now : since;
        if (!waits || !takes(ni, r) || request_expects(r) || now - since >= ROOM_NS) {
            return false;
        }
        rest(env, nic);
    }
    return true;
}

/* Whether a simulated NIC's egress queue has a place for a message from the handler's memory. */
static bool has_egress(const struct nic *nic, const struct request *r)
{
    return nic->time == NULL || r->le != NULL || nic->time->room(nic->fabric);
}

/* Waits for a place in the queue of handlers' messages (nic/share.h), in case that the request has
 * to wait there. */
static int await_place(struct hpu_env *env, struct ni *ni, const struct request *r, bool waits)
{
    struct handler_run *run = env->owner;
    int64_t since = 0;
    for (;;) {
        const struct nic_peer *peer = peer_resolve(ni, r->target);
        if (peer == NULL) {
            return PTL_NO_SPACE;
        }
        if (request_has_place(peer, r) && has_egress(ni->nic, r)) {
            return PTL_OK;
        }
        since = since == 0 ? ni->nic->now() : since;
        if (!waits || !be_patient(env, ni->nic, since)) {
            run->le->handlers->stats->unsent++;
            return PTL_NO_SPACE;
        }
    }
}

/* Sends a request now, or queues it; the lock is held. A message from the handler's own memory may
 * suspend the handler, unless that said NOWAIT. One from the entry's memory takes up only an
 * operation: it has more places, and never waits for one. */
static int start(struct hpu_env *env, struct ni *ni, struct request *r, const struct hpu_message *m)
{
    bool waits = !m->from_host && !m->nowait, owns = !m->from_host && request_sends(r);
    if (owns && !readable(r->memory.base, r->length)) {
        return -EFAULT;
    }
    if (owns && !request_asks(r) && send_from_there(env, ni, r, waits)) {
        return PTL_OK;
    }
    /* needs no place: the handler has one such ask at a time, and waits for it */
    bool placed = request_asks(r) && !m->from_host;
    int rc = placed ? PTL_OK : await_place(env, ni, r, waits);
    rc = rc == PTL_OK && owns ? request_own(r) : rc;
    if (rc != PTL_OK) {
        return rc;
    }
    struct op *op = NULL;
    rc = request_asks(r) ? nic_ask(ni, r, &op) : nic_request(ni, r);
    if (r->answer != NULL) {
        r->answer->op = op;
    }
    if (rc != PTL_OK) {
        free(r->owned);
    }
    return rc;
}

/* Waits until the answer is there. If none comes in time, withdraws the ask and waits for as long
 * again; the lock is held. */
static void wait_for(struct hpu_env *env, struct nic *nic, struct answer *a)
{
    int64_t since = nic->now();
    bool told = false;
    while (!a->done && be_patient(env, nic, since)) {
    }
    since = nic->now();
    while (!a->done) {
        told = told || ask_withdraw(a->op);
        if (!a->done && !be_patient(env, nic, since)) {
            break;
        }
    }
}

/* Waits for the answer and copies it to the handler; the lock is held. */
static int await(struct hpu_env *env, struct nic *nic, struct answer *a, void *to)
{
    wait_for(env, nic, a);
    if (!a->done) {
        return PTL_FAIL; /* not known whether the target has done the ask, or will */
    }
    if (a->fail != PTL_NI_OK) {
        return a->fail == FAIL_WITHDRAWN ? PTL_ABORTED : PTL_FAIL;
    }
    return nic_copy(to, a->data, a->mlength) == 0 ? PTL_OK : -EFAULT;
}

/* Runs on the handler's context, without the lock. While the handler is suspended, the channel of
 * its message stands still. env->awaited lets handler_forget() drop the answer if the handler is
 * cancelled. */
static int handler_send(struct hpu_env *env, const struct hpu_message *m)
{
    struct handler_run *run = env->owner;
    struct nic *nic = run->nic;
    struct request r;
    nic_lock(nic);
    int rc = make_request(run, m, &r);
    env->awaited = r.answer;
    rc = rc ?: start(env, run->le->ni, &r, m);
    if (rc == PTL_OK && r.answer != NULL) {
        rc = await(env, nic, r.answer, m->before);
    }
    env->awaited = NULL;
    drop_answer(r.answer);
    nic_unlock(nic);
    return rc;
}

static void handler_forget(struct hpu_env *env)
{
    drop_answer(env->awaited);
    env->awaited = NULL;
}

/* ---- Counting ---- */

static int handler_count(struct hpu_env *env, enum hpu_count how, ptl_handle_ct_t handle,
                         ptl_ct_event_t *value)
{
    struct handler_run *run = env->owner;
    struct nic *nic = run->nic;
    nic_lock(nic);
    struct ni *ni = run->le->ni;
    bool named = handle_kind(handle) == HANDLE_CT && handle_ni(handle) == handle_ni(ni->handle);
    struct ct *ct = named ? table_get(&ni->cts, handle) : NULL;
    switch (ct == NULL ? -1 : (int)how) {
    case HPU_COUNT_GET:
        value->success = atomic_load_explicit(&ct->success, memory_order_relaxed);
        value->failure = atomic_load_explicit(&ct->failure, memory_order_relaxed);
        break;
    case HPU_COUNT_SET:
        ct_set(ct, *value);
        break;
    case HPU_COUNT_ADD:
        ct_add((struct ct_ref){ct, handle}, value->success, value->failure);
        break;
    default:
        break;
    }
    trigger_run(nic);
    nic_unlock(nic);
    return ct != NULL ? PTL_OK : PTL_ARG_INVALID;
}

/* ---- What a handler may ask about its message ---- */

/* Gives payload and completion handlers the header of their message. Its user header points into a
 * packet that only the header handler could read, unless a copy is kept. */
static int handler_header(struct hpu_env *env, ptl_header_t *header)
{
    struct handler_run *run = env->owner;
    bool first = container_of(env, struct hpu_exec, env)->call == HPU_CALL_HEADER;
    if (!atomic_load_explicit(&run->described, memory_order_acquire) && !handlers_describe(run)) {
        return PTL_FAIL;
    }
    *header = run->exec.arg.header;
    header->user_hdr = first ? header->user_hdr : run->user_copy;
    return PTL_OK;
}

static void *handler_state(struct hpu_env *env, size_t *length)
{
    const struct handler_run *run = env->owner;
    *length = run->state_length;
    return run->state;
}

const struct hpu_ops handler_ops = {
    .send = handler_send,
    .forget = handler_forget,
    .count = handler_count,
    .operand_size = atomic_operand_size,
    .header = handler_header,
    .state = handler_state,
};
