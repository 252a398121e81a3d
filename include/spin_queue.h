/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of requests from handlers to their host, and of the host's answers: a ring in host
 * memory, which handlers access by DMA and the host directly. (Beyond the paper: RED-SEA D4.7,
 * 4.4.8, asks for one.) All code is in this header, for handlers and for the host.
 *
 *      memory   | header 128 bytes | slot 0 | slot 1 | ...      a power of two of slots
 *      slot     | word | length | answer_length | - | data, `room` bytes
 *
 * Ticket t is the t-th request; its slot is t modulo the number of slots. The slot's `word` is its
 * state:
 *
 *      4 t     FREE, for ticket t
 *         │ a handler moves `tail` from t to t + 1, writes length and data, and then `word`
 *         ├─────► 4 t + 1  POSTED ──────────────────────── the host has done with it ──┐
 *         └─────► 4 t + 2  ASKED ── the host answers ──► 4 t + 3  ANSWERED ── read ────┤
 *                    └─ the handler gives up ──► POSTED                                ▼
 *                                                                     FREE, 4 (t + slots)
 *
 * So the host takes requests in the order of their tickets, and may finish them in any order. A
 * request keeps its slot until it is finished. When the slot of the next ticket is not free the
 * queue is full: the handler's call fails at once, and `refused` counts it. So no handler waits for
 * ever for a host that does not serve the queue. The memory belongs to the queue; its layout is the
 * same for every compiler.
 *
 * If a handler is ended between taking a ticket and setting `word`, its slot stays taken for ever.
 * Since the handler touches its data before it takes a ticket, no fault can end it there, only its
 * budget.
 */
#ifndef SPIN_QUEUE_H
#define SPIN_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pinwheel_sim.h"
#include "portals4.h"
#include "spin_handler.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPIN_QUEUE_HEADER = 128, SPIN_QUEUE_SLOT = 32 };
enum { SPIN_QUEUE_TAIL = 0, SPIN_QUEUE_REFUSED = 8 }; /* offsets in the header of the queue */
enum { SPIN_QUEUE_FREE, SPIN_QUEUE_POSTED, SPIN_QUEUE_ASKED, SPIN_QUEUE_ANSWERED };

/* The queue as handlers see it, to be put into their HPU memory. */
struct spin_queue_end {
    uint64_t at; /* offset of the queue in the host range */
    uint64_t slots, stride, room;
    uint32_t range; /* PTL_ME_HOST_MEM or PTL_HANDLER_HOST_MEM */
    /* counts requests, for a host that sleeps until there are some; PTL_CT_NONE: it does not */
    ptl_handle_ct_t ct;
};

/* ---- The host ---- */

struct spin_queue {
    uint8_t *memory;
    uint64_t slots, stride, room;
    uint64_t head; /* ticket of the next request to take */
};

/* A request that the host has taken. The host may write its answer to `data`, which has `room`
 * bytes. */
struct spin_queue_request {
    uint64_t ticket;
    void *data;
    uint64_t length;
    bool asked; /* the handler waits for an answer */
};

/* spin_queue_size() returns the bytes of memory of a queue of `slots` requests with up to `room`
 * bytes each. */
static inline uint64_t spin_queue_stride(uint64_t room)
{
    return (SPIN_QUEUE_SLOT + room + 63) / 64 * 64;
}

static inline uint64_t spin_queue_size(uint64_t slots, uint64_t room)
{
    return SPIN_QUEUE_HEADER + slots * spin_queue_stride(room);
}

static inline uint64_t *spin_queue_word(const struct spin_queue *q, uint64_t ticket)
{
    return (uint64_t *)(q->memory + SPIN_QUEUE_HEADER + (ticket & (q->slots - 1)) * q->stride);
}

/* spin_queue_open() makes an empty queue in `length` bytes at `memory`, before any handler
 * uses it. PTL_ARG_INVALID: slots is no power of two, or the memory is too short or does not begin
 * at a multiple of 8. */
