/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers: a message at an entry that has some (sPIN, section 3.2).
 *
 *   header handler ─ PROCESS_DATA ─► payload handlers, or a deposit without user header
 *        │         ─ PROCEED ──────► deposit of all, no further handler
 *        │         ─ DROP ─────────► nothing is kept
 *        └─ error: nothing is kept, no further handler      then: completion handler
 *
 * Wire packets are cut by message offset, handlers' packets by offset behind the
 * user header; where the two differ, or a packet does not begin at a multiple
 * of 64 in memory, it is put together in a bounce buffer. The NIC's lock is
 * dropped while a handler runs; the channel is busy meanwhile, so no other
 * thread touches this message.
 */
#include "nic/rx.h"

#include "base/nic_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_ALIGN 64

/* ---- what handlers send ---- */

static int request_put(struct handler_run *run, const struct hpu_put *put, struct request *r)
{
    struct le *le = run->le;
    struct ni *ni = le->ni;
    uint32_t pt = put->pt_inherited ? le->pt_index : put->pt_index;
    *r = (struct request){
        .kind = OP_PUT,
        .origin = FROM_HANDLER,
        .memory = {put->from_host ? memory_at(le->start, put->host_offset) : (void *)put->local,
                   NULL, 0},
        .length = put->length,
        .ack = put->ack,
        .target = put->target,
        .pt_index = pt,
        .match_bits = put->match_bits,
        .remote_offset = put->remote_offset,
        .hdr_data = put->hdr_data,
        .user_ptr = put->user_ptr,
        .eq = ni->pts[le->pt_index].eq,
    };
    return request_sound(ni, r, r->eq, le->ct) ? PTL_OK : PTL_ARG_INVALID;
}

/* Device memory is the handler's again when the call returns: what cannot leave
 * at once is copied. */
static int own_data(struct request *r)
{
    r->owned = malloc(r->length != 0 ? r->length : 1);
    if (r->owned == NULL) {
        return PTL_NO_SPACE;
    }
    if (memory_read(r->owned, &r->memory, r->length) != 0) {
        free(r->owned);
        return -EFAULT;
    }
    r->memory = (struct memory){r->owned, NULL, 0};
    return PTL_OK;
}

/* Looks at one byte of each page. A handler that names memory it does not have ends
 * before anything is sent. */
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

/* Sends, now or later; the lock is held. */
static int send_put(struct ni *ni, const struct hpu_put *put, struct request *r)
{
    if (!put->from_host && !readable(r->memory.base, r->length)) {
        return -EFAULT;
    }
    if (!put->from_host && nic_request_now(ni, r)) {
        return PTL_OK;
    }
    int rc = put->from_host ? PTL_OK : own_data(r);
    if (rc != PTL_OK) {
        return rc;
    }
    rc = nic_request(ni, r);
    if (rc != PTL_OK) {
        free(r->owned);
    }
    return rc;
}

/* Runs on the handler's context, without the lock. A full queue suspends the
 * handler, and with it the channel of its message. */
static int handler_put(struct hpu_env *env, const struct hpu_put *put)
{
    struct handler_run *run = env->owner;
    struct nic *nic = run->nic;
    struct request r;
    int64_t patience = nic->process->options.number[OPT_HPU_PATIENCE_MS] * 1000000;
    nic_lock(nic);
    int64_t since = nic->now();
    while (!nic_has_place(nic, FROM_HANDLER)) {
        bool patient = nic->now() - since < patience;
        nic_unlock(nic);
        if (!patient) {
            return PTL_NO_SPACE;
        }
        hpu_suspend(env);
        nic_lock(nic);
    }
    int rc = request_put(run, put, &r);
    if (rc == PTL_OK) {
        rc = send_put(run->le->ni, put, &r);
    }
    nic_unlock(nic);
    return rc;
}

static const struct hpu_ops handler_ops = {.put = handler_put};

/* ---- running them ---- */

/* Lets go of the lock while user code runs. */
static void leave(struct nic *nic)
{
    nic->unlocked++;
    nic_unlock(nic);
}

static void enter(struct nic *nic)
{
    nic_lock(nic);
    nic->unlocked--;
}

/* Goes on with the handler call that is set up. HPU_WAIT: it is to be gone on with later,
 * if only because no context was free. */
static int go_on(struct handler_run *run)
{
    run->active = true;
    if (!hpu_exec_take(&run->exec)) {
        return HPU_WAIT;
    }
    leave(run->nic);
    int code = hpu_exec_run(&run->exec);
    enter(run->nic);
    if (code != HPU_WAIT) {
        hpu_exec_give(&run->exec);
        run->active = false;
    }
    return code;
}

