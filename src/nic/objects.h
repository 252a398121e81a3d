/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC's objects. The stages are plain functions on these; none
 * of them reads a clock or knows a transport.
 *
 *   process ── nics ── nic ── ni[4] ── tables: EQ, CT, MD, LE/ME, triggered, HPU memory
 *                       │              └─ portal table ── lists of entries
 *                       ├─ peers ── waiting operations
 *                       └─ fabric
 *
 * One lock a NIC guards all of it, its fabric included. It is never held while
 * a handler's own code runs. An object that others refer to is reached by
 * pointer and handle (struct eq_ref, ct_ref): objects of a table never move, and their memory
 * stays until the NI is closed. So a reference to a freed object is noticed by the handle.
 */
#ifndef NIC_OBJECTS_H
#define NIC_OBJECTS_H

#include "base/list.h"
#include "base/lock.h"
#include "base/mutex.h"
#include "base/options.h"
#include "base/table.h"
#include "fabric/fabric.h"
#include "hpu/device_profile.h"
#include "hpu/exec.h"
#include "hpu/memory.h"
#include "hpu/sched.h"
#include "hpu/watchdog.h"
#include "nic/atomic.h"
#include "nic/event.h"
#include "nic/match/match.h"
#include "nic/match/unexpected.h"
#include "nic/memory.h"
#include "nic/place.h"
#include "nic/request.h"
#include "nic/share.h"
#include "nic/stats.h"
#include "portals4.h"
#include "spin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define NICS_MAX 8
#define NI_KINDS STATS_KINDS /* with or without matching, logical or physical */
#define NI_TABLES (HANDLE_TIMER - HANDLE_EQ + 1)
/* A longer message goes packet by packet, so that sender and receiver copy at the same time. */
#define NIC_SEND_NOW_MAX 65536

struct ni;
struct nic;

/* ---- counters; event queues are in event.h ---- */

struct ct {
    struct table_slot slot;
    struct ni *ni;
    _Atomic uint64_t success, failure;
    struct list triggers; /* struct triggered, by threshold, and by age where that is equal */
    struct rungs *rungs;  /* some of these as places to search from, or NULL */
};

/* A program thread that waits for one counter to reach a value, ni_wait_mark(). */
struct ct_mark {
    struct list link; /* in nic->counting, while the thread sleeps */
    const struct ct *ct;
    uint64_t success; /* the thread wakes at this many successes, or at any failure */
};

/* ---- target ---- */

/* The handlers of an entry, which only an entry with handlers has. */
struct handlers {
    ptl_header_handler_t header;
    ptl_payload_handler_t payload;
    ptl_completion_handler_t completion;
    struct hpu_memory *memory;
    bool own_memory;
    void *host_base;
    uint64_t host_length;
    uint64_t user_header;
    uint64_t hpu_mask;         /* HPUs that may run the handlers; 0: all */
    struct vector host_vector; /* PTL_HANDLER_IOVEC: a copy of the parts */
    /* counts of calls on the stats page, for readers in other processes */
    struct stats_context *stats;
    struct hpu_queue queue; /* with nic->sched */
    unsigned together;      /* packets that one payload call takes besides its first */
    /* with nic->sched: its handlers are taken to be slow for so many more messages */
    unsigned slow;
    bool inactive;                  /* no message finds the entry before PtlHandlersActivate() */
    struct hpu_device_code code[3]; /* by enum hpu_call, with nic->device */
    bool taken;                     /* the entry is use-once, and a message uses it */
    unsigned timers;                /* timers that run these handlers */
    /* a handler runs on although its NI is closed: the memory that it uses is kept */
    bool orphaned;
    bool keeps_header;      /* PTL_HANDLER_KEEP_USER_HDR */
    uint8_t block;          /* kind of block that each message takes (blocks.c); 0: none */
    uint32_t message_state; /* bytes of that block that are message state */
};

/* Blocks of memory for messages at handlers, all of one size (spin/blocks.c). */
struct block_list {
    struct block *unused; /* blocks that no message uses */
    unsigned count;       /* of all blocks, those in use included */
    unsigned entries;     /* entries whose messages take such blocks */
};

struct hpu_memory {
    struct table_slot slot;
    struct ni *ni;
    struct hpu_mem *mem;
    unsigned users; /* entries whose handlers use it */
};

/* A timer that runs the handlers of an entry: spin/timer.h. */
struct timer {
    struct table_slot slot;
    struct list link; /* of nic->timers, by `due` */
    struct le *le;
    int64_t due;             /* when the timer is looked at next */
    int64_t tick;            /* the tick that `due` is for: begin + n * period */
    int64_t period;          /* 0: it ticks once */
    uint64_t argument;       /* hdr_data of the messages that its ticks are */
    struct invocation *busy; /* its tick that is in progress; NULL: none */
};