static inline int spin_queue_open(struct spin_queue *q, void *memory, uint64_t length,
                                  uint64_t slots, uint64_t room)
{
    if (slots == 0 || (slots & (slots - 1)) != 0 || slots > UINT32_MAX || room > UINT32_MAX ||
        (uintptr_t)memory % 8 != 0 || memory == NULL || length < spin_queue_size(slots, room)) {
        return PTL_ARG_INVALID;
    }
    q->memory = (uint8_t *)memory;
    q->slots = slots;
    q->stride = spin_queue_stride(room);
    q->room = room;
    q->head = 0;
    __atomic_store_n((uint64_t *)(q->memory + SPIN_QUEUE_TAIL), 0, __ATOMIC_RELAXED);
    __atomic_store_n((uint64_t *)(q->memory + SPIN_QUEUE_REFUSED), 0, __ATOMIC_RELAXED);
    for (uint64_t t = 0; t < slots; t++) {
        __atomic_store_n(spin_queue_word(q, t), 4 * t, __ATOMIC_RELEASE);
    }
    return PTL_OK;
}

/* spin_queue_end_of() returns the handlers' view of a queue that begins at offset `at` of a host
 * range. */
static inline struct spin_queue_end spin_queue_end_of(const struct spin_queue *q, uint64_t at,
                                                      unsigned int range, ptl_handle_ct_t ct)
{
    struct spin_queue_end end = {at, q->slots, q->stride, q->room, range, ct};
    return end;
}

/* spin_queue_take() takes the next request; false if there is none, after a look's time in a
 * simulation. */
static inline bool spin_queue_take(struct spin_queue *q, struct spin_queue_request *r)
{
    uint64_t *slot = spin_queue_word(q, q->head);
    uint64_t word = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (word != 4 * q->head + SPIN_QUEUE_POSTED && word != 4 * q->head + SPIN_QUEUE_ASKED) {
        PtlSimPause();
        return false;
    }
    r->ticket = q->head++;
    r->data = slot + SPIN_QUEUE_SLOT / 8;
    r->length = slot[1] < q->room ? slot[1] : q->room;
    r->asked = word % 4 == SPIN_QUEUE_ASKED;
    return true;
}

/* spin_queue_answer() finishes a request. If its handler still waits for an answer, the first
 * `length` bytes of its data, `room` at most, are the answer, and it returns true. */
