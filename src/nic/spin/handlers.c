/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers: the stages of a message at an entry with handlers (sPIN, section 3.2).
 *
 *   header handler ─ PROCESS_DATA ─► payload handlers, or a deposit without user header
 *        │         ─ PROCEED ──────► deposit of all, no further handler
 *        │         ─ DROP ─────────► nothing is kept
 *        └─ error: nothing is kept, no further handler      then: completion handler
 *
 * The fabric cuts packets by the offset in the message, handlers get packets cut by the offset
 * behind the user header. Where the two differ, or a packet does not begin at a multiple of 64 in
 * memory, the NIC puts the handlers' packet together in a bounce buffer.
 *
 * An atomic is one packet. With PROCESS_DATA its payload handler, if there is one, takes the
 * place of the operation; the bytes that it leaves in the packet are what a fetch brings back.
 * The operand of a swap leads the payload; handlers see it as the user header.
 *
 * handler_run.c runs the calls that this file sets up; packets.c those of payload handlers, if HPUs
 * are threads.
 */
#include "nic/spin/handlers.h"

#include "nic/apply.h"
#include "nic/entry.h"
#include "nic/progress.h"
#include "nic/pt.h"
#include "nic/spin/blocks.h"
#include "nic/spin/detach.h"
#include "nic/spin/handler_run.h"
#include "nic/spin/packets.h"
#include "nic/spin_calls.h"
#include "nic/timed.h"

#include <stdlib.h>
#include <string.h>

#define TOGETHER_MOST 7   /* packets that one call takes besides its first */
#define CALL_CYCLES 16384 /* processor cycles that a call is to take at the most */

/* Notes the first error of a message; later ones change nothing. */
static void note_error(struct rx *rx, const struct hpu_exec *exec, int code)
{
    if (rx->run->fail == PTL_NI_OK) {
        rx->run->fail = code == SEGV      ? exec->host_fault ? PTL_NI_SEGV : PTL_NI_HANDLER_SEGV
                        : code == TIMEOUT ? PTL_NI_HANDLER_TIMEOUT
                                          : PTL_NI_HANDLER_FAIL;
    }
}

/* Whether the call that is set up waits for room, and has not begun. */
static bool has_no_room(const struct handler_run *run)
{
    return run->nic->sched != NULL ? !run->active
                                   : run->active && run->exec.wait == HPU_WAIT_CONTEXT;
}

static void discard(struct rx *rx)
{
    rx->f.sink = RX_DISCARD;
    rx->run->dropped = rx->run->length - rx->run->user_header;
}

/* Does to the entry what the request asks for, since the header handler said PROCEED. */
static void proceed(struct rx *rx)
{
    if (rx->m->type == MESSAGE_PUT) {
        rx_lend(rx, le_memory(rx->at.le, rx->at.offset), rx->at.mlength);
    } else if (rx_is_atomic(rx) && rx->f.first != NULL) {
        rx_apply(rx, rx->f.first);
    }
}

/* Has payload handlers called for the packets. Without one it does what the request asks for, but
 * leaves out the user header of a put. */
static void process_data(struct rx *rx)
{
    bool put = rx->m->type == MESSAGE_PUT;
    rx->f.sink = RX_DISCARD;
    if (put || (rx_is_atomic(rx) && !rx->run->deposit)) {
        rx->f.sink = RX_PACKETS;
    } else {
        proceed(rx);
    }
}

static void header_result(struct rx *rx, int code)
{
    struct handler_run *run = rx->run;
    run->header_done = true;
    run->stalled = 0;
    run->pending =
        rx->tick || code == DROP_PENDING || code == PROCESS_DATA_PENDING || code == PROCEED_PENDING;
    switch (code) {
    case PROCESS_DATA:
    case PROCESS_DATA_PENDING:
        process_data(rx);
        break;
    case PROCEED:
    case PROCEED_PENDING:
        run->finished = true;
        proceed(rx);
        break;
    case DROP:
    case DROP_PENDING:
        discard(rx);
        break;
    default:
        note_error(rx, &run->exec, code);
        run->finished = true;
        discard(rx);
    }
}