static bool start_run(struct rx *rx)
{
    struct nic *nic = rx->peer->nic;
    struct handlers *h = rx->le->handlers;
    if (rx->run == NULL) {
        rx->run = calloc(1, sizeof(*rx->run));
        uint8_t *bounce = aligned_alloc(PACKET_ALIGN, nic->packet_size);
        if (rx->run == NULL || bounce == NULL) {
            free(rx->run);
            free(bounce);
            rx->run = NULL; /* the next message tries again */
            return false;
        }
        rx->run->bounce = bounce;
    }
    /* Field by field: most of the struct is what a handler call leaves behind, and
     * clearing all of it would cost as much as the call. */
    struct handler_run *run = rx->run;
    run->nic = nic;
    run->le = rx->le;
    run->user_header = h->user_header < rx->m->length ? h->user_header : rx->m->length;
    run->deposit = h->payload == NULL;
    run->active = run->pending = run->finished = false;
    run->header_done = run->completion_done = false;
    run->fail = PTL_NI_OK;
    run->kept = run->dropped = run->emitted = 0;
    run->filled = run->consumed = 0;
    run->exec.ctx = NULL;
    run->exec.wait = HPU_WAIT_NONE;
    struct hpu_env *env = &run->exec.env;
    env->me_base = rx->le->start;
    env->me_length = rx->le->length;
    env->host_base = h->host_base;
    env->host_length = h->host_length;
    env->state = h->memory->mem->base;
    env->state_length = h->memory->mem->length;
    env->max_payload = nic->packet_size;
    env->ops = &handler_ops;
    env->owner = run;
    return true;
}

void handlers_cancel(struct rx *rx)
{
    if (rx->run != NULL && rx->run->active) {
        hpu_exec_cancel(&rx->run->exec);
        rx->run->active = false;
    }
}

void handlers_free(struct rx *rx)
{
    if (rx->run != NULL) {
        handlers_cancel(rx);
        free(rx->run->bounce);
        free(rx->run);
    }
}

/* Notes the first error of the message; what follows of it is not looked at. */
static void note_error(struct rx *rx, int code)
{
    if (rx->run->fail == PTL_NI_OK) {
        rx->run->fail = code == SEGV ? PTL_NI_HANDLER_SEGV : PTL_NI_HANDLER_FAIL;
    }
}

void handlers_torn(struct rx *rx, ptl_ni_fail_t fail)
{
    if (rx->run->fail == PTL_NI_OK && !rx->run->completion_done) {
        rx->run->fail = fail;
        rx->run->dropped = rx->m->length - rx->run->user_header - rx->run->kept;
    }
}

static void discard(struct rx *rx)
{
    rx->f.sink = RX_DISCARD;
    rx->run->dropped = rx->m->length - rx->run->user_header;
}

static void deposit_all(struct rx *rx)
{
    if (rx->m->type == MESSAGE_PUT) {
        rx->f.sink = RX_DEPOSIT;
        rx->f.base = memory_at(rx->le->start, rx->offset);
        rx->f.vector = NULL; /* such entries are never in parts */
        rx->f.room = rx->mlength;
    }
}

static void header_result(struct rx *rx, int code)
{
    struct handler_run *run = rx->run;
    run->header_done = true;
    run->pending = code == DROP_PENDING || code == PROCESS_DATA_PENDING || code == PROCEED_PENDING;
    switch (code) {
    case PROCESS_DATA:
    case PROCESS_DATA_PENDING:
        rx->f.sink = rx->m->type == MESSAGE_PUT ? RX_PACKETS : RX_DISCARD;
        break;
    case PROCEED:
    case PROCEED_PENDING:
        run->finished = true;
        deposit_all(rx);
        break;
    case DROP:
    case DROP_PENDING:
        discard(rx);
        break;
    default:
        note_error(rx, code);
        run->finished = true;
        discard(rx);
    }
}

static void set_up_header(struct rx *rx)
{
    struct handler_run *run = rx->run;
    const struct ni *ni = rx->ni;
    ptl_header_t *header = hpu_exec_header_of(&run->exec);
    header->type = rx->m->type == MESSAGE_GET ? PTL_REQUEST_GET : PTL_REQUEST_PUT;
    header->length = rx->m->length;
    header->source_id = rx->initiator;
    header->match_bits = rx->m->match_bits;
    header->offset = rx->offset;
    header->hdr_data = rx->m->hdr_data;
    header->user_hdr = run->user_header != 0 ? rx->f.first : NULL;
    header->user_hdr_length = run->user_header;
    if (ni_is_logical(ni)) {
        header->target_id.rank = ni->rank;
    } else {
        header->target_id.phys.nid = ni->nic->nid;
        header->target_id.phys.pid = ni->nic->pid;
    }
    hpu_exec_header(ni->nic->hpus, &run->exec, rx->le->handlers->header, header);
}

enum rx_step handlers_header(struct rx *rx)
{
    if (rx->run == NULL || (!rx->run->active && !rx->header_begun)) {
        if (!start_run(rx)) {
            rx->fail = PTL_NI_DROPPED;
            return RX_GO;
        }
        rx->header_begun = true;
    }
    struct handler_run *run = rx->run;
    if (rx->m->type == MESSAGE_GET) {
        run->user_header = 0;
    }
    if (rx->le->handlers->header == NULL) {
        header_result(rx, PROCESS_DATA);
        return RX_GO;
    }
    if (run->user_header != 0 && rx->f.first == NULL) {
        return RX_FIRST;
    }
    if (!run->active) {
        set_up_header(rx);
    }
    int code = go_on(run);
    if (code == HPU_WAIT) {
        return RX_WAIT;
    }
    header_result(rx, code);
    return RX_GO;
}

