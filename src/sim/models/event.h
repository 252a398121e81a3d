/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of the pinwheel model, in the order of their keys (docs/loggops-model.md):
 *
 *     (time, kind, source, number)
 *
 * `source` is the sender's rank for what arrives, the rank itself for all else.
 * The number of an arrival counts what its sender has sent off, modulo 2^26; that
 * of all else is `op`. Arrivals are compared by number only if they left one rank
 * at one time, so that they are close: loggops.c refuses the schedules in which
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
    EVENT_ARRIVE = 1, /* 0, COMPLETE, never exists: what it does is done in advance */
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

/* A TAKE has in `number` what it needs to know of its recv: the cpu, and whether
 * something waits for it. So the node is touched again only then. */
enum { TAKE_CPU = 255, TAKE_SUCCESSORS = 256 };

/* Sizes from here on are looked up in the schedule. */
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
    uint32_t rank; /* where it happens; the next one, while it stands in a chain */
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