static ptl_request_type_t request_type(const struct rx *rx)
{
    const struct message *m = rx->m;
    static const ptl_request_type_t types[] = {
        [MESSAGE_PUT] = PTL_REQUEST_PUT,
        [MESSAGE_GET] = PTL_REQUEST_GET,
        [MESSAGE_ATOMIC] = PTL_REQUEST_ATOMIC,
        [MESSAGE_FETCH] = PTL_REQUEST_FETCH_ATOMIC,
    };
    if (rx->tick) {
        return PTL_REQUEST_TIMER;
    }
    return m->type == MESSAGE_FETCH && m->op >= PTL_SWAP ? PTL_REQUEST_SWAP : types[m->type];
}

/* Whether the header handler must not run before the first packet is here. */
static bool needs_first(const struct rx *rx)
{
    const struct handlers *h = rx->at.le->handlers;
    return rx_is_atomic(rx) ? rx->run->length != 0 : rx->run->user_header != 0 && h->header != NULL;
}

/* Fills in the header that handlers see. */
static inline ptl_header_t *describe(struct rx *rx)
{
    struct handler_run *run = rx->run;
    const struct ni *ni = rx->at.ni;
    ptl_header_t *header = hpu_exec_header_of(&run->exec);
    header->type = request_type(rx);
    header->length = run->length;
    header->source_id = rx->at.initiator;
    header->match_bits = rx->m->match_bits;
    header->offset = rx->at.offset;
    header->hdr_data = rx->m->hdr_data;
    header->user_hdr = run->user_header != 0 ? rx->f.first : NULL;
    header->user_hdr_length = run->user_header;
    if (ni_is_logical(ni)) {
        header->target_id.rank = ni->rank;
    } else {
        header->target_id.phys.nid = ni->nic->nid;
        header->target_id.phys.pid = ni->nic->pid;
    }
    atomic_store_explicit(&run->described, true, memory_order_release);
    return header;
}

static void set_up_header(struct rx *rx)
{
    hpu_exec_header(rx->run->nic->hpus, &rx->run->exec, rx->at.le->handlers->header, describe(rx));
}

/* Fills it in when the first payload or completion handler asks for it: without a header handler it
 * was not. */
bool handlers_describe(struct handler_run *run)
{
    nic_lock(run->nic);
    bool there = run->orphans == 0;
    if (there && !atomic_load_explicit(&run->described, memory_order_relaxed)) {
        describe(run->rx);
    }
    nic_unlock(run->nic);
    return there;
}

/* Whether an earlier message of the same sender, which has left the channel, is still at the
 * entry. */
static bool waits_for_entry(const struct rx *rx)
{
    return !rx->away && !rx->header_begun && rx->peer->nic->sched != NULL &&
           detach_behind_entry(rx);
}

enum rx_step handlers_header(struct rx *rx)
{
    if (waits_for_entry(rx)) {
        rx->f.elsewhere = true;
        return RX_WAIT;
    }
    if (rx->run == NULL || (!rx->run->active && !rx->header_begun)) {
        if (!handlers_start(rx)) {
            rx->at.fail = PTL_NI_DROPPED;
            return RX_GO;
        }
        rx->header_begun = true;
    }
    struct handler_run *run = rx->run;
    if (run->header_done) {
        return RX_GO; /* the header handler has run; the message came again for its turn to write */
    }
    enum rx_step step;
    if (unlikely(rx->at.le->handlers->block != 0) && !block_ready(rx, &step)) {
        return step;
    }
    if (needs_first(rx) && rx->f.first == NULL) {
        return RX_FIRST;
    }
    if (rx->at.le->handlers->header == NULL) {
        run->described = false;
        header_result(rx, PROCESS_DATA);
        return RX_GO;
    }
    if (!run->active) {
        set_up_header(rx);
    }
    int code = handlers_go_on(rx);
    if (code == HPU_WAIT && has_no_room(run) && handlers_no_room(rx)) {
        run->active = false;
        return RX_GO;
    }
    if (code == HPU_WAIT) {
        return RX_WAIT;
    }
    header_result(rx, code);
    return RX_GO;
}

/* Keeps the bytes that the payload handler of a fetch has left in the packet: they are the
 * reply. */