/* A list entry or a match list entry. */
struct le {
    struct table_slot slot;
    bool linked;
    bool plain; /* a message that has come whole may end in one step: LE_PLAIN_OPTIONS */
    /* the entry takes puts by the fast path: it has LE_FAST_OPTIONS and is in the priority list */
    bool fast;
    /* hidden from messages: its handlers are inactive, or a message may still give it back */
    bool reserved;
    bool auto_unlinked; /* AUTO_UNLINK is due when its last message ends */
    bool unlink_told;   /* AUTO_UNLINK was posted, AUTO_FREE is due with its last header */
    bool awaited;       /* a triggered operation refers to it, and will link it */
    unsigned users;     /* messages in progress */
    unsigned headers;   /* unexpected headers that refer to it */
    uint64_t offset;    /* the locally managed offset */

    struct ni *ni; /* from here on as the entry was appended */
    uint32_t pt_index;
    void *start;
    struct vector vector; /* PTL_IOVEC: a copy of the parts, which are the entry's */
    uint64_t length;
    uint64_t min_free;
    unsigned options;
    ptl_uid_t uid;
    ptl_list_t list;
    struct ct_ref ct;
    void *user_ptr;
    struct handlers *handlers;
    struct match_entry match;
};

/* An unexpected header: that of a message that an entry of the overflow list took. It waits until
 * an entry of the priority list, or a search, claims it. */
struct unexpected {
    struct table_slot slot;
    struct unexpected_header header;
    struct le *le; /* the entry that took the message */
    /* the entry that has claimed it, and waits until the message is complete; or NULL */
    struct le *claimant;
    bool busy;         /* the message is in progress */
    ptl_event_t event; /* the ..._OVERFLOW event, complete but for user_ptr */
};

/* The result of a search of a priority list: the entry, and the source and bits of the header that
 * found it. While the entry is in the list it remains the first one for such headers, since new
 * entries come behind it. But it may not have room for them. */
struct found {
    struct le *le; /* NULL: nothing is remembered, or the entry has left the list */
    uint32_t nid, pid;
    uint64_t bits;
};

struct pt {
    bool allocated;
    bool enabled;
    unsigned options;
    unsigned users; /* messages in progress */
    struct eq_ref eq;
    struct match_list priority, overflow;
    struct unexpected_list unexpected;
    /* the entry of the priority list that matched last, if it is still linked; else NULL */
    struct le *recent;
    struct found found;
    unsigned with_handlers; /* linked entries that have handlers */
    bool refusing;          /* flow control has disabled the portal table entry, not the program */
    /* PT_DISABLED is to be posted when no message uses the portal table entry any more */
    bool refusal_due;
    /* A quiet operation with these match bits finds this entry, as long as ni->epoch is the
     * same. */
    uint64_t quiet_epoch, quiet_bits;
    struct le *quiet_entry;
};

/* A network interface. Its memory is that of all NIs of its number, one after the other (invariant
 * set 7), for which `nic` and `kind` are the same. Without the lock a thread may also read
 * `handle`, `rank` and `counters`, and reach objects of the tables by their handles. */
struct ni {
    struct nic *nic;
    unsigned kind; /* index in nic->ni: bit 0 is set without matching, bit 1 if physical */
    unsigned options;
    unsigned users;                 /* calls of PtlNIInit less those of PtlNIFini */
    _Atomic ptl_handle_ni_t handle; /* 0: the NI is closed */
    ptl_ni_limits_t limits;
    union {
        struct table tables[NI_TABLES]; /* by kind of handle, from HANDLE_EQ on */
        struct {
            struct table eqs, cts, mds, les, hpu_memories, timers;
        };
    };
    struct table unexpected, triggered;
    struct triggered *spare_triggered;
    struct pt *pts;
    uint64_t epoch; /* not 0; it changes when quiet operations may find another entry: quiet.h */
    ptl_process_t *map;
    uint64_t map_size;
    struct nic_peer **map_peers; /* by rank; NULL: not looked up yet */
    ptl_rank_t rank;
    uint64_t *registers; /* by ptl_sr_index_t, on the stats page */
    struct hpu_counter counters[PTL_SPIN_COUNTERS];
    unsigned in_flight; /* operations and messages that refer to the NI */
    unsigned bundles;   /* calls of PtlStartBundle less those of PtlEndBundle */
    unsigned waiting;   /* program threads that wait for something of the NI, or that copy */
    bool closing;       /* PtlNIFini has begun: these threads are to leave */
    bool halted;        /* no handler of the NI begins or is resumed any more */
};

static inline bool ni_is_matching(const struct ni *ni)
{
    return (ni->kind & 1) == 0;
}

static inline bool ni_is_logical(const struct ni *ni)
{
    return (ni->kind & 2) == 0;
}

