/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between a NIC and a fabric.
 *
 *      NIC ── connect, send ──►  fabric  ── packets ──►  fabric  ── upcalls ──►  NIC
 *
 * A fabric moves messages between NICs: a header of FABRIC_HEADER bytes, which it does not read,
 * and a payload. It knows no Portals. It begins and ends the messages of one peer and one class in
 * the order in which the peer sent them. Where a network delays the payload of one message, the
 * fabric may deliver that of later ones first (fabric_rx.behind). The REQUEST class may wait for
 * both other classes, the ASK class for the RESPONSE class, which waits for nothing
 * (docs/architecture.md, invariant set 2).
 *
 * The NIC's lock is held in every upcall, and in every function but peek() and foresee(). It is
 * let go of in two cases only. In rx_short, rx_header, rx_packet and rx_done the NIC lets go of it
 * while it runs handlers. In a single copy the fabric does, between up->unlock and up->lock. The
 * channel concerned is busy meanwhile, and everything else may change. During a single copy the
 * fabric writes to the memory that the NIC lent it for a deposit: the NIC must not give that memory
 * back to its owner before the fabric calls up->lock.
 *
 * A NIC has one home fabric: shared memory, which has the doorbell and the stats page. It may have
 * a second fabric, for peers that shared memory does not reach. That one has no `home`, and its
 * arm() does not set *word.
 */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include "base/forks.h"
#include "base/list.h"
#include "base/options.h"
#include "base/reason.h"
#include "base/vector.h"
#include "fabric/slmp/key.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FABRIC_HEADER 48
#define FABRIC_STATS 65536u
#define FABRIC_HELD_NOTHING UINT64_MAX
#define FABRIC_POLLS_ALL 2u

/* FABRIC_ASK: requests of handlers that wait for their answers. There are few, and they keep no
 * order with other messages. */
enum fabric_class { FABRIC_REQUEST, FABRIC_RESPONSE, FABRIC_ASK, FABRIC_CLASSES };

/* How a message ended; the values are those of ptl_ni_fail_t. */
enum fabric_status { FABRIC_OK = 0, FABRIC_UNDELIVERABLE = 1, FABRIC_SEGV = 7 };

/* One outgoing message. The NIC fills in the first part. It lends the struct, the buffer and the
 * vector to the fabric until send() returns FABRIC_SENT or the fabric calls `sent`. It takes a
 * vector back earlier by setting `fault`: then the fabric reads no more of it, and the peer learns
 * that the payload is unreadable. */
struct fabric_tx {
    _Alignas(8) uint8_t header[FABRIC_HEADER];
    const void *base;
    uint64_t length;
    const struct vector *vector; /* NULL: the payload is at base; else it is in these parts */
    /* offset of the payload in the parts; skip + length does not wrap */
    uint64_t skip;
    /* if set, the payload is unreadable: the fabric sends only the header, with this status */
    enum fabric_status fault;
    /* send() must send all of it now, or nothing: it may not return FABRIC_QUEUED */
    bool at_once;
    uint8_t from; /* enum fabric_from, which costs time where that is virtual */

    struct list link; /* from here on for the fabric's use */
    struct vector_cursor cursor;
    uint64_t moved;  /* bytes of payload that have been sent */
    uint64_t record; /* line of the ring at which its record begins */
    uint64_t record_end;
};

/* Who sends a message, and where its payload lies: a program sends from host memory, a triggered
 * operation and a reply do so without the host, a handler sends from its own memory or the host's.
 */
enum fabric_from {
    FABRIC_FROM_PROGRAM,
    FABRIC_FROM_HOST,
    FABRIC_FROM_HANDLER,
    FABRIC_FROM_HANDLER_HOST
};

/* The shortest messages: a header, and behind it the whole payload. */
#define FABRIC_LINE_PAYLOAD 8
struct fabric_line {
    _Alignas(8) uint8_t header[FABRIC_HEADER];
    uint64_t payload;
};