static inline bool spin_queue_answer(struct spin_queue *q, const struct spin_queue_request *r,
                                     uint64_t length)
{
    uint64_t *slot = spin_queue_word(q, r->ticket), asked = 4 * r->ticket + SPIN_QUEUE_ASKED;
    slot[2] = length < q->room ? length : q->room;
    if (__atomic_compare_exchange_n(slot, &asked, 4 * r->ticket + SPIN_QUEUE_ANSWERED, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return true;
    }
    __atomic_store_n(slot, 4 * (r->ticket + q->slots), __ATOMIC_RELEASE);
    return false;
}

/* spin_queue_refused() returns how many requests found the queue full. */
static inline uint64_t spin_queue_refused(const struct spin_queue *q)
{
    return __atomic_load_n((uint64_t *)(q->memory + SPIN_QUEUE_REFUSED), __ATOMIC_RELAXED);
}

/* ---- Handlers ---- */

static inline uint64_t spin_queue_slot_at(const struct spin_queue_end *e, uint64_t ticket)
{
    return e->at + SPIN_QUEUE_HEADER + (ticket & (e->slots - 1)) * e->stride;
}

/* Reads a word that others may be changing, by an atomic that reads all of it at once. */
static inline uint64_t spin_queue_load(const struct spin_queue_end *e, uint64_t at)
{
    uint64_t found = 0;
    PtlHandlerDMAFetchAddB(at, 0, &found, PTL_UINT64_T, e->range);
    return found;
}

static inline bool spin_queue_change(const struct spin_queue_end *e, uint64_t at, uint64_t from,
                                     uint64_t to)
{
    uint64_t found = from;
    PtlHandlerDMACASB(at, &found, to, e->range);
    return found == from;
}

/* Reads a byte of each page of the data, so that a fault comes now, if the data cannot be read. */
static inline void spin_queue_touch(const void *data, uint64_t length)
{
    const volatile uint8_t *byte = (const volatile uint8_t *)data;
    for (uint64_t i = 0; i < length; i += 4096) {
        (void)byte[i];
    }
    if (length != 0) {
        (void)byte[length - 1];
    }
}

/* The same for memory that will be written. */
static inline void spin_queue_touch_room(void *room, uint64_t length)
{
    volatile uint8_t *byte = (volatile uint8_t *)room;
    for (uint64_t i = 0; i < length; i += 4096) {
        byte[i] = 0;
    }
    if (length != 0) {
        byte[length - 1] = 0;
    }
}

/* Takes a ticket, and with it the ticket's slot; false if the queue is full. */
static inline bool spin_queue_claim(const struct spin_queue_end *e, uint64_t *ticket)
{
    for (;;) {
        *ticket = spin_queue_load(e, e->at + SPIN_QUEUE_TAIL);
        uint64_t word = spin_queue_load(e, spin_queue_slot_at(e, *ticket));
        if (word < 4 * *ticket) {
            PtlHandlerDMAFetchAddB(e->at + SPIN_QUEUE_REFUSED, 1, NULL, PTL_UINT64_T, e->range);
            return false;
        }
        if (word == 4 * *ticket &&
            spin_queue_change(e, e->at + SPIN_QUEUE_TAIL, *ticket, *ticket + 1)) {
            return true;
        }
    }
}

static inline int spin_queue_send(const struct spin_queue_end *e, const void *data, uint64_t length,
                                  unsigned int as, uint64_t *ticket)
{
    if (length > e->room) {
        return PTL_ARG_INVALID;
    }
    spin_queue_touch(data, length);
    if (!spin_queue_claim(e, ticket)) {
        return PTL_NO_SPACE;
    }
    uint64_t slot = spin_queue_slot_at(e, *ticket);
    PtlHandlerDMAToHostB(&length, slot + 8, sizeof(length), e->range);
    PtlHandlerDMAToHostB(data, slot + SPIN_QUEUE_SLOT, length, e->range);
    spin_queue_change(e, slot, 4 * *ticket, 4 * *ticket + as);
    if (e->ct != PTL_CT_NONE) {
        ptl_ct_event_t one = {1, 0};
        PtlHandlerCTInc(e->ct, one);
    }
    return PTL_OK;
}

/* spin_queue_post() posts a request without answer. PTL_NO_SPACE: the queue is full.
 * PTL_ARG_INVALID: the request is longer than the room of a slot. */
static inline int spin_queue_post(const struct spin_queue_end *e, const void *data, uint64_t length)
{
    uint64_t ticket;
    return spin_queue_send(e, data, length, SPIN_QUEUE_POSTED, &ticket);
}

/* spin_queue_ask() posts a request and waits for its answer; meanwhile it yields, `patience` times
 * at most. It copies as many bytes of the answer as *length says to `answer`, and sets *length to
 * the answer's length. It returns the codes of spin_queue_post(), or PTL_ABORTED: no answer came in
 * that time. The host learns that from spin_queue_answer(). */
static inline int spin_queue_ask(const struct spin_queue_end *e, const void *data,
                                 uint64_t data_length, void *answer, uint64_t *length,
                                 uint64_t patience)
{
    uint64_t ticket, has = 0;
    spin_queue_touch_room(answer, *length);
    int rc = spin_queue_send(e, data, data_length, SPIN_QUEUE_ASKED, &ticket);
    if (rc != PTL_OK) {
        return rc;
    }
    uint64_t slot = spin_queue_slot_at(e, ticket);
    while (spin_queue_load(e, slot) != 4 * ticket + SPIN_QUEUE_ANSWERED) {
        if (patience-- == 0 && spin_queue_change(e, slot, 4 * ticket + SPIN_QUEUE_ASKED,
                                                 4 * ticket + SPIN_QUEUE_POSTED)) {
            return PTL_ABORTED;
        }
        PtlHandlerYield();
    }
    PtlHandlerDMAFromHostB(slot + 16, &has, sizeof(has), e->range);
    PtlHandlerDMAFromHostB(slot + SPIN_QUEUE_SLOT, answer, has < *length ? has : *length, e->range);
    *length = has;
    spin_queue_change(e, slot, 4 * ticket + SPIN_QUEUE_ANSWERED, 4 * (ticket + e->slots));
    return PTL_OK;
}

#ifdef __cplusplus
}
#endif

#endif