static bool keep_before(struct rx *rx, const uint8_t *base, size_t length)
{
    if (rx->before == NULL) {
        rx->before = malloc(rx->run->nic->packet_size);
    }
    if (rx->before != NULL) {
        memcpy(rx->before, base, length);
    }
    return rx->before != NULL;
}

void handlers_payload_result(struct rx *rx, const struct hpu_exec *exec, int code,
                             const uint8_t *base, size_t length)
{
    struct handler_run *run = rx->run;
    if (code == SUCCESS && rx->m->type == MESSAGE_FETCH && !keep_before(rx, base, length)) {
        code = FAIL;
    }
    if (code == SUCCESS) {
        run->kept += length;
        return;
    }
    run->dropped += length;
    if (code != DROP) {
        note_error(rx, exec, code);
        run->lost = true;
        rx->f.sink = RX_DISCARD;
    }
}

/* Sets up a payload handler's call for the packet in progress, and for as many whole packets of the
 * `behind` bytes, which follow the wire packet in memory, as one call is to take. */
static void set_up_payload(struct rx *rx, size_t behind)
{
    struct handler_run *run = rx->run;
    ptl_payload_t payload = handlers_payload(run);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a message without its entry discards */
    hpu_exec_payload(run->nic->hpus, &run->exec, rx->at.le->handlers->payload, &payload);
    if (behind != 0 && run->packet != run->bounce) {
        hpu_exec_behind(&run->exec, handlers_taken_along(rx, behind), run->nic->packet_size);
    }
}

/* Notes the packets that the call has finished before the one that it is at now. */
static void note_passed(struct handler_run *run)
{
    const ptl_payload_t *at = &run->exec.arg.payload;
    uint64_t passed = at->offset - run->emitted;
    if (passed != 0) {
        run->kept += passed;
        run->emitted += passed;
        run->consumed += passed - run->packet_length + at->length;
        run->packet = at->base;
        run->packet_length = at->length;
    }
}

/* Sets how many packets the next call takes. Between two calls the thread serves other messages, so
 * a call shall take some microseconds. */
void handlers_set_pace(struct handlers *h, const struct hpu_exec *exec)
{
    uint64_t over = exec->cycles / CALL_CYCLES;
    unsigned more = 2 * h->together + 1;
    h->together = over == 0   ? (more < TOGETHER_MOST ? more : TOGETHER_MOST)
                  : over <= 2 ? h->together >> over
                              : 0;
}

/* Takes bytes of the wire packet for the handlers' next packet; returns true when that is
 * complete. */
bool handlers_next_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length)
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
    bool last = offset + length == run->length;
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

/* Writes a packet to the entry, without the user header: the entry has handlers, but none for
 * payload. */
static void deposit_packet(struct rx *rx, const uint8_t *data, uint64_t offset, size_t length)
{
    struct handler_run *run = rx->run;
    uint64_t skip = offset < run->user_header ? run->user_header - offset : 0;
    if (skip >= length) {
        return;
    }
    uint64_t to = offset + skip - run->user_header;
    uint64_t n = length - skip;
    uint64_t room = to < rx->at.mlength ? rx->at.mlength - to : 0;
    n = n < room ? n : room;
    struct memory at = le_memory(rx->at.le, rx->at.offset + to);
    if (memory_write(&at, data + skip, n) != 0) {
        run->fail = PTL_NI_SEGV;
        rx->f.sink = RX_DISCARD;
    }
    run->kept += n;
}

/* Runs payload handlers for a wire packet. run->consumed says how far they have come; it is beyond
 * the packet if they have also taken packets that follow it in memory. */
static enum rx_step run_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length,
                               size_t behind)
{
    struct handler_run *run = rx->run;
    while (run->active || (run->consumed < length && rx->f.sink == RX_PACKETS)) {
        if (!run->active) {
            if (!handlers_next_packet(rx, data, offset, length)) {
                continue;
            }
            set_up_payload(rx, behind);
        }
        int code = handlers_go_on(rx);
        note_passed(run);
        if (code == HPU_WAIT && has_no_room(run) && handlers_no_room(rx)) {
            run->active = false;
            break;
        }
        if (code == HPU_WAIT) {
            return RX_WAIT;
        }
        if (rx->at.le != NULL) {
            handlers_set_pace(rx->at.le->handlers, &run->exec);
        }
        run->emitted += run->packet_length;
        handlers_payload_result(rx, &run->exec, code, run->packet, run->packet_length);
    }
    return RX_GO;
}

