/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the files of libpinwheel-rma: what it has at an interface (a rail), the
 * counters of operations, peers, keys, requests.
 *
 * Each message is counted twice: by the origin's thread in `issued` before it is handed to Portals,
 * and by the NIC, as a success or a failure, when its ack or reply has come. Peers share a rail's
 * counters, by their number.
 *
 * - C1 A message that fails has exactly one failure event, ACK or REPLY, besides its failure count.
 *   Whoever takes that event notes the error, then counts a success, then takes the failure back.
 *   So the successes of a counter reach `issued`, and when they have, all errors are noted.
 * - C2 A counter has at most IN_FLIGHT messages under way, and a rail at most TOLD messages of
 *   requests whose event was not taken. Each has two events at most, so the queue never overflows.
 * - C3 Of a rail's event queue one thread at a time takes events (`polled`), those for others, too;
 *   others who need one sleep on `changed`, and are woken after each event.
 * - C4 A peer without keys is freed when its counters stand at `issued`: no event names it then.
 * - C5 `lent` is set after `issued` was raised, and cleared before a flush reads `issued`: if it is
 *   clear, no buffer of an operation begun earlier is in use.
 */
#ifndef RMA_INSIDE_H
#define RMA_INSIDE_H

#include "pinwheel_rma.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

enum { COUNTERS = 16, IN_FLIGHT = 1024, TOLD = 8192 };
enum { LARGEST_ELEMENT = 32, ATOMIC_MOST = 4096 }; /* bytes; of an atomic message */
enum { EVENTS = 2 * (COUNTERS * IN_FLIGHT + TOLD) };

/* match bits: | incarnation 32 | serial number of the region 28 | entry of the region 4 | */
enum { ALL_ACCESS = PW_RMA_READ | PW_RMA_WRITE | PW_RMA_PAIRS };
enum { SERIAL_BITS = 28, ENTRY_BITS = 4 };
enum entry_kind { ENTRY_PLAIN, ENTRY_PAIRS, ENTRY_KINDS };

struct counter {
    _Alignas(64) _Atomic uint64_t issued;
    _Atomic uint64_t over; /* successes when somebody looked last */
    atomic_bool lent;      /* an operation since the last flush has lent its buffer */
    ptl_handle_ct_t ct;
    /* all of this process's memory: events for failures only, and for each request's message */
    ptl_handle_md_t quiet, telling;
};

struct rail {
    struct counter counters[COUNTERS];
    ptl_handle_ni_t ni;
    ptl_ni_limits_t limits;
    ptl_process_t id; /* this process */
    ptl_uid_t uid;
    ptl_pt_index_t pt;
    ptl_handle_eq_t eq;
    _Atomic uint32_t told; /* messages of requests whose event was not taken */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool polled;
    unsigned char scratch[ATOMIC_MOST]; /* for old values that nobody wants */
};

struct pw_rma {
    unsigned count, flags;
    bool logical;
    uint64_t incarnation; /* random: no other struct pw_rma has it */
    _Atomic int error;    /* the first one since the last pw_rma_flush_all() */
    pthread_mutex_t lock; /* of the rest */
    uint32_t first_serial, serials;
    unsigned regions, keys, peers_made;
    void *peers; /* tree by incarnation */
    struct pw_rma_peer *idle;
    struct rail rails[];
};

struct pw_rma_peer {
    uint64_t incarnation;
    struct pw_rma *rma;
    unsigned number, keys;
    _Atomic int error; /* the first one since the last flush */
    struct pw_rma_peer *next_idle;
};

struct pw_rma_region {
    struct pw_rma *rma;
    struct rail *rail;
    void *start;
    uint64_t length;
    ptl_match_bits_t bits;
    unsigned access;
    ptl_handle_me_t entries[ENTRY_KINDS]; /* or PTL_INVALID_HANDLE */
};

/* What a key says. */
struct key {
    uint64_t incarnation;
    ptl_match_bits_t bits; /* of the region's plain entry */
    uint64_t length;
    ptl_process_t id;
    uint32_t rail, access;
    bool logical;
    ptl_pt_index_t pt;
    uint32_t max_atomic; /* bytes of an atomic message that the target takes */
};

struct pw_rma_key {
    struct key is;
    struct pw_rma_peer *peer;
    struct rail *rail;
    struct counter *counter;
};

/* A struct pw_rma_request. */
struct request {
    struct rail *rail;
    struct counter *counter;
    _Atomic uint32_t parts; /* messages under way, and one while the call goes on */
    _Atomic int32_t error;
};
_Static_assert(sizeof(struct request) == sizeof(struct pw_rma_request), "a request fits");

/* wire.c: keys as bytes. wire_read() returns what pw_rma_key_open() does. */
void wire_write(unsigned char *bytes, const struct key *key);
int wire_read(const unsigned char *bytes, size_t size, struct key *key);

/* open.c */
int errno_of(int ptl_code);

/* key.c: frees peers that are idle and over. The caller has rma->lock. */
void peers_reap(struct pw_rma *rma);

/* region.c: the match bits of one of a region's entries. */
static inline ptl_match_bits_t entry_bits(ptl_match_bits_t plain, enum entry_kind kind)
{
    return plain | kind;
}

/* over.c: how operations end */

/* An operation while its call goes on. */
struct operation {
    struct pw_rma_key *key;
    struct request *request;
    void *user_ptr;
    ptl_handle_md_t md;
};

/* operation_check() checks key, range and access; operation_begin() begins the operation,
 * operation_message() a message of it: it may wait for messages before it. operation_sent() takes
 * what Portals said to that, operation_begun() ends the call. */
int operation_check(const struct pw_rma_key *key, const void *local, size_t length, uint64_t offset,
                    unsigned access);
void operation_begin(struct operation *o, struct pw_rma_key *key, struct pw_rma_request *request);
int operation_message(struct operation *o);
void operation_sent(struct operation *o, int ptl_code, bool lends);
void operation_begun(struct operation *o);

/* move.c: send the messages of a put or get, and return what operation_message() does. */
int put_send(struct operation *o, const void *from, size_t length, uint64_t offset);
int get_send(struct operation *o, void *to, size_t length, uint64_t offset);

/* atomic.c: an atomic operation on one block. atomic_check() returns what the calls do,
 * atomic_send() sends its messages. */
struct atomic {
    struct operation o;
    const void *from;
    void *result; /* NULL: the old values are not wanted */
    uint64_t offset;
    enum pw_rma_op op;
    enum pw_rma_type type;
};
int atomic_check(const struct atomic *a, const struct pw_rma_key *key, size_t length);
int atomic_send(struct atomic *a, size_t length);

/* counter_wait() waits until so many messages are over; 0 or -ECANCELED. */
int counter_wait(struct rail *rail, struct counter *c, uint64_t messages);
bool counter_is_over(struct counter *c);

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
