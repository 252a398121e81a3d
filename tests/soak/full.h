/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The full soak: all of Portals at random, every operation accounted for.
 *
 *   plan     what all processes do in one round, the same list in each of them: a
 *            function of seed and round. So a target knows what must come, an
 *            initiator what must become of it.
 *   origin   starts this process's messages, checks SEND, ACK, REPLY and counters
 *   target   serves them in four lanes, checks events, bytes and counters
 *   chain    a triggered operation that triggers the next one elsewhere, and so on
 *
 * Lanes of the portal table, on each of the four kinds of interface ("faces"):
 *
 *   WINDOW     one entry for all: puts, gets, atomics of every kind
 *   MATCH      use-once entries, some appended late, some never (searches), over an
 *              overflow list
 *   FLOW       flow control with a short event queue that is emptied late
 *   FORBIDDEN  an entry that allows gets only
 *   NOBODY     an index that is not allocated
 */
#ifndef SOAK_FULL_H
#define SOAK_FULL_H

#include "../ok.h"
#include "../splitmix.h"
#include "atomics.h"
#include "must.h"

#include "portals4.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROCESSES = 4,
    FACES = 4, /* bit 0: not matching, bit 1: physical */
    MESSAGES_MAX = 512,
    PARTS_MAX = 6,
    HOPS_MAX = 12,
    ELEMENTS = 4 /* of each type, that one process alone changes in another's window */
};

/* The window of a face. */
#define OWNED_BYTES ((size_t)TYPES * ELEMENTS * ELEMENT_MAX) /* of one initiator */
#define AT_SUMS (PROCESSES * OWNED_BYTES)
#define AT_TICKET (AT_SUMS + (size_t)TYPES * ELEMENT_MAX)
#define AT_GETS (AT_TICKET + 64)
#define GETS_BYTES ((size_t)1 << 20)
#define AT_PUTS (AT_GETS + GETS_BYTES)
#define PUTS_BYTES ((size_t)3 << 20)
#define WINDOW_BYTES (AT_PUTS + PUTS_BYTES)

#define MATCH_LENGTH_MAX ((size_t)64 << 10)
#define FLOW_BYTES ((size_t)512 << 10)
#define ATOMIC_MAX ((size_t)1024) /* bytes of one atomic outside the owned elements */

enum lane { LANE_WINDOW, LANE_MATCH, LANE_FLOW, LANE_FORBIDDEN, LANE_NOBODY, LANE_CHAIN };
enum sub { SUB_NONE, SUB_OWNED, SUB_SUM, SUB_TICKET, SUB_VERIFY }; /* of LANE_WINDOW */
enum arrival { EARLY, LATE, SEARCHED };                            /* of LANE_MATCH */
enum md_kind { MD_EVENTS, MD_COUNTED, MD_BYTES, MD_VOLATILE, MD_PARTS, MD_KINDS };

/* One message of a round. Its number is its place in the plan. */
struct message {
    uint8_t from, to, face, lane, act, sub, op, type, ack, md, arrival;
    uint32_t length, room; /* room: of the entry, where that is known to be what it lands in */
    uint64_t at;           /* remote offset */
};

struct hop {
    uint8_t from, to, act;
    bool relayed; /* by a second counter */
};

struct chain {
    unsigned hops;
    bool appended; /* each arrival appends the entry of the next one */
    struct hop hop[HOPS_MAX];
};

struct plan {
    unsigned count;
    struct message message[MESSAGES_MAX];
    struct chain chain[FACES];
    bool counts_bytes[FACES]; /* the window's counter */
};

/* Memory in one piece or several that are not adjacent. */
struct parts {
    ptl_iovec_t v[PARTS_MAX];
    unsigned n;
    size_t length;
    unsigned char *memory;
};

/* One kind of interface. */
struct face {
    ptl_handle_ni_t ni;
    ptl_ni_limits_t limits;
    ptl_handle_eq_t target_eq, origin_eq, flow_eq;
    ptl_process_t id[PROCESSES];
};

