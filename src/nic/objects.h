/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC's objects. Stages are plain functions on them; none knows a clock or
 * a transport.
 *
 *   process ── nics ── nic ── ni[4] ── tables: EQ, CT, MD, LE/ME, triggered, HPU memory
 *                       │              └─ portal table ── lists of entries
 *                       ├─ peers ── waiting operations
 *                       └─ fabric
 *
 * One lock a NIC guards all of it, its fabric included. It is never held while
 * a handler's own code runs. An object that others refer to is reached by
 * pointer and handle (struct eq_ref, ct_ref): objects of a table never move
 * and their memory stays until the NI is closed, so that a freed one is
 * noticed by its handle.
 */
#ifndef NIC_OBJECTS_H
#define NIC_OBJECTS_H

#include "base/list.h"
#include "base/lock.h"
#include "base/mutex.h"
#include "base/options.h"
#include "base/table.h"
#include "fabric/fabric.h"
#include "hpu/device.h"
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
#define NI_KINDS STATS_KINDS /* matching or not, logical or physical */
#define NI_TABLES (HANDLE_TIMER - HANDLE_EQ + 1)
/* Longer messages go packet by packet, so that both sides work at once. */
#define NIC_SEND_NOW_MAX 65536

struct ni;
struct nic;

/* ---- counters; event queues are in event.h ---- */

struct ct {
    struct table_slot slot;
    struct ni *ni;
    _Atomic uint64_t success, failure;
    struct list triggers; /* struct triggered, by threshold, then by age */
    struct rungs *rungs;  /* places in them, or NULL */
};

/* A thread that waits for one counter to get somewhere, ni_wait_mark(). */
struct ct_mark {
    struct list link; /* of nic->counting, while it sleeps */
    const struct ct *ct;
    uint64_t success; /* or any failure */
};

/* ---- target ---- */

/* The part that only an entry with handlers has. */
struct handlers {
    ptl_header_handler_t header;
    ptl_payload_handler_t payload;
    ptl_completion_handler_t completion;
    struct hpu_memory *memory;
    bool own_memory;
    void *host_base;
    uint64_t host_length;
    uint64_t user_header;
    uint64_t hpu_mask;              /* HPUs that may run them, 0: all */
    struct vector host_vector;      /* PTL_HANDLER_IOVEC: a copy of the parts */
    struct stats_context *stats;    /* counts of its calls, for others to read */
    struct hpu_queue queue;         /* with nic->sched */
    unsigned together;              /* packets that a payload call takes besides its first */
    unsigned slow;                  /* messages until it may be taken for quick, with nic->sched */
    bool inactive;                  /* no message finds the entry before PtlHandlersActivate() */
    struct hpu_device_code code[3]; /* by enum hpu_call, with nic->device */
    bool taken;                     /* a message has the entry, which is use-once, in hand */
    unsigned timers;                /* that run them */
    bool orphaned;                  /* one runs on, and its NI is closed: what it uses is kept */
    bool keeps_header;              /* PTL_HANDLER_KEEP_USER_HDR */
    uint8_t block;                  /* kind of block that each message takes (blocks.c); 0: none */
    uint32_t message_state;         /* bytes of that block which are state */
};

/* Memory of messages at handlers, of one size (spin/blocks.c). */
struct block_list {
    struct block *unused; /* by no message */
    unsigned count;       /* of all blocks, those in use included */
    unsigned entries;     /* whose messages take such blocks */
};

struct hpu_memory {
    struct table_slot slot;
    struct ni *ni;
    struct hpu_mem *mem;
    unsigned users; /* entries */
};

/* A timer that runs the handlers of an entry: spin/timer.h. */
struct timer {
    struct table_slot slot;
    struct list link; /* of nic->timers, by `due` */
    struct le *le;
    int64_t due;             /* when it is looked at next */
    int64_t tick;            /* the tick that `due` is for: begin + n * period */
    int64_t period;          /* 0: it ticks once */
    uint64_t argument;       /* hdr_data of its ticks */
    struct invocation *busy; /* its tick that has not ended; NULL: none */
};

/* A list entry or a match list entry. */
struct le {
    struct table_slot slot;
    bool linked;
    bool plain;         /* a message that is here whole ends in one step: LE_PLAIN_OPTIONS */
    bool fast;          /* it takes puts by the fast path: LE_FAST_OPTIONS, in the priority list */
    bool reserved;      /* used up by a message whose handlers have the last word */
    bool auto_unlinked; /* AUTO_UNLINK is due when its last message ends */
    bool unlink_told;   /* AUTO_UNLINK was posted, AUTO_FREE is due with its last header */
    bool awaited;       /* a triggered operation will link it */
    unsigned users;     /* messages in progress */
    unsigned headers;   /* unexpected headers that refer to it */
    uint64_t offset;    /* locally managed */

