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
 * - C3 Of an event queue one thread at a time takes events (`polled`), those for others, too;
 * others who need one sleep on `changed`, and are woken after each event.
 * - C4 A peer without keys is freed when its counters stand at `issued`: no event names it then.
 * - C5 `lent` is 0, or the number of a message that has lent its buffer. A flush takes back what it
 *   has found there when all messages that it waits for are over, unless another one has taken its
 *   place: if it is 0, no buffer of an operation begun earlier is in use.
 * - C7 Successes do not tell which messages are over: a later one of another thread may stand for
 * an earlier one. A flush ends when the successes have reached `issued` and `issued` has not moved
 *   since: then none was under way. If it moves, other threads begin no message of this counter
 *   until the flush is over (`draining`); but for probes, which one who waits sends.
 * - C6 The queue of notices has flow control: a message whose notice finds no room is refused, and
 *   its origin told. So each notified message that was not refused has one notice at its target.
 */
#ifndef RMA_INSIDE_H
#define RMA_INSIDE_H

#include "pinwheel_firehose.h"
#include "pinwheel_notify.h"
#include "share.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

/* Labelled points, at which the kill tests end or stop a process (tests/rma/kill.c). */
#ifdef PINWHEEL_KILL_POINTS
void kill_point(const char *label);
#define KILL_POINT(label) kill_point(label)
#else
#define KILL_POINT(label) ((void)0)
#endif

enum { COUNTERS = 16, IN_FLIGHT = 1024, TOLD = 8192 };
enum { LARGEST_ELEMENT = 32, ATOMIC_MOST = 4096 }; /* bytes; of an atomic message */
enum { CALLS_EVENTS = 256 };                       /* answers, of CALL_SLOTS calls at most */
enum { EVENTS = 2 * (COUNTERS * IN_FLIGHT + TOLD) + CALLS_EVENTS };

/* match bits: | incarnation 32 | serial number of the region 28 | entry of the region 4 |
 * of notified messages, which have a portal table entry of their own:
 *             | incarnation 20 | serial number of the region 28 | tag 16 | */
enum { ALL_ACCESS = PW_RMA_READ | PW_RMA_WRITE | PW_RMA_PAIRS | PW_RMA_NOTIFY };
enum { TWO_SIDED = 16 }; /* beside PW_RMA_PAIRS in a key: the target's library does them */
enum { SERIAL_BITS = 28, ENTRY_BITS = 4, TAG_BITS = 16 };
enum entry_kind { ENTRY_PLAIN, ENTRY_PAIRS, ENTRY_NOTIFY, ENTRY_KINDS };

/* An event queue, of which one thread at a time takes events (C3). */
struct queue {
    ptl_handle_eq_t eq;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool polled;
    uint64_t taken; /* events, so far */
};

struct counter {
    _Alignas(64) _Atomic uint64_t issued;
    _Atomic uint64_t over;     /* successes when somebody looked last */
    _Atomic uint64_t lent;     /* C5 */
    _Atomic uint32_t draining; /* flushes that keep new messages away (C7) */
    ptl_handle_ct_t ct;
    /* all of this process's memory: events for failures only, and for each request's message */
    ptl_handle_md_t quiet, telling;
};

/* How operations may go: the later ones are chosen by the program only, or where there is no
 * other. */
enum way { WAY_DIRECT, WAY_NATIVE, WAY_HANDLER, WAY_TWO_SIDED };

struct rail {
    struct counter counters[COUNTERS];
    ptl_handle_ni_t ni;
    ptl_ni_limits_t limits;
    ptl_process_t id; /* this process */
    bool logical;     /* it has a rank */
    ptl_uid_t uid;
    ptl_pt_index_t pt;
    struct queue queue;                 /* of what this process begins */
    _Atomic uint32_t told;              /* messages of requests whose event was not taken */
    struct probe *probes;               /* those that their request has left */
    struct notices *notices;            /* NULL until a region is registered with PW_RMA_NOTIFY */
    struct server *server;              /* NULL until a region has pairs and no handlers */
    struct calls *calls;                /* NULL until this process has asked another one's server */
    unsigned char scratch[ATOMIC_MOST]; /* for old values that nobody wants */
};

