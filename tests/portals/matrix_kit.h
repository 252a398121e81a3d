/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the generated matrices of the suite share: memory that knows what should be in
 * it, events that are due, and a look at the end that nothing else has happened.
 *
 * Regions. A region is the memory of an MD or an entry: `length` bytes laid in parts with
 * guard bytes between them, and a second copy of all of it that says what should be
 * there.
 *
 *      now    gggg AAAAA gg BBB ggg CCCCCCCC gggg      what the library sees
 *      want   gggg AAAAA gg BBB ggg CCCCCCCC gggg      what the case expects
 *
 *   Both processes of a pair make the regions of both sides, from the same seeds, so each
 *   can work out what a message must do; each checks those of its own side.
 * Due events. They are in groups: a group is complete before the next begins, and within
 *   one the order is open. A late one comes with its group or at any time behind it.
 * The end. A message through a portal table entry of its own follows all others: what was
 *   sent before has then been matched, and acknowledged before. So an event that is not in
 *   the queues by then, or a count, was never meant to come.
 */
#ifndef MATRIX_KIT_H
#define MATRIX_KIT_H

#include "suite.h"

#define COUNT_OF(array_) (sizeof(array_) / sizeof((array_)[0]))

/* ---- Regions --------------------------------------------------------------- */

enum shape {
    PLAIN,     /* start and length, no PTL_IOVEC */
    ONE,       /* one part */
    SMALL,     /* many parts of 1 to 9 bytes, at last a long one */
    UNEVEN,    /* parts of any length */
    HOLES,     /* the same with parts of no length between, at the front and at the back */
    EDGES,     /* parts that end one byte before, at, and behind packets of 4096 */
    BACKWARDS, /* each part lies before the one that precedes it */
    SHAPES
};
extern const char *const shape_name[SHAPES];

enum { REGION_PARTS = 2200 }; /* more than IOV_MAX, which the system takes in one call */

struct region {
    bool iovec;
    size_t length;
    unsigned count; /* of parts */
    ptl_iovec_t part[REGION_PARTS];
    size_t place[REGION_PARTS]; /* of each part in both copies */
    unsigned char *now, *want;
    size_t size, capacity; /* of each copy */
};

/* The regions of a case; a body may use any of them. */
enum { PUT_SIDE, GET_SIDE, ENTRY, OVERFLOW_ENTRY, REGIONS };
extern struct region region[REGIONS];

/* region_make() lays a region out and fills it; different seeds give different bytes. */
void region_make(struct region *r, enum shape shape, size_t length, unsigned seed);

/* region_fill() fills it anew: both copies. */
void region_fill(struct region *r, unsigned seed);

/* region_put() has bytes in both copies: what the program itself writes. region_expect() puts
 * them where they should come to be, region_wanted() reads from there. */
void region_put(struct region *r, size_t at, const void *bytes, size_t n);
void region_expect(struct region *r, size_t at, const void *bytes, size_t n);
void region_wanted(const struct region *r, size_t at, void *bytes, size_t n);

/* region_forgive() lets bytes be what they are: padding. */
void region_forgive(struct region *r, size_t at, size_t n);

/* region_move() expects `n` bytes of one region in another. */
void region_move(struct region *to, size_t to_at, const struct region *from, size_t from_at,
                 size_t n);

/* region_at() is the address of a byte; a region as the library takes it. */
void *region_at(const struct region *r, size_t at);
void *region_start(struct region *r);
ptl_size_t region_units(const struct region *r);
unsigned region_option(const struct region *r); /* PTL_IOVEC or 0 */

#define CHECK_REGION(r_) region_check(r_, #r_, __FILE__, __LINE__)
void region_check(const struct region *r, const char *text, const char *file, int line);

/* ---- What a message does, and how it shows --------------------------------- */

struct landing {
    const struct region *region;
    size_t offset; /* used at the target */
    size_t mlength;
    int fail;
    ptl_list_t list;
    void *user_ptr; /* of the entry */
};

/* landing_move() does to the wanted copies what a message does: data between put side,
 * get side and the entry that it lands in, arithmetic included. */
void landing_move(const struct suite_move *m, struct region *put, struct region *get,
                  struct region *entry, const struct landing *l);

/* The events that a message gives: at the target, when it arrives and when an entry takes its
 * unexpected header; at the initiator, with MDs that disable none. */
struct suite_event landing_event(const struct scene *s, const struct suite_move *m,
                                 const struct landing *l);
struct suite_event landing_overflow(const struct scene *s, const struct suite_move *m,
                                    const struct landing *l, void *user_ptr);
struct suite_event send_event(const struct suite_move *m);
struct suite_event answer_event(const struct suite_move *m, const struct landing *l);

/* An event of the entry itself: LINK, AUTO_UNLINK, AUTO_FREE. */
struct suite_event entry_event(const struct scene *s, int type, void *user_ptr);

/* Whether a call has a put side, with SEND; a get side, with REPLY. How long its messages may
 * be on this interface. */
bool move_puts(enum suite_call call);
bool move_gets(enum suite_call call);
size_t move_limit(const struct scene *s, enum suite_call call);

/* ---- Events that are due ---------------------------------------------------- */

enum { DUE_MAX = 128 };
struct due {
    unsigned n, group;
    struct {
        struct suite_event event;
        unsigned group;
        bool late, taken;
    } list[DUE_MAX];
};

/* due_add() adds one to the group, due_late() one that may come later; due_then() begins the
 * next group. */
void due_add(struct due *due, struct suite_event event);
void due_late(struct due *due, struct suite_event event);
void due_then(struct due *due);

/* TAKE() takes exactly these from a queue, field by field, and leaves `due` empty. */
#define TAKE(eq_, due_) due_take(s, eq_, due_, __FILE__, __LINE__)
void due_take(struct scene *s, ptl_handle_eq_t eq, struct due *due, const char *file, int line);

/* ---- That nothing else has happened ----------------------------------------- */

enum { WATCH_PT = 9 };
struct watch {
    int before[PTL_SR_LAST];
    ptl_handle_md_t md;
    ptl_handle_ct_t ct;
    unsigned fences;
};

/* watch_begin() comes before the first STEP() of a case; watch_end() when all that was due
 * has been taken: both queues are empty then, and the status registers of the target have
 * grown by so many. It may be used several times. */
void watch_begin(struct watch *w, struct scene *s);
struct refusals {
    int drops, permissions, operations;
};
#define WATCH_END(w_, ...) watch_end(w_, s, (struct refusals){__VA_ARGS__}, __FILE__, __LINE__)
void watch_end(struct watch *w, struct scene *s, struct refusals r, const char *file, int line);

/* A counter has exactly this value now. */
#define COUNTED(ct_, success_, failure_) counted(ct_, success_, failure_, #ct_, __FILE__, __LINE__)
void counted(ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure, const char *text,
             const char *file, int line);

/* A counter has come to this many successes and failures, within the time of a check. */
#define COUNT_COMES(ct_, sum_) count_comes(ct_, sum_, #ct_, __FILE__, __LINE__)
void count_comes(ptl_handle_ct_t ct, ptl_size_t sum, const char *text, const char *file, int line);

/* A small generator, the same on every machine. */
uint64_t matrix_random(uint64_t *state);

/* matrix_spread() is one of the kinds (a mask of several), by number: for matrices in which
 * every case runs on one of them. */
unsigned matrix_spread(unsigned kinds, unsigned number);

#endif