    struct ni *ni; /* from here on what it was appended with */
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

/* An unexpected header: a message that an entry of the overflow list took, until
 * an entry of the priority list, or a search, claims it. */
struct unexpected {
    struct table_slot slot;
    struct unexpected_header header;
    struct le *le;       /* that took it */
    struct le *claimant; /* that waits for it to be complete, or NULL */
    bool busy;           /* the message is in progress */
    ptl_event_t event;   /* ..._OVERFLOW, but for user_ptr */
};

/* The result of a search of a priority list: the entry, and the source and bits of the header. As
 * long as the entry is in the list it is the first one for such headers, since none comes before
 * it; but it may not fit them. */
struct found {
    struct le *le; /* NULL: none, or it is not in the list any more */
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
    struct le *recent; /* of the priority list: the entry that matched last, while it is in it */
    struct found found;
    unsigned with_handlers; /* entries that have some */
    bool refusing;          /* flow control has closed it: not enabled */
    bool refusal_due;       /* PT_DISABLED is to be posted when the last message in progress ends */
    /* A quiet operation with these match bits finds this entry, while the epoch is the NI's. */
    uint64_t quiet_epoch, quiet_bits;
    struct le *quiet_entry;
};

/* Its memory is that of all NIs of its number, one after the other (invariant set 7): `nic` and
 * `kind` are theirs, too. Without the lock only `handle`, `rank` and `counters` may be looked at
 * besides, and objects of the tables by their handles. */
struct ni {
    struct nic *nic;
    unsigned kind; /* index in nic->ni: 1 not matching, 2 physical */
    unsigned options;
    unsigned users;                 /* PtlNIInit less PtlNIFini */
    _Atomic ptl_handle_ni_t handle; /* 0: it is closed */
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
    uint64_t epoch; /* not 0; another one once quiet operations may find something else: quiet.h */
    ptl_process_t *map;
    uint64_t map_size;
    struct nic_peer **map_peers; /* by rank, NULL: to be looked up */
    ptl_rank_t rank;
    uint64_t *registers; /* by ptl_sr_index_t, on the stats page */
    struct hpu_counter counters[PTL_SPIN_COUNTERS];
    unsigned in_flight; /* ops and messages that refer to it */
    unsigned bundles;   /* PtlStartBundle less PtlEndBundle */
    unsigned waiting;   /* program threads in a wait for something of it, or copying */
    bool closing;       /* they are to leave */
    bool halted;        /* no handler begins or goes on any more */
};

static inline bool ni_is_matching(const struct ni *ni)
{
    return (ni->kind & 1) == 0;
}

static inline bool ni_is_logical(const struct ni *ni)
{
    return (ni->kind & 2) == 0;
}

/* ni_has_pt() says whether there is a portal table entry with an index; ni_pt() is that entry, or
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
    struct list link;   /* of its hash chain */
    struct list all;    /* of nic->all_peers */
    struct list busy;   /* of nic->busy, while it has waiting operations, asks included */
    struct list sought; /* of nic->sought, until it is found */
    struct nic *nic;
    uint32_t nid, pid;
    ptl_uid_t uid;
    struct fabric_peer *fabric;             /* NULL: not found yet */
    const struct fabric_ops *ops;           /* of its fabric */
    struct list waiting;                    /* struct op, in order, but for asks */
    struct list asks;                       /* struct op of handlers that fetch (ask.c), in order */
    unsigned places[SHARE_KINDS];           /* of shares: handlers' messages among them */
    unsigned outstanding, outstanding_most; /* ops that expect a response */
    unsigned asking;                        /* asks that wait for their answers */
    uint64_t asks_sent;                     /* asks that have left for it */
    uint64_t asks_taken;                    /* asks of it that are decided */
    uint64_t asks_withdrawn;   /* a bit for each of its next asks; set: it is not to be done */
    int64_t deadline, contact; /* to be found until then; if it has answered, until then */
    int64_t retry;             /* when to look next */
    /* Of each channel the first. */
    struct rx *rx[FABRIC_CLASSES];
    struct list detached; /* struct invocation, in order (detach.c) */
    uint64_t detached_packets;
    bool self;     /* the NIC's own */
    bool dead;     /* the peer is gone; offloaded messages of it are left (detach.c) */
    bool staged;   /* no request goes straight: it is the NIC's own, or PINWHEEL_FASTPATH=off */
    bool acked;    /* an ack left, and no request since: it is not looking for one, it seems */
    bool told;     /* the log says why it cannot be reached */
    bool answered; /* it is there, and contact is being made */
};

#define PEER_BUCKETS 256
#define SPARE_PIECES 16 /* of HPU memory */
#define BLOCK_KINDS 9   /* sizes of blocks; kind 0 is no block */

/* Its memory is that of all NICs of its index, one after the other (invariant set 7). Without the
 * lock only `process`, `index` and what is _Atomic may be looked at. */