struct pw_rma {
    unsigned count, flags;
    bool logical;
    uint64_t incarnation; /* random: no other struct pw_rma has it */
    uint64_t token;       /* random, not 0: who knows it has a key */
    enum way most;        /* the best way that operations may go */
    /* bytes of peers' memory that may be mapped at a time: whole regions, and buckets */
    uint64_t map_most, lazy_most, bucket;
    uint32_t lazy_hits; /* in 1/65536: fewer hits do not pay for mapping */
    pthread_mutex_t lazy_lock;
    void *lazy_keys;             /* tree of keys whose regions are mapped in buckets, by address */
    struct pw_firehose *buckets; /* NULL until there is one */
    _Atomic int error;           /* the first one since the last pw_rma_flush_all() */
    atomic_bool stored;          /* something was stored to mapped memory */
    _Atomic uint64_t by_handlers;
    pthread_mutex_t lock;         /* of the rest */
    struct host *host;            /* NULL until a region has memory that peers can map */
    struct pw_rma_region *shared; /* those that have */
    uint64_t mapped, directs;     /* bytes; operations of peers that are no more */
    uint32_t first_serial, serials;
    unsigned regions, keys, peers_made;
    void *peers; /* tree by incarnation */
    struct pw_rma_peer *idle;
    struct rail rails[];
};

/* Atomic operations that went to mappable regions of a peer by a rail's messages (H5). */
struct away {
    _Atomic uint64_t begun, over; /* over: `begun` when it was last seen that none is under way */
};

struct pw_rma_peer {
    uint64_t incarnation;
    struct pw_rma *rma;
    unsigned number, keys;
    _Atomic int error; /* the first one since the last flush */
    struct pw_rma_peer *next_idle;
    struct life *life; /* NULL until memory of it was mapped */
    struct away away[PW_RMA_INTERFACES];
    _Atomic uint32_t calls[PW_RMA_INTERFACES]; /* two-sided operations that are not over */
    /* what direct operations have done since the last flush: stored; changed memory by instructions
     * that are fences themselves */
    _Alignas(64) atomic_bool stored;
    atomic_bool changed;
    _Atomic uint64_t directs; /* direct operations; of several threads some are missed */
};

struct pw_rma_region {
    struct pw_rma *rma;
    struct rail *rail;
    void *start;
    uint64_t length;
    ptl_match_bits_t bits;
    unsigned access;
    struct memory memory; /* of pw_rma_allocate(); else `start` is NULL */
    bool shared, served;  /* peers can map it; this library does its pairs */
    struct pw_rma_region *next_shared, *next_served;
    ptl_handle_me_t entries[ENTRY_KINDS]; /* or PTL_INVALID_HANDLE */
    /* notify.c: notices that no request has taken, the oldest first, and open requests */
    struct notice *oldest, **newest;
    _Atomic unsigned watchers;
};

/* What a key says. */
struct key {
    uint64_t incarnation;
    ptl_match_bits_t bits; /* of the region's plain entry */
    uint64_t length;
    ptl_process_t id;
    uint32_t rail, access;
    bool logical;
    ptl_pt_index_t pt, notify_pt; /* the second one with PW_RMA_NOTIFY */
    ptl_pt_index_t service_pt;    /* with TWO_SIDED in `access` */
    uint32_t max_atomic;          /* bytes of an atomic message that the target takes */
    uint64_t token;               /* of the owner, if peers can map the region; else 0 */
};

/* What is known of mapping a region. */
enum mapping { MAP_NEW, MAP_ASKED, MAP_NONE, MAP_ALL, MAP_BUCKETS };

struct pw_rma_key {
    struct key is;
    struct pw_rma_peer *peer;
    struct rail *rail;
    struct counter *counter;
    enum way most;
    _Atomic enum mapping mapping; /* MAP_ASKED: a thread is at it */
    int reason;                   /* with MAP_NONE: why, a negative errno */
    char *memory;                 /* with MAP_ALL and MAP_BUCKETS, and the rest */
    size_t mapped;                /* bytes there */
    const struct control *control;
    const struct life *life;
    /* with MAP_BUCKETS */
    int fd;
    char *reserved, *handed; /* addresses; where the user has been given all of it, or NULL */
    size_t reserved_size;
    _Atomic uint32_t hits, misses; /* how frequent hits are; how many misses there were */
};

/* A struct pw_rma_request. */
struct request {
    struct rail *rail;
    struct counter *counter;
    _Atomic uint32_t parts; /* messages under way, and one while the call goes on */
    _Atomic int32_t error;
};
_Static_assert(sizeof(struct request) == sizeof(struct pw_rma_request), "a request fits");

/* direct.c: operations on mapped memory. direct_find() maps a region as it can be; direct_put() and
 * the like do an operation and return true, or false if it must go by messages. */
enum mapping direct_find(struct pw_rma_key *key);
bool direct_put(struct pw_rma_key *key, const void *from, size_t length, uint64_t offset);
bool direct_get(struct pw_rma_key *key, void *to, size_t length, uint64_t offset);

/* direct_usable() tells whether the owner's process and the region are there (H2, H3). */
static inline bool direct_usable(const struct pw_rma_key *key)
{
    return atomic_load_explicit(&key->control->registered, memory_order_acquire) != 0 &&
           (atomic_load_explicit(&key->life->thread, memory_order_relaxed) & 0x3fffffff) != 0;
}