/* One incoming message. The fabric fills in the first part before rx_header, the NIC the second in
 * rx_header. The NIC finds RX_DISCARD and no vector there at first; in rx_short it finds the values
 * that the last message has left. It lends a vector to the fabric until rx_done, and takes it back
 * earlier by making the sink RX_DISCARD: then the fabric uses no more of it. */
struct fabric_rx {
    _Alignas(8) uint8_t header[FABRIC_HEADER];
    uint64_t length;
    const void *first; /* the first packet, after rx_header has returned RX_FIRST; else NULL */
    bool torn;         /* the payload will not come: the NIC runs no handlers for the message */
    bool last; /* no message has come behind it yet: its sender may be waiting for the answer */

    /* Kept packets: the NIC still uses the payload from byte `held` on; FABRIC_HELD_NOTHING: none
     * of it. The NIC sets this when it returns RX_KEPT, and raises it as its handlers end. The
     * fabric reads it when it polls, and takes the bytes before it back. */
    uint64_t held;
    uint64_t taken; /* with RX_WAIT from rx_packet: how many bytes of the packets are done */
    /* With RX_WAIT: threads of the NIC's own work on the message, and will poll; no other thread
     * need poll for it. */
    bool elsewhere;
    /* the NIC has matched the message, even if rx_header is not done: the next one may begin */
    bool matched;
    /* earlier messages of the channel are in progress: rx_done may only be called after theirs */
    bool behind;
    bool in_order; /* the fabric itself keeps what it writes of the message behind those */
    bool tells;    /* of virtual time: its handlers have ended, and the NIC waits to tell of it */
    bool overrun;  /* of virtual time: packets from byte `lost` on found no buffer */
    /* Of virtual time: packets come in any order but for the first. Then `held`, `taken` and `lost`
     * count bytes in the order in which they come, and so does the offset of rx_packet(), whose
     * bytes lie at `at` of the message; it gets one packet at a time. */
    bool scattered;
    uint32_t wire; /* bytes of these packets but the last */
    uint64_t lost;
    uint64_t at;
    uint64_t number; /* increases from one message of the channel to the next */

    enum rx_sink { RX_DISCARD, RX_DEPOSIT, RX_PACKETS } sink;
    void *base; /* RX_DEPOSIT: the first `room` bytes of the payload go here */
    uint64_t room;
    const struct vector *vector; /* not NULL: the bytes go into these parts instead */
    uint64_t skip;               /* offset of the bytes in the parts; skip + room does not wrap */
};

enum rx_step {
    RX_GO, /* the step is done */
    /* the fabric calls again later: a handler is suspended, or there is no room for a response */
    RX_WAIT,
    RX_FIRST, /* from rx_header only: the fabric calls again with the first packet */
    /* from rx_packet only: the fabric goes on, but keeps this packet in place, see `held` */
    RX_KEPT,
    RX_HEADED, /* from rx_short only: see there */
    /* from rx_header of a message that is behind others: the fabric calls again when one of those
     * has ended, or only tells of its end */
    RX_TURN
};

/* A fabric's own end and what it keeps of a peer, behind which only that fabric looks: a struct
 * shm_fabric or shm_peer, for one. */
struct fabric;
struct fabric_peer;
struct nic;
struct nic_peer;

#define FABRIC_NOBODY UINT32_MAX /* the uid of a peer that cannot prove one */

/* The identity of a peer, as its fabric knows it. */
struct fabric_address {
    uint32_t nid, pid;
    uint64_t incarnation;
    uint32_t uid;
    /* the peer has died, but messages of it are left; a search by address must not find it */
    bool dead;
    const struct fabric_ops *ops; /* of the fabric that has the peer */
};

/* What a NIC in virtual time has counted: requests that have come, and those that no entry took;
 * packets of others, and their bytes, for which it had no room; entries of the portal table that
 * flow control has disabled. */
struct fabric_tally {
    uint64_t requests, dropped;
    uint64_t lost, lost_bytes, disabled;
};