struct shared {
    struct {
        ptl_nid_t nid;
        ptl_pid_t pid;
    } id[PROCESSES];
    atomic_int arrived, generation;
    atomic_bool failed, more;
    _Atomic uint64_t progress;
    _Atomic uint64_t tickets[PROCESSES][FACES];            /* drawn, as bits */
    _Atomic uint64_t refused[PROCESSES][PROCESSES][FACES]; /* by flow control: by, of */
    _Atomic uint64_t operations, events, late_claims, refusals, aborts, bytes, rounds;
};

extern struct shared *shared;
extern unsigned me;
extern uint64_t seed, round_number;
extern struct face face[FACES];
extern struct plan plan;

/* ---- full.c ---- */

/* note() keeps a line for fail(). */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* pump() handles what has come; with `idle` it waits a millisecond for it. */
void pump(bool idle);
void barrier(void);

static inline bool is_matching(unsigned f)
{
    return (f & 1) == 0;
}

static inline bool is_logical(unsigned f)
{
    return (f & 2) == 0;
}

/* What an event's user_ptr names. */
enum tag { TAG_MESSAGE, TAG_WINDOW, TAG_ENTRY, TAG_OVERFLOW, TAG_SEARCH, TAG_FLOW, TAG_CHAIN };

static inline void *tagged(enum tag tag, unsigned number)
{
    return (void *)((uintptr_t)tag << 32 | number);
}

static inline enum tag tag_of(const ptl_event_t *e)
{
    return (enum tag)((uintptr_t)e->user_ptr >> 32);
}

static inline unsigned number_of(const ptl_event_t *e)
{
    return (unsigned)(uintptr_t)e->user_ptr;
}

/* ---- full_plan.c ---- */

void plan_make(void);
bool message_succeeds(const struct message *m);
const char *act_name(unsigned act);

/* ---- full_model.c ---- */

/* pattern() is byte k of what a message carries, or (`number` >= MESSAGES_MAX) of a
 * process's constant bytes. */
unsigned char pattern(unsigned number, size_t k);
void *memory(size_t n);
void parts_new(struct parts *p, size_t length, unsigned n, uint64_t *r);
void parts_free(struct parts *p);
void parts_read(const struct parts *p, size_t offset, void *to, size_t n);
void parts_write(const struct parts *p, size_t offset, const void *from, size_t n);
/* parts_start() and parts_count() are `start` and `length` of an MD or an entry. */
void *parts_start(struct parts *p);
size_t parts_count(const struct parts *p);

/* ---- full_origin.c ---- */

void origin_open(void);
bool origin_step(uint64_t *r); /* starts one message; false if none is left */
bool origin_done(void);
void origin_event(unsigned f, const ptl_event_t *e);
void origin_close(void);

/* ---- full_target.c, full_match.c ---- */

void target_open(void);
bool target_done(void);
void target_event(unsigned f, const ptl_event_t *e);
void flow_step(uint64_t *r); /* now and then looks at the queues of flow control */
void target_close(void);
/* target_saw() checks an event of message i for what every lane has in common. */
void target_saw(unsigned f, const ptl_event_t *e, unsigned i);
void check_pattern(const unsigned char *bytes, size_t n, unsigned number, const char *what);

void match_open(void);
bool match_step(uint64_t *r); /* a late append or a search; false if none is due */
bool match_done(void);
void match_event(unsigned f, const ptl_event_t *e);
void match_close(void);

/* ---- full_chain.c ---- */

void chain_open(void);
void chain_kick(void);
bool chain_done(void);
void chain_target_event(unsigned f, const ptl_event_t *e);
void chain_origin_event(unsigned f, const ptl_event_t *e);
void chain_close(void);

/* ---- full_reckless.c ---- */

/* reckless_run() leaves operations under way, to be cut off by the closing of interfaces;
 * reckless_free() gives their memory back after that. */
void reckless_run(void);
void reckless_free(void);

/* ---- full_limits.c ---- */

/* limits_check() finds that every table of every face is empty: it fills each. */
void limits_check(void);

#endif