/* bucket.c: bucket_open() prepares a region to be mapped in buckets, 0 or a negative errno; the
 * caller has rma->lock. bucket_take() sees to it that a range is mapped until bucket_give(); false:
 * the operation goes by messages. */
int bucket_open(struct pw_rma_key *key, int fd);
void bucket_close(struct pw_rma_key *key);
bool bucket_take(struct pw_rma_key *key, uint64_t offset, size_t length,
                 struct pw_firehose_request *held);
void bucket_give(struct pw_rma_key *key, struct pw_firehose_request *held);

/* How a region is mapped, if its owner is there. */
static inline enum mapping direct_way(struct pw_rma_key *key)
{
    enum mapping m = atomic_load_explicit(&key->mapping, memory_order_acquire);
    if (m == MAP_NEW) {
        m = direct_find(key);
    }
    return m >= MAP_ALL && direct_usable(key) ? m : MAP_NONE;
}

/* direct_begin() gives where a range of a region is mapped until direct_end(); NULL: operations go
 * by messages. */
static inline char *direct_begin(struct pw_rma_key *key, uint64_t offset, size_t length,
                                 struct pw_firehose_request *held)
{
    enum mapping m = direct_way(key);
    bool there = m == MAP_ALL || (m == MAP_BUCKETS && bucket_take(key, offset, length, held));
    return there ? key->memory + offset : NULL;
}

static inline void direct_end(struct pw_rma_key *key, struct pw_firehose_request *held)
{
    if (atomic_load_explicit(&key->mapping, memory_order_relaxed) == MAP_BUCKETS) {
        bucket_give(key, held);
    }
}

/* Counts an operation, with plain stores: all that it costs beside itself. */
static inline void direct_done(struct pw_rma_peer *peer, bool stored, bool changed)
{
    uint64_t n = atomic_load_explicit(&peer->directs, memory_order_relaxed);
    atomic_store_explicit(&peer->directs, n + 1, memory_order_relaxed);
    if (stored) {
        atomic_store_explicit(&peer->stored, true, memory_order_relaxed);
    }
    if (changed) {
        atomic_store_explicit(&peer->changed, true, memory_order_relaxed);
    }
}

/* direct_flush() makes what was stored to a peer's memory visible before what comes later; -EPIPE:
 * the peer has ended since. direct_flush_all() does so for all peers, without that. */
int direct_flush(struct pw_rma_peer *peer);
void direct_flush_all(struct pw_rma *rma);

/* wire.c: keys as bytes. wire_read() returns what pw_rma_key_open() does. */
void wire_write(unsigned char *bytes, const struct key *key);
int wire_read(const unsigned char *bytes, size_t size, struct key *key);

/* open.c */
int errno_of(int ptl_code);

/* key.c: frees peers that are idle and over. The caller has rma->lock. */
void peers_reap(struct pw_rma *rma);
void peer_free(struct pw_rma_peer *peer);

/* region.c. region_make() is pw_rma_register() for memory of its own, which may be NULL; what
 * peers can map is theirs to find until region_leave(). */
int region_make(struct pw_rma *rma, void *start, size_t length, unsigned access,
                const struct memory *memory, struct pw_rma_region **region);

/* shared.c: begins and ends to hand a region's memory over. region_share() may fail: then peers
 * send messages. */
void region_share(struct pw_rma_region *r);
void region_leave(struct pw_rma_region *r);

/* options.c: PINWHEEL_RMA_PATH and PINWHEEL_RMA_MAP; -EINVAL, with a line on standard error. */
int options_read(struct pw_rma *rma);

/* The match bits of one of a region's entries. */
static inline ptl_match_bits_t entry_bits(ptl_match_bits_t plain, enum entry_kind kind)
{
    return plain | kind;
}

/* queue.c. queue_event() takes an event and gives it to take(); if there is none it waits for up to
 * `wait` ms, or while another thread takes events. The caller has the lock, which is free
 * meanwhile. 0; -EAGAIN: there was none; -ECANCELED. */
typedef void take_event(void *owner, const ptl_event_t *event);
int queue_open(struct queue *q, ptl_handle_ni_t ni, size_t events);
void queue_close(struct queue *q);
int queue_event(struct queue *q, ptl_time_t wait, take_event *take, void *owner);

/* notice.c. notices_open() gives a rail what notified messages need, if it has not; a Portals code.
 * The caller has rma->lock. notices_expect() makes a region one whose notices are kept, 0 or
 * -ENOMEM; notices_forget() ends that, and drops them. notices_watched(): a request is open. */
int notices_open(struct rail *rail);
void notices_close(struct rail *rail);
int notices_expect(struct pw_rma_region *region);
void notices_forget(struct pw_rma_region *region);
bool notices_watched(struct pw_rma_region *region);
ptl_pt_index_t notices_pt(const struct rail *rail);