struct fabric_upcalls {
    /* A peer has made contact, or was reached. Returns the NIC's object for it, or NULL to refuse
     * it. `fp` is the fabric's object. */
    struct nic_peer *(*peer_up)(struct nic *, const struct fabric_address *,
                                struct fabric_peer *fp);
    /* The peer is gone. The fabric has given back every tx of it by `sent`, and has ended every rx
     * by rx_done. */
    void (*peer_down)(struct nic *, struct nic_peer *);
    /* Make an rx object for a channel of a peer, and free one. The first object lasts as long as
     * the channel, and is used for each message that has none in progress before it; further ones
     * are for messages behind others. */
    struct fabric_rx *(*rx_new)(struct nic_peer *, enum fabric_class);
    void (*rx_free)(struct nic_peer *, struct fabric_rx *);

    /* Takes a message that has come whole. RX_GO: it has ended. RX_WAIT: its payload is placed, and
     * the fabric calls rx_done later. RX_FIRST: the NIC has done nothing, as with an ask, and the
     * fabric begins with rx_header. RX_HEADED: as after an rx_header that has returned RX_GO. */
    enum rx_step (*rx_short)(struct nic_peer *, struct fabric_rx *, const void *payload);
    enum rx_step (*rx_header)(struct nic_peer *, struct fabric_rx *);
    /* `length` bytes of payload from `offset` on, in place: one packet, or several that follow each
     * other in memory. The packets of a message come in order; all but the last have the packet
     * size. After RX_WAIT they come again, without the first rx->taken bytes, and perhaps with more
     * behind them. */
    enum rx_step (*rx_packet)(struct nic_peer *, struct fabric_rx *, void *data, uint64_t offset,
                              size_t length);
    enum rx_step (*rx_done)(struct nic_peer *, struct fabric_rx *, enum fabric_status);
    /* The fabric no longer uses the buffer of a tx for which send() has returned FABRIC_QUEUED. */
    void (*sent)(struct nic_peer *, struct fabric_tx *, enum fabric_status);
    /* Whether the NIC expects a response from the peer. A fabric that cannot see the death of a
     * peer then probes it. */
    bool (*expects)(struct nic_peer *);
    /* Whether the NIC needs the connection: it expects a response, has messages for the peer, or
     * works on messages of it. A fabric that is short of room may end a connection that the NIC
     * does not need; no message is lost by that. */
    bool (*needs)(struct nic_peer *);

    void (*lock)(struct nic *);
    void (*unlock)(struct nic *);
    /* The program has used virtual time, which is to pass before its call ends. */
    void (*time_used)(struct nic *);
    /* While a thread waits in virtual time another one may have the lock. */
    void (*give_lock)(struct nic *);
    void (*take_lock)(struct nic *);
    /* Something has happened in virtual time: the NIC does all that can be done now. */
    void (*happened)(struct nic *);
    void (*tally)(struct nic *, struct fabric_tally *);
    /* Of a message in virtual time that is behind others, and has come: rx_early() has its handlers
     * end, although the message itself may not yet. rx_passes() says whether it may end before
     * `other`, which came before it. */
    void (*rx_early)(struct nic_peer *, struct fabric_rx *);
    /* An HPU of the NIC fails. */
    void (*hpu_fails)(struct nic *, unsigned hpu);
    /* HPUs that it shares may be free now. */
    void (*hpus_free)(struct nic *);
    bool (*rx_passes)(const struct fabric_rx *, const struct fabric_rx *other);
};

struct fabric_setup {
    struct nic *nic;
    size_t nic_size; /* bytes of it */
    const struct fabric_upcalls *up;
    const struct options *options;
    uint32_t nid;
    uint32_t pid; /* the wanted PID; 0: any */
    uint64_t incarnation;
    size_t packet_size;
    const struct slmp_key *key; /* key of the job, unless an option names another; NULL: none */
    bool asymmetric;            /* this process takes part in membarrier */
    bool own_only;              /* only messages of the NIC to itself come through this fabric */
    bool alone;                 /* no peers come through another fabric */
};