struct nic {
    struct process *process;
    unsigned index;
    _Atomic uint32_t nid, pid;
    uint64_t incarnation;
    ptl_uid_t uid;
    size_t packet_size;
    size_t inline_max;  /* payloads up to here fit the fabric's short cut */
    uint64_t short_end; /* payloads below it take the short cut */
    uint64_t now_end;   /* those below it leave whole, and as no operation if they want no answer */
    /* With PINWHEEL_FASTPATH=off both are 0. */
    int64_t contact_ns;                     /* how long one that has answered is waited for */
    _Atomic(const struct fabric_ops *) ops; /* of its home; of a closed NIC fabric_none */
    struct fabric *_Atomic fabric;
    const struct fabric_ops
        *net_ops;               /* of the fabric for peers that the home does not reach: UDP's */
    struct fabric *_Atomic net; /* NULL: there is none */
    bool net_only;              /* home is for messages to oneself */
    _Atomic uint32_t *_Atomic doorbell; /* of its home, or `no_doorbell` */
    _Atomic uint32_t no_doorbell;
    struct ni *ni[NI_KINDS];
    struct list peers[PEER_BUCKETS];
    struct list all_peers;
    struct list sought; /* peers that no fabric has, the oldest first */
    unsigned sought_count;
    struct nic_peer host;       /* the sender of what the host starts itself (invoke.c) */
    struct nic_peer *last_peer; /* of a physical target; NULL: none */
    struct list busy;
    struct table operations; /* struct op */
    unsigned queued_program;
    struct shares shares[SHARE_KINDS];
    struct list acks_due; /* struct rx with gathered acks */
    struct list fired;    /* struct triggered whose threshold was reached */
    struct rx *self;      /* self.c: a message to oneself that is in its stages */
    bool self_afar; /* a message to oneself may be on the fabric's way, queued or in progress */
    bool fastpath;  /* PINWHEEL_FASTPATH, for what is not hot; else see `short_end` */
    struct hpu_pool *hpus;
    struct hpu_sched *sched; /* HPUs that are threads; NULL: whoever makes progress is one */
    struct hpu_dma_engine *dma_engine; /* copies large transfers beside their handlers */
    struct hpu_device *device; /* PINWHEEL_HPU=rv32: what runs handlers; NULL: native code */
    struct hpu_watchdog
        *watchdog; /* over the handlers' time; NULL: not yet, or there is no budget */
    uint64_t hpu_memory_used;
    struct hpu_mem *spare_piece[SPARE_PIECES];
    unsigned spare_pieces;
    struct block_list blocks[BLOCK_KINDS];
    struct list timers;                /* struct timer (timer.h), the first one due first */
    struct list invoked, invoked_away; /* struct invocation (invoke.c) */
    struct list spare_invocations;     /* ended ones, kept for the next messages */
    unsigned spares;
    unsigned invocations;    /* in both */
    struct nic_stats *stats; /* the fabric's: what others may know */
    int64_t reported;        /* when the other fabric told it last of its peers */
    int64_t (*now)(void);    /* nanoseconds, for how long peers are sought, and for timers */
    void (*wake_at)(struct nic *nic, int64_t due); /* timers_advance() is to be called then */
    unsigned unlocked; /* threads that run handlers or copy, without the lock */
    unsigned handling; /* of these, threads that run handlers */

    /* progress.c */
    struct lock lock;
    _Atomic bool polled;
    _Atomic bool attention; /* operations or acks wait, or some have fired: only nic_advance() can
                               tell, and looks at what waits only then */
    int64_t linger_end;     /* until when closing may take; 0: not closing */
    bool haunted;           /* somebody did not leave: nobody else is to have its memory */
    /* Under the lock, in a word of their own: compilers load several at once. */
    bool thread_idle; /* it sleeps without a lease */
    bool events_due;  /* it was rung or told of a death */
    bool stalled;     /* a message with handlers finds no room: its patience has an end */
    bool stop;
    struct wakeup wakeup;
    unsigned waiters;     /* program threads asleep on the doorbell */
    struct list counting; /* struct ct_mark of those of them that wait for one counter */
    int wake_fd;
    int alarm_fd; /* a timer of the kernel's, for those of handlers; -1: none yet */
    int thread_epoll;
    pthread_t thread;
    unsigned poll_next; /* place of the queue that PtlEQPoll looks at first */
    _Atomic unsigned empty_polls;
    _Atomic int64_t spin_ns, yield_ns; /* how long waiting threads spin and yield; learnt */
    _Atomic int64_t slept_ns;          /* how long waits are that end asleep, on average */
    _Atomic int64_t probe_at;          /* when what was learnt is put to the test again */
    _Atomic bool probe_due;
    _Atomic unsigned probes;
    struct place place; /* of the first thread, while it polls */
};

struct process {
    struct mutex lock;
    _Atomic unsigned users;  /* PtlInit less PtlFini */
    _Atomic unsigned aborts; /* PtlAbort */
    struct options options;
    struct slmp_key key; /* of the job, from PtlSetJobKey; length 0: none */
    bool asymmetric;
    struct nic *nics[NICS_MAX];
    struct ni *nis[NICS_MAX * NI_KINDS];
    /* The memory of these, also when they are closed. */
    struct nic *nic_memory[NICS_MAX];
    struct ni *ni_memory[NICS_MAX * NI_KINDS];
    unsigned generations[NICS_MAX * NI_KINDS];
};

#endif
