/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of the pinwheel model, in the order of their keys (docs/loggops-model.md):
 *
 *     (time, kind, source, number)
 *
 * `source` is the sender's rank for an ARRIVE, and the event's own rank for all other kinds. The
 * number of an ARRIVE counts the messages, replies and data that its sender has sent, modulo 2^26;
 * the number of other kinds is `op`. Two ARRIVE events are compared by number only if they left one
 * rank at the same time, and then their numbers are close: loggops.c refuses schedules in which
 * they might not be.
 *
 *                     op     tag          size              charge
 *   ARRIVE message    send   its tag      bytes             -
 *   ARRIVE reply      recv   the send     -                 -
 *   ARRIVE data       send   the recv     bytes             -
 *   FREE              0      -            -                 -
 *   REPLY             recv   the send     the send's rank   -
 *   DATA              send   the recv     -                 -
 *   TAKE              recv   -            -                 time the cpu is taken
 *   POST, SEND, CALC  itself -            -                 -
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include <stdbool.h>
#include <stdint.h>

enum event_kind {
    EVENT_ARRIVE = 1, /* kind 0, COMPLETE, has no events: completions are computed in advance */
    EVENT_FREE,
    EVENT_POST,
    EVENT_SEND,
    EVENT_REPLY,
    EVENT_DATA,
    EVENT_TAKE,
    EVENT_CALC,
};
enum { ARRIVE_MESSAGE, ARRIVE_REPLY, ARRIVE_DATA };

enum { EVENT_NUMBER_BITS = 26 };
#define EVENT_NUMBERS (UINT32_C(1) << EVENT_NUMBER_BITS)

/* A TAKE event has in `number` what the model must know of its recv: the cpu, and whether other
 * operations wait for the recv's end. So it reads the node again only if some do. */
enum { TAKE_CPU = 255, TAKE_SUCCESSORS = 256 };

/* Sizes of at least this are not in the event; the model looks them up in the schedule. */
#define EVENT_LARGE UINT32_MAX

struct event {
    uint64_t time;
    uint32_t source;
    uint32_t op;
    union {
        struct {
            uint32_t tag;
            uint32_t size;
        };
        uint64_t charge;
    };
    uint32_t rank; /* the rank where the event happens; in a chain the next event */
    uint32_t number : EVENT_NUMBER_BITS;
    uint32_t arrival : 2; /* ARRIVE_MESSAGE, ARRIVE_REPLY or ARRIVE_DATA */
    uint32_t kind : 4;
};
_Static_assert(sizeof(struct event) == 32, "two to a cache line");

static inline bool event_before(const struct event *a, const struct event *b)
{
    if (a->time != b->time) {
        return a->time < b->time;
    }
    uint64_t x = (uint64_t)a->kind << 32 | a->source, y = (uint64_t)b->kind << 32 | b->source;
    if (x != y) {
        return x < y;
    }
    uint32_t apart = (a->number - b->number) & (EVENT_NUMBERS - 1);
    return a->kind == EVENT_ARRIVE ? apart > EVENT_NUMBERS / 2 : a->op < b->op;
}

#endif