enum fabric_send { FABRIC_SENT, FABRIC_QUEUED, FABRIC_FULL };
/* the header was sent, and says that the payload is unreadable */
enum fabric_short { SHORT_SENT, SHORT_FULL, SHORT_UNREADABLE };
/* fabric_sent_short() converts the result of a short send to that of send(). */
static inline enum fabric_send fabric_sent_short(struct fabric_tx *tx, enum fabric_short sent)
{
    tx->fault = sent == SHORT_UNREADABLE ? FABRIC_SEGV : tx->fault;
    return sent == SHORT_FULL ? FABRIC_FULL : FABRIC_SENT;
}

enum fabric_connect { FABRIC_UP, FABRIC_LATER, FABRIC_SOON, FABRIC_ELSEWHERE, FABRIC_NEVER };
enum doorbell_kind { DOORBELL_FD, DOORBELL_FUTEX };

struct fabric_info {
    size_t inline_max;       /* payloads up to this many bytes leave at once */
    size_t peer_memory;      /* bytes of memory for one connection, both directions */
    size_t peer_memory_most; /* ... once large messages have gone both ways, in both classes */
    unsigned max_peers;
    int64_t contact_ns; /* how long it may take until a peer that has answered is connected */
};

/* Figures of a network fabric and its peers, for the stats page. They count from the fabric's
 * opening on. */
#define FABRIC_REPORT_PEERS 64
struct fabric_report {
    uint64_t packets_in, packets_out;
    uint64_t resent, timeouts, duplicates;
    uint64_t dropped;   /* packets that were malformed, not admitted, or found no room */
    uint64_t forged;    /* packets dropped since they did not prove to be from the job */
    uint64_t replayed;  /* packets dropped since they had come before; only with a job key */
    uint64_t shortened; /* how often packets were made shorter for a path */
    uint64_t peers;     /* peers now; the first ones are in: */
    struct fabric_peer_report {
        uint32_t nid, pid;
        int64_t rtt; /* smoothed, in nanoseconds; 0: not measured yet */
        /* packets of the REQUEST class that may be unacknowledged, and that are */
        uint32_t window, flight;
        uint64_t resent, dropped;
    } peer[FABRIC_REPORT_PEERS];
};

/* The HPUs of a simulated NIC: how many, their clock, how many calls of an entry's handlers may
 * wait for them, and how many messages of a sender handlers of an entry have at a time; what a call
 * of a handler without device code takes, after what time a suspended one looks again, and the
 * latency of its DMA engine; in picoseconds. */
struct fabric_hpus {
    unsigned count, clock_mhz, queue, messages;
    uint64_t native, look, dma_latency;
    bool profiled; /* spent() is to be told where RV32 code spends its cycles */
    bool shared;   /* with NICs of other processes: hpu_take() and what follows it */
};

/* A place in RV32 code; file NULL: its line is not known. */
struct fabric_place {
    const char *handler, *function, *file;
    int line;
};

/* Virtual time, of a home that has it: nothing happens but in these functions and in poll(), under
 * the NIC's lock. Times are in picoseconds where nothing else is said. */
/* That an HPU was taken by a handler, for counting. Times are in ps. */
struct fabric_took {
    unsigned hpu;
    bool begins;        /* the call, rather than goes on after it was suspended */
    uint64_t waited;    /* if it begins: how long it waited for an HPU */
    unsigned waiting;   /* if it begins: calls that waited then, itself included */
    uint64_t shortage;  /* a time in which a call always waited has ended, and was so long */
    uint64_t begin, ps; /* when, and for how long */
    uintptr_t handler;  /* the function, by which handlers differ */
    /* Writes its name. */
    void (*name)(uintptr_t handler, char *text, size_t size);
    uint64_t *calls; /* for the home, of each message: 0 before its first call */
};

/* A call that an HPU begins, or goes on with. */
struct fabric_begins {
    unsigned hpu;
    uint64_t queued, lead; /* when it was queued, or could go on; lead() of then */
};

/* What a thread of the program waits for, for people who look for why nothing happens: a counter,
 * or else an event. */