/* ni_has_pt() says whether there is a portal table entry with this index; ni_pt() returns it, or
 * NULL. pt_is_open() says whether it takes messages. */
static inline bool ni_has_pt(const struct ni *ni, uint32_t index)
{
    return likely(index <= (unsigned)ni->limits.max_pt_index);
}

static inline struct pt *ni_pt(const struct ni *ni, uint32_t index)
{
    return ni_has_pt(ni, index) ? &ni->pts[index] : NULL;
}

static inline bool pt_is_open(const struct pt *pt)
{
    return pt->allocated && pt->enabled;
}

/* ---- NIC and process ---- */

struct nic_peer {
    struct list link;   /* in its hash chain */
    struct list all;    /* in nic->all_peers */
    struct list busy;   /* in nic->busy, while operations or asks wait for the peer */
    struct list sought; /* in nic->sought, until a fabric has found the peer */
    struct nic *nic;
    uint32_t nid, pid;
    ptl_uid_t uid;
    struct fabric_peer *fabric;   /* NULL: no fabric has found the peer yet */
    const struct fabric_ops *ops; /* of the fabric that has it */
    /* struct op that wait to be sent, in order; asks are apart */
    struct list waiting;
    struct list asks; /* struct op of handlers that fetch (ask.c), in order */
    /* places in nic->shares that waiting messages of handlers have taken */
    unsigned places[SHARE_KINDS];
    /* operations that expect a response, and how many may */
    unsigned outstanding, outstanding_most;
    unsigned asking;     /* asks to this peer that wait for their answers */
    uint64_t asks_sent;  /* asks that have left for this peer */
    uint64_t asks_taken; /* asks of this peer that this NIC has decided */
    /* one bit for each of the peer's next asks: it has withdrawn that one */
    uint64_t asks_withdrawn;
    /* when it is given up: if it was not found until then, and if it has answered */
    int64_t deadline, contact;
    int64_t retry; /* when to try next to reach it */
    /* The first message object of each channel. */
    struct rx *rx[FABRIC_CLASSES];
    /* struct invocation of its messages that have left their channel, in order (detach.c) */
    struct list detached;
    uint64_t detached_packets;
    bool self; /* it is this NIC itself */
    /* the peer is gone; some messages of it that have left their channel are not over (detach.c) */
    bool dead;
    bool staged;   /* requests to it never go straight: it is this NIC, or PINWHEEL_FASTPATH=off */
    bool acked;    /* an ack was sent to it, and no request since: peer_foresend() */
    bool told;     /* the log has said why it cannot be reached */
    bool answered; /* it exists, and a fabric is making contact */
};

#define PEER_BUCKETS 256
#define SPARE_PIECES 16 /* of HPU memory */
#define BLOCK_KINDS 9   /* sizes of blocks; kind 0 is no block */

/* The NIC of an interface. Its memory is that of all NICs of its index, one after the other
 * (invariant set 7). Without the lock a thread may only read `process`, `index` and what is
 * _Atomic. */