/* Gives a wire packet, which may be several of the handlers' packets, to `take` piece by piece. */
static inline __attribute__((always_inline)) enum rx_step
each_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length,
            enum rx_step (*take)(struct rx *, uint8_t *, uint64_t, size_t, size_t))
{
    struct handler_run *run = rx->run;
    size_t packet = run->nic->packet_size;
    for (size_t done = 0; done < length;) {
        size_t n = packet < length - done ? packet : length - done;
        enum rx_step step = take(rx, data + done, offset + done, n, length - done - n);
        bool beyond = run->consumed > n;
        if (step == RX_WAIT) {
            size_t before = beyond ? run->consumed - run->packet_length : 0;
            run->consumed -= before;
            rx->f.taken = done + before;
            return RX_WAIT;
        }
        done += beyond ? run->consumed : n;
        run->consumed = 0;
    }
    return RX_GO;
}

enum rx_step handlers_packet(struct rx *rx, uint8_t *data, uint64_t offset, size_t length)
{
    struct handler_run *run = rx->run;
    if (run->deposit) {
        deposit_packet(rx, data, rx->f.scattered ? rx->f.at : offset, length);
        return RX_GO;
    }
    if (run->nic->sched != NULL) {
        enum rx_step step = each_packet(rx, data, offset, length, packets_take);
        return step == RX_GO ? RX_KEPT : step;
    }
    return each_packet(rx, data, offset, length, run_packet);
}

/* Sets length and failure as the event will tell them, by how much the handlers have kept. */
static void conclude(struct rx *rx)
{
    struct handler_run *run = rx->run;
    struct stats_context *stats = rx->at.le->handlers->stats;
    bool proceeded = run->finished && run->fail == PTL_NI_OK;
    stats->messages++;
    stats->dropped_bytes += run->dropped;
    if (run->nic->sched != NULL) {
        detach_note(rx->at.le->handlers, run->length, run->nic->now() - run->begun);
    }
    bool answered = rx->m->type == MESSAGE_GET || rx->m->type == MESSAGE_FETCH;
    if (rx->m->type == MESSAGE_PUT ? !proceeded : rx_is_atomic(rx) && !rx->applied) {
        rx->at.mlength = run->kept;
    }
    if (run->fail != PTL_NI_OK) {
        rx->at.fail = run->fail;
    } else if (answered && run->dropped != 0) {
        rx->at.fail = PTL_NI_DROPPED;
    }
    if (answered && rx->at.fail != PTL_NI_OK) {
        rx->at.mlength = 0; /* the reply carries no data */
    }
}

/* Waits for the payload handlers and runs the completion handler. */
static enum rx_step last_calls(struct rx *rx)
{
    struct handler_run *run = rx->run;
    if (run->outstanding != 0) {
        rx->f.elsewhere = true;
        return RX_WAIT;
    }
    if (run->lost && !run->active) {
        run->dropped = run->length - run->user_header - run->kept;
    }
    if (!run->finished && rx->at.le->handlers->completion != NULL) {
        if (!run->active) {
            hpu_exec_completion(run->nic->hpus, &run->exec, rx->at.le->handlers->completion,
                                run->dropped, run->flow_control);
        }
        int code = handlers_go_on(rx);
        if (code == HPU_WAIT) {
            return RX_WAIT;
        }
        if (code == SUCCESS_PENDING) {
            run->pending = true;
        } else if (code != SUCCESS) {
            note_error(rx, &run->exec, code);
        }
    }
    rx->f.elsewhere = false;
    return RX_GO;
}

void handlers_early(struct rx *rx)
{
    if (rx->run->told == 0 && last_calls(rx) == RX_GO) {
        (void)timed_told(rx);
    }
}

enum rx_step handlers_completion(struct rx *rx)
{
    struct handler_run *run = rx->run;
    if (run->completion_done) {
        return RX_GO;
    }
    if ((run->told == 0 && last_calls(rx) == RX_WAIT) ||
        (run->nic->time != NULL && !timed_told(rx))) {
        return RX_WAIT;
    }
    run->completion_done = true;
    conclude(rx);
    return RX_GO;
}