struct fabric_waits {
    bool counter;
    uint32_t handle; /* of the counter */
    uint64_t counted, wanted;
    /* The oldest header of the interface that no entry has matched, with its place and bits. */
    bool unmatched;
    uint32_t pt, nid, pid; /* `nid` is the rank, and `pid` 0, where addresses are ranks */
    uint64_t bits;
};

struct fabric_time {
    uint32_t (*nid)(void);  /* of this process; 0: it is in no simulation, and the log says so */
    int64_t (*clock)(void); /* of the process, in nanoseconds */
    int64_t (*clock_ps)(void);
    uint64_t (*now)(struct fabric *);
    /* Lets time pass until something has happened, or until `end`, in ns; negative: for ever. */
    void (*wait)(struct fabric *, int64_t end);
    /* Tells what the wait that begins is for. */
    void (*waits_for)(struct fabric *, const struct fabric_waits *);
    /* Lets the time pass that the program has used. */
    void (*settle)(struct fabric *);
    /* Has the other threads of the process that wait for the NIC look again. */
    void (*changed)(struct fabric *);
    /* Has something happen at a time, with the lock held; an `arg` that is `owned` is freed if it
     * never does. False: no memory. */
    bool (*at)(struct fabric *, uint64_t time, void (*happen)(void *arg), void *arg, bool owned);
    /* Of the process, which may have no NIC: fence() waits until all ranks of the job are in it,
     * compute() lets time pass. */
    void (*fence)(void);
    void (*compute)(uint64_t ps);
    void (*hpus)(struct fabric *, struct fabric_hpus *);
    void (*took)(struct fabric *, const struct fabric_took *);
    /* Gives the cycles and the instructions of a place, two numbers for the caller to add to. */
    uint64_t *(*spent)(struct fabric *, const struct fabric_place *);
    /* begins() is told that a call begins now; lead() is how much sooner what happens now would,
     * with one HPU more. Both are for the report of what limits a job. */
    void (*begins)(struct fabric *, const struct fabric_begins *);
    uint64_t (*lead)(struct fabric *);
    /* HPUs that several processes share. hpu_take() takes one for who has waited since a time;
     * false: another process has it, or is to have it first. hpu_give() gives it back. hpu_wants()
     * tells since when calls wait for each (UINT64_MAX: none does) and returns those, as bits, that
     * are free for them; when others become so the upcall hpus_free() follows. */
    bool (*hpu_take)(struct fabric *, unsigned hpu, uint64_t since);
    void (*hpu_give)(struct fabric *, unsigned hpu);
    uint64_t (*hpu_wants)(struct fabric *, const uint64_t *since);
    /* Has the DMA engine take bytes of a handler's; returns when it has them all. */
    uint64_t (*dma)(struct fabric *, uint64_t bytes, bool to_host);
    /* When what handlers have written is in host memory; with `tells` the host is told then, for
     * which the engine has a transfer if there is nothing on its way. */
    uint64_t (*written)(struct fabric *, bool tells);
    /* Whether the egress queue takes one more message of a handler's own memory. */
    bool (*room)(struct fabric *);
    /* Of the process: it reads or writes so many bytes of host memory. */
    void (*touch)(uint64_t bytes);
    /* Of the process: it looks at memory, and finds nothing; it begins a phase. */
    void (*pause)(void);
    void (*mark)(const char *name);
};

/* Functions that only a home fabric has. */
struct fabric_home {
    const struct fabric_time *time; /* NULL: its time is that of the clock */
    _Atomic uint32_t *(*doorbell)(struct fabric *);
    /* Returns FABRIC_STATS zeroed bytes, which the NIC writes and other processes of the user can
     * read as long as the NIC is open. */
    void *(*stats)(struct fabric *);
    /* Whether peers have taken any message for them since the last call: a thread that waits should
     * then go on polling. */
    bool (*flows)(struct fabric *);
    /* Tells peers on which core a thread of this process waits (-1: on none), and adds the cores on
     * which their threads wait to `others`. */
    void (*waits_on)(struct fabric *, int core, int64_t now, cpu_set_t *others);
    /* Called in a forked child, which has none of its parent's fabrics. */
    void (*forget)(void);
};