static void payload_result(struct rx *rx, int code)
{
    struct handler_run *run = rx->run;
    run->emitted += run->packet_length;
    if (code == SUCCESS) {
        run->kept += run->packet_length;
        return;
    }
    run->dropped += run->packet_length;
    if (code != DROP) {
        note_error(rx, code);
        run->dropped = rx->m->length - run->user_header - run->kept;
        rx->f.sink = RX_DISCARD;
    }
}

static void set_up_payload(struct rx *rx)
{
    struct handler_run *run = rx->run;
    ptl_payload_t payload = {
        .length = run->packet_length,
        .offset = run->emitted,
        .base = (uint8_t *)run->packet,
    };
    hpu_exec_payload(run->nic->hpus, &run->exec, rx->le->handlers->payload, &payload);
}

/* Takes from the wire packet what makes the next packet for the handlers; true
 * when that is complete. */
static bool next_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length)
{
    struct handler_run *run = rx->run;
    size_t packet = run->nic->packet_size;
    uint8_t *at = data + run->consumed;
    size_t left = length - run->consumed;
    if (offset + run->consumed < run->user_header) {
        size_t skip = run->user_header - (offset + run->consumed);
        skip = skip < left ? skip : left;
        run->consumed += skip;
        return false;
    }
    bool last = offset + length == rx->m->length;
    bool whole = run->filled == 0 && (uintptr_t)at % PACKET_ALIGN == 0 &&
                 (run->user_header % PACKET_ALIGN == 0 || (last && left <= packet));
    if (whole) {
        run->packet = at;
        run->packet_length = left;
        run->consumed += left;
        return true;
    }
    size_t n = packet - run->filled < left ? packet - run->filled : left;
    memcpy(run->bounce + run->filled, at, n);
    run->filled += n;
    run->consumed += n;
    if (run->filled < packet && !(last && run->consumed == length)) {
        return false;
    }
    run->packet = run->bounce;
    run->packet_length = run->filled;
    run->filled = 0;
    return true;
}

/* A message with handlers but no payload handler: its payload goes to the
 * entry, the user header left out. */
static void deposit_packet(struct rx *rx, const uint8_t *data, uint64_t offset, size_t length)
{
    struct handler_run *run = rx->run;
    uint64_t skip = offset < run->user_header ? run->user_header - offset : 0;
    if (skip >= length) {
        return;
    }
    uint64_t to = offset + skip - run->user_header;
    uint64_t n = length - skip;
    uint64_t room = to < rx->mlength ? rx->mlength - to : 0;
    n = n < room ? n : room;
    if (nic_copy(memory_at(rx->le->start, rx->offset + to), data + skip, n) != 0) {
        run->fail = PTL_NI_SEGV;
        rx->f.sink = RX_DISCARD;
    }
    run->kept += n;
}

enum rx_step handlers_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length)
{
    struct handler_run *run = rx->run;
    if (run->deposit) {
        deposit_packet(rx, data, offset, length);
        return RX_GO;
    }
    while (run->active || (run->consumed < length && rx->f.sink == RX_PACKETS)) {
        if (!run->active) {
            if (!next_packet(rx, data, offset, length)) {
                continue;
            }
            set_up_payload(rx);
        }
        int code = go_on(run);
        if (code == HPU_WAIT) {
            return RX_WAIT;
        }
        payload_result(rx, code);
    }
    run->consumed = 0;
    return RX_GO;
}

static void set_up_completion(struct rx *rx)
{
    struct handler_run *run = rx->run;
    hpu_exec_completion(run->nic->hpus, &run->exec, rx->le->handlers->completion, run->dropped,
                        false);
}

/* What the handlers leave of the message, as the event will say. */
static void conclude(struct rx *rx)
{
    struct handler_run *run = rx->run;
    bool proceeded = run->finished && run->fail == PTL_NI_OK;
    if (rx->m->type == MESSAGE_PUT && !proceeded) {
        rx->mlength = run->kept;
    }
    if (run->fail != PTL_NI_OK) {
        rx->fail = run->fail;
    } else if (rx->m->type == MESSAGE_GET && run->dropped != 0) {
        rx->fail = PTL_NI_DROPPED;
    }
    if (rx->m->type == MESSAGE_GET && rx->fail != PTL_NI_OK) {
        rx->mlength = 0; /* nothing is sent back */
    }
}

enum rx_step handlers_completion(struct rx *rx)
{
    struct handler_run *run = rx->run;
    if (run->completion_done) {
        return RX_GO;
    }
    if (!run->finished && rx->le->handlers->completion != NULL) {
        if (!run->active) {
            set_up_completion(rx);
        }
        int code = go_on(run);
        if (code == HPU_WAIT) {
            return RX_WAIT;
        }
        if (code == SUCCESS_PENDING) {
            run->pending = true;
        } else if (code != SUCCESS) {
            note_error(rx, code);
        }
    }
    run->completion_done = true;
    conclude(rx);
    return RX_GO;
}
