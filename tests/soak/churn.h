/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The soak of births and deaths: processes on a few seats exchange messages of all sizes while
 * some are killed and replaced, stopped for a while, close interfaces under their own threads,
 * and unlink entries under traffic.
 *
 *   seat     a place for one process; each process that has it is a life of that seat
 *   flow     messages of one lane from one life to another: numbered, so that the target knows
 *            that each comes once, in order, with its bytes
 *
 * Match bits name the life that a message is for, so none may reach the one after it.
 *
 *   PLAIN    puts into places of the sender's own, of which the next round waits until checked
 *   HANDLER  the same, by handlers: packet by packet, or deposited by the NIC
 *   GET      from memory that does not change
 *   ATOMIC   adds and fetches on a word of the sender's, whose value is the number of the message
 *   TICKET   fetches on a word that all share, which so only grows
 *   LOOSE    an entry, queue and index that come and go
 *   SECOND   another NIC of the target, which is opened and closed while threads wait in it
 *
 * An operation ends once. A life may have the address of one before it: as long as nothing of it
 * has been met, what is sent there may be undeliverable with the one before, in order. Between
 * lives that are not killed it ends well, but for LOOSE and SECOND, and for a source with a hole,
 * which is PTL_NI_SEGV at both ends.
 */
#ifndef SOAK_CHURN_H
#define SOAK_CHURN_H

#include "../ok.h"
#include "../splitmix.h"
#include "must.h"

#include "portals4.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEATS = 5, OPS = 48, PLACES = 4, LIVES = 4, QUIET_LIMIT_S = 120 };
enum lane { PLAIN, HANDLER, GET, ATOMIC, TICKET, LOOSE, SECOND, LANES };
enum { SEND_DUE = 1, ANSWER_DUE = 2 }; /* what an operation waits for */
enum act { ACT_PUT, ACT_GET, ACT_ATOMIC, ACT_FETCH };

/* Header data: the message's number, and these. */
#define HOLE ((uint64_t)1 << 63)       /* its source has a hole */
#define EARLY_FLOW ((uint64_t)1 << 62) /* messages of its flow were early */

#define NEAR_NID 0x7f000001u /* of the interface that stays */
#define FAR_NID 0x7f000002u  /* of the interface that is closed */
#define NOISE_SPAN ((size_t)1 << 20)
#define LONG_MAX_BYTES ((size_t)3 << 20) /* place 0, and replies to the first operations */
#define SHORT_MAX_BYTES ((size_t)64 << 10)
#define LOOSE_BYTES ((size_t)256 << 10)
#define NOISE_BYTES (NOISE_SPAN + LONG_MAX_BYTES)

/* An operation under way; in shared memory, for the report of a hang. */
struct op {
    uint32_t generation, number; /* number: in its flow */
    uint32_t target_life;
    uint8_t state; /* SEND_DUE, ANSWER_DUE */
    uint8_t act, lane, to;
    bool hole;
    bool
        early; /* started when the library may still know its target's address by the life before */
    uint64_t length, at, start_ms;
};

struct seat {
    _Atomic uint64_t address; /* life << 16 | pid, 0: none */
    _Atomic uint64_t second;  /* pid of the far interface, 0: none */
    _Atomic uint32_t dying;   /* this life, and those before it, may be dead */
    _Atomic uint64_t turns;   /* of its main loop */
    _Atomic uint32_t quiet, done;
    _Atomic uint32_t newest[LIVES]; /* lives, each of which has its places in the others' memory */
    _Atomic uint32_t sent[SEATS][LANES], lost[SEATS][LANES]; /* in the end, to the last life */
    _Atomic uint64_t checked[SEATS][LANES];                  /* by it: see churn_checked() */
    _Atomic uint64_t maps, files, resident;                  /* lowest of the newest window */
    struct op op[OPS];
};

enum count {
    C_STARTED,
    C_GOOD,
    C_DEAD,
    C_HOLES,
    C_REFUSED,
    C_SERVED,
    C_TORN,
    C_LOOSE,
    C_CLOSED,
    C_ENDED,
    C_ABORTED,
    C_BYTES,
    C_KILLS,
    C_STOPS,
    C_COUNTS
};

struct churn {
    atomic_bool failed, stop;
    _Atomic uint64_t now_ms; /* the clock of all, moved on by the driver */
    _Atomic uint64_t count[C_COUNTS];
    struct seat seat[SEATS];
    _Atomic uint32_t used[65536]; /* pids: how many lives have had each */
};

extern struct churn *churn;
extern unsigned me, life;
extern uint64_t seed;
extern unsigned char *noise;
extern ptl_handle_ni_t ni;
extern ptl_handle_eq_t target_eq;

static inline uint64_t churn_checked(uint32_t target_life, uint32_t from_life, uint32_t count)
{
    return (uint64_t)(target_life & 0xfffff) << 44 | (uint64_t)(from_life & 0xfffff) << 24 |
           (count & 0xffffff);
}

static inline ptl_match_bits_t churn_bits(uint32_t target_life, unsigned lane, unsigned from,
                                          unsigned place, uint32_t from_life)
{
    return (uint64_t)(target_life & 0xffff) << 48 | (uint64_t)lane << 44 | (uint64_t)from << 40 |
           (uint64_t)place << 32 | from_life;
}

/* churn_source() is where in the noise a message begins: so its number decides its bytes. */
static inline size_t churn_source(unsigned from, uint32_t from_life, uint32_t number)
{
    uint64_t r = (uint64_t)from << 60 ^ (uint64_t)from_life << 32 ^ number;
    return (size_t)(splitmix(&r) % NOISE_SPAN);
}

static inline size_t churn_room(unsigned place)
{
    return place == 0 ? LONG_MAX_BYTES : SHORT_MAX_BYTES;
}

static inline bool churn_lives(unsigned seat, uint32_t its_life)
{
    return atomic_load(&churn->seat[seat].dying) < its_life;
}

static inline void churn_add(enum count what, uint64_t n)
{
    atomic_fetch_add_explicit(&churn->count[what], n, memory_order_relaxed);
}

uint64_t churn_now_ms(void); /* time for which the machine stood still is left out */

/* churn_actor.c: one life; churn.c: churn_dump() prints what a seat has under way. */
void churn_live(void);
void churn_dump(unsigned seat);

/* churn_target.c */
void target_open(void);
void target_event(const ptl_event_t *e);
void target_turn(uint64_t *r); /* unlinks, frees, appends what is loose */
bool target_complete(void);    /* all that the last lives have sent has come */
void target_close(void);

/* churn_closer.c */
void closer_begin(void);
void closer_end(void);

#endif