struct nic {
    struct process *process;
    unsigned index;
    _Atomic uint32_t nid, pid;
    uint64_t incarnation;
    ptl_uid_t uid;
    size_t packet_size;
    size_t inline_max; /* the longest payload that the fabric's send_short() takes */
    /* payloads below this many bytes go by send_short(); 0 with PINWHEEL_FASTPATH=off */
    uint64_t short_end;
    /* requests below it that expect no answer leave at once, without an operation; or 0, as
     * short_end */
    uint64_t now_end;
    /* how much longer a peer that has answered is waited for */
    int64_t contact_ns;
    _Atomic(const struct fabric_ops *) ops; /* of the home fabric; of a closed NIC fabric_none */
    struct fabric *_Atomic fabric;
    const struct fabric_time *time; /* virtual, of its home (timed.h); NULL: the clock's */
    /* of the other fabric, UDP, for peers that the home fabric does not reach */
    const struct fabric_ops *net_ops;
    struct fabric *_Atomic net;         /* NULL: there is none */
    bool net_only;                      /* the home fabric carries only messages to oneself */
    _Atomic uint32_t *_Atomic doorbell; /* of the home fabric, or `no_doorbell` */
    _Atomic uint32_t no_doorbell;
    struct ni *ni[NI_KINDS];
    struct list peers[PEER_BUCKETS];
    struct list all_peers;
    struct list sought; /* peers that no fabric has found yet, the oldest first */
    unsigned sought_count;
    /* the peer that stands for the host, as sender of what it starts itself (invoke.c) */
    struct nic_peer host;
    struct nic_peer *last_peer; /* the peer found last by a physical address; NULL: none */
    struct list busy;
    struct table operations; /* struct op */
    unsigned queued_program;
    struct shares shares[SHARE_KINDS];
    struct list acks_due; /* struct rx with gathered acks */
    struct list fired;    /* struct triggered whose threshold was reached */
    /* the object of a message to oneself that passes through its stages at once (self.c) */
    struct rx *self;
    bool self_afar; /* a message to oneself may be queued or in progress on the fabric */
    bool fastpath;  /* PINWHEEL_FASTPATH, for code that is not hot; the hot one tests `short_end` */
    struct hpu_pool *hpus;
    /* HPUs that are threads; NULL: the thread that makes progress runs handlers */
    struct hpu_sched *sched;
    struct hpu_dma_engine *dma_engine; /* copies large transfers of handlers while these run on */
    struct hpu_device *device; /* PINWHEEL_HPU=rv32: what runs handlers; NULL: native code */
    struct hpu_watchdog
        /* ends handlers that use up their budget; NULL: not started yet, or there is no budget */
        *watchdog;
    uint64_t hpu_memory_used;
    struct hpu_mem *spare_piece[SPARE_PIECES];
    unsigned spare_pieces;
    struct block_list blocks[BLOCK_KINDS];
    struct list timers; /* struct timer (timer.h), by `due` */
    /* struct invocation (invoke.c): those that make progress, and those that wait for
     * invoke_stir() */
    struct list invoked, invoked_away;
    struct list spare_invocations; /* invocations that have ended, kept for the next messages */
    unsigned spares;
    unsigned invocations;    /* invocations in both lists */
    struct nic_stats *stats; /* on the fabric's stats page, which other processes read */
    int64_t reported;        /* when the network last put its figures there */
    int64_t (*now)(void);    /* time in nanoseconds, by which peers are given up and timers tick */
    /* asks for a call of timers_advance() at `due` */
    void (*wake_at)(struct nic *nic, int64_t due);
    int64_t wake_due;                /* in virtual time: when it will be; -1: nobody waits for it */
    struct hpu_sched_time hpu_time;  /* likewise: that of `sched` */
    struct hpu_device_rows hpu_rows; /* likewise: of `device`, if its cycles are looked into */
    /* calls of an entry's handlers that may wait for HPUs; messages of a sender that handlers of an
     * entry may have at a time, 1 but in virtual time (turn.c) */
    uint64_t queue_most;
    unsigned messages_most;
    uint64_t lost, lost_bytes; /* in virtual time: packets for handlers that found no room */
    unsigned unlocked; /* threads that run handlers or copy, and have released the lock meanwhile */
    unsigned handling; /* those among them that run handlers */

    /* progress.c */
    struct lock lock;
    _Atomic bool polled;
    /* acks or operations wait, or triggered ones have fired. Only then does nic_advance() look at
     * those lists, and only it clears this */
    _Atomic bool attention;
    int64_t linger_end; /* when PtlNIFini stops waiting; 0: it does not */
    bool haunted;       /* a program thread has stayed inside: no other NIC gets this memory */
    /* The lock guards the next four. They are apart from other fields' words, as compilers load
     * several at once. */
    bool thread_idle; /* the NIC thread sleeps, and not for a lease only */
    bool events_due;  /* the NIC thread was rung, or told of a death */
    bool stalled;     /* a message at handlers waits for room, for a limited time */
    bool stop;
    struct wakeup wakeup;
    unsigned waiters;     /* program threads that sleep on the doorbell */
    struct list counting; /* struct ct_mark of those among them that wait for one counter */
    int wake_fd;
    int alarm_fd; /* a timerfd for the timers of handlers; -1: not made yet */
    int thread_epoll;
    pthread_t thread;
    unsigned poll_next; /* index of the event queue that PtlEQPoll looks at first */
    _Atomic unsigned empty_polls;
    /* how long waiting threads spin and yield: learned from earlier waits */
    _Atomic int64_t spin_ns, yield_ns;
    _Atomic int64_t slept_ns; /* average of the waits that end asleep */
    _Atomic int64_t probe_at; /* when these are measured anew */
    _Atomic bool probe_due;
    _Atomic unsigned probes;
    struct place place; /* of the first thread, while it polls */
};

struct process {
    struct mutex lock;
    _Atomic unsigned users;  /* calls of PtlInit less those of PtlFini */
    _Atomic unsigned aborts; /* calls of PtlAbort */
    struct options options;
    struct slmp_key key; /* of the job, from PtlSetJobKey; length 0: none */
    bool asymmetric;
    struct nic *nics[NICS_MAX];
    struct ni *nis[NICS_MAX * NI_KINDS];
    /* The memory of NICs and NIs, also of closed ones. */
    struct nic *nic_memory[NICS_MAX];
    struct ni *ni_memory[NICS_MAX * NI_KINDS];
    unsigned generations[NICS_MAX * NI_KINDS];
};

#endif