/* Finds the oldest notice of this region that fits and takes it out. The caller has the queue's
 * lock (notices_queue()). */
bool notices_take(struct pw_rma_region *region, const struct pw_notice *wanted,
                  struct pw_notice *found);
struct queue *notices_queue(const struct rail *rail);

/* Takes what has come, after waiting for up to `wait` ms. 0, -EAGAIN: nothing has come, -ENOBUFS:
 * there is no room left, -ECANCELED. The caller has the queue's lock. */
int notices_look(struct rail *rail, ptl_time_t wait);

static inline ptl_match_bits_t notify_bits(ptl_match_bits_t plain)
{
    return plain << (TAG_BITS - ENTRY_BITS);
}

/* notify.c: probes ask whether a process is there. probe_over() tells whether the answer is known,
 * and then whether the process has ended. probe_leave() frees a probe when it is over;
 * probes_free() frees those that are, or all. */
struct probe *probe_make(struct rail *rail, ptl_process_t source);
void probe_begin(struct probe *p);
bool probe_over(struct probe *p, bool *ended);
ptl_process_t probe_target(const struct probe *p);
void probe_leave(struct rail *rail, struct probe *p);
void probes_free(struct rail *rail, bool all);

/* over.c: how operations end */

/* What is added to the user pointer of a message beside the pointer itself. */
enum { USER_REQUEST = 1, USER_NOTIFIED = 2, USER_CALL = 4 };

/* An operation while its call goes on. */
struct operation {
    struct pw_rma_key *key;
    struct request *request;
    void *user_ptr;
    ptl_handle_md_t md;
    bool tells;      /* `md` is the telling one */
    bool passes;     /* a flush does not keep it away (C7) */
    uint64_t number; /* of its last message in the counter */
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

/* Notes the error of an operation that cannot be begun any more; of a request, or if it is NULL of
 * a peer. */
void operation_failed(struct operation *o, int code);
void error_note(struct request *request, struct pw_rma_peer *peer, int code);

/* Waits for an event of what this process begins, and takes it; 0 or -ECANCELED. */
int rail_event(struct rail *rail);

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

/* direct_atomic.c. direct_atomic_can(): elements of this type can be done by instructions, at their
 * natural alignment. direct_atomic() does all elements, or a compare_swap if `compare` is not NULL;
 * false: they must go by messages. */
bool direct_atomic_can(enum pw_rma_op op, enum pw_rma_type type);
bool direct_atomic(struct atomic *a, struct pw_rma_key *key, size_t length, const void *compare);

/* atomic_went() counts a message of an atomic operation that has begun (H5). */
static inline void atomic_went(const struct operation *o)
{
    const struct pw_rma_key *key = o->key;
    if (key->is.token != 0 || key->memory != NULL) {
        atomic_fetch_add(&key->peer->away[key->is.rail].begun, 1);
    }
}

/* A request whose operation is over when its call returns. */
static inline void request_over(struct pw_rma_key *key, struct pw_rma_request *request)
{
    struct request *r = (struct request *)request;
    if (r != NULL) {
        r->rail = key->rail;
        r->counter = key->counter;
        atomic_store_explicit(&r->parts, 0, memory_order_relaxed);
        atomic_store_explicit(&r->error, 0, memory_order_relaxed);
    }
}

/* call.c: two-sided operations (call.h). call_send() sends the messages of an operation on pairs.
 * calls_wait() waits for those to a peer, calls_wait_all() for all of a rail; 0 or -ECANCELED. The
 * takers of events call call_answered(), and call_told() with the end of a call's message, which
 * gives the counter of that. */
enum { ASK_MS = 200 };
int call_send(struct atomic *a, size_t length, size_t element);
int calls_wait(struct pw_rma_peer *peer, unsigned rail);
int calls_wait_all(struct rail *rail);
void calls_ask(struct rail *rail);
void calls_close(struct rail *rail);
void call_answered(struct rail *rail, const ptl_event_t *event);
struct counter *call_told(void *slot, int code);

/* serve.c: server_open() makes a rail's server, if it has none, 0 or a negative errno; the caller
 * has rma->lock. served_begin() and served_end(): it does the pairs of this region. */
int server_open(struct pw_rma *rma, struct rail *rail);
void server_close(struct rail *rail);
ptl_pt_index_t server_pt(const struct rail *rail);
void served_begin(struct pw_rma_region *r);
void served_end(struct pw_rma_region *r);

/* counter_wait() waits until so many messages are over; 0 or -ECANCELED. */
int counter_wait(struct rail *rail, struct counter *c, uint64_t messages);
bool counter_is_over(struct counter *c);

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