struct fabric_ops {
    const char *name;
    /* Opens the fabric for a NIC. 0, or -errno, -EADDRINUSE if the pid is taken; then `why` has a
     * line that names the error and the remedy. */
    int (*open)(const struct fabric_setup *, struct fabric **, uint32_t *pid, struct reason *why);
    /* Closes the fabric. Threads that have read its address before may still call peek() and
     * foresee(). So the fabric's memory, and all that these two functions read, is never freed, nor
     * used again as another type (invariant set 7). */
    void (*close)(struct fabric *);
    /* Looks for the process at an address. FABRIC_UP: it is connected, and `peer_up` was called.
     * FABRIC_LATER: there is none, at least yet. FABRIC_SOON: it has answered, and will be
     * connected or given up. FABRIC_ELSEWHERE: it exists, but takes messages by another fabric
     * only. FABRIC_NEVER: it cannot be reached, and `why` says why. */
    enum fabric_connect (*connect)(struct fabric *, uint32_t nid, uint32_t pid, struct reason *why);
    enum fabric_send (*send)(struct fabric_peer *, enum fabric_class, struct fabric_tx *);
    /* Sends a payload of at most info.inline_max bytes: now or not at all. The header is aligned to
     * 8 bytes. */
    enum fabric_short (*send_short)(struct fabric_peer *, enum fabric_class, const void *header,
                                    const void *payload, size_t length);
    /* send_short() for a payload of at most FABRIC_LINE_PAYLOAD bytes, which lies behind the header
     * in the NIC's own memory. Asks are not sent by it. */
    enum fabric_short (*send_line)(struct fabric_peer *, enum fabric_class,
                                   const struct fabric_line *, size_t length);
    /* Whether the peer has not taken all messages for it. */
    bool (*unsent)(struct fabric_peer *);
    /* Makes all progress that is possible now; true if there was any. After responses it may leave
     * requests to the next call: FABRIC_POLLS_ALL calls look at every message that had come before
     * the first of them. */
    bool (*poll)(struct fabric *);
    /* Without the lock: false says that poll() would find nothing. */
    bool (*peek)(struct fabric *);
    /* Prefetch, without the lock, the lines that the next look for requests will read; and the line
     * that the next request to a peer will be written to. NULL if the fabric has nothing to
     * prefetch; a home fabric has both. */
    void (*foresee)(struct fabric *);
    void (*foresend)(struct fabric_peer *);
    /* The descriptor that the NIC thread waits on. It becomes readable when the doorbell rings for
     * DOORBELL_FD, or a peer dies; then the NIC thread calls fd_event(). */
    int (*fd)(struct fabric *);
    void (*fd_event)(struct fabric *);
    /* Prepares for sleep (invariant set 1). True: there is nothing left to do, and the doorbell is
     * ASLEEP with the value *word. disarm() ends that state. */
    bool (*arm)(struct fabric *, enum doorbell_kind, uint32_t *word);
    void (*disarm)(struct fabric *, bool polled);
    /* When the NIC thread must look again without being rung, by clock_ns(); -1: never. */
    int64_t (*next_deadline)(struct fabric *);
    void (*info)(const struct options *, struct fabric_info *);
    /* NULL: the fabric has no figures. */
    void (*report)(struct fabric *, struct fabric_report *);
    const struct fabric_home *home; /* NULL: it cannot be a home fabric */
};

/* The doorbell word (invariant set 1). */
#define DOORBELL_STATE 7u
#define DOORBELL_AWAKE 0u
#define DOORBELL_POLLED 1u
#define DOORBELL_ASLEEP_FD 2u
#define DOORBELL_ASLEEP_FUTEX 3u
#define DOORBELL_RUNG 8u
#define DOORBELL_GENERATION 16u /* added at each change of the state */

static inline bool doorbell_asleep(uint32_t word)
{
    return (word & DOORBELL_STATE) >= DOORBELL_ASLEEP_FD;
}

/* fabric_none is the home fabric of a closed NIC: no message comes. */
extern const struct fabric_ops fabric_shm, fabric_udp, fabric_sim, fabric_none;

#endif
