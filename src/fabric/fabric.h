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

/* Asks are requests of handlers that wait for their answers: few, and in no order with others. */
enum fabric_class { FABRIC_REQUEST, FABRIC_RESPONSE, FABRIC_ASK, FABRIC_CLASSES };

/* How a message ended; the values are those of ptl_ni_fail_t. */
enum fabric_status { FABRIC_OK = 0, FABRIC_UNDELIVERABLE = 1, FABRIC_SEGV = 7 };

/* One outgoing message. The NIC fills the first part; it lends the struct, the buffer and
 * the vector to the fabric until send() says FABRIC_SENT or the upcall `sent` comes. It
 * takes a vector back before that by setting `fault`: no more of it is looked at, and the
 * peer learns that the payload is unreadable. */
struct fabric_tx {
    _Alignas(8) uint8_t header[FABRIC_HEADER];
    const void *base;
    uint64_t length;
    const struct vector *vector; /* NULL: the payload is at base; else it is in the vector */
    uint64_t skip;               /* its offset in the vector; skip + length does not wrap */
    enum fabric_status fault;    /* set: the payload is unreadable, send the header alone with it */
    bool at_once;                /* send all of it now, or nothing: FABRIC_QUEUED will not do */

    struct list link; /* from here the fabric's */
    struct vector_cursor cursor;
    uint64_t moved;  /* bytes of payload that have left */
    uint64_t record; /* where its record is in the ring */
    uint64_t record_end;
};

/* The shortest messages: a header, and all of the payload. */
#define FABRIC_LINE_PAYLOAD 8
struct fabric_line {
    _Alignas(8) uint8_t header[FABRIC_HEADER];
    uint64_t payload;
};

/* One incoming message. The fabric fills the first part before rx_header, the NIC the
 * second in rx_header, where it finds RX_DISCARD and no vector at first; in rx_short it
 * finds what the message before has left. A vector is lent to the fabric until rx_done; the
 * NIC takes it back before that by making the sink RX_DISCARD: no more of it is looked at. */
struct fabric_rx {
    _Alignas(8) uint8_t header[FABRIC_HEADER];
    uint64_t length;
    const void *first; /* its first packet, when rx_header asked for it; else NULL */
    size_t first_length;
    bool torn; /* its payload will not come: run no handlers for it */
    bool last; /* nothing is behind it yet: who sent it may wait for its answer */

    /* Kept packets: payload from the byte `held` on is in use by the NIC, or nothing is
     * (FABRIC_HELD_NOTHING). The NIC sets it when it says RX_KEPT, and raises it as its
     * handlers end; what comes before is the fabric's again, which looks when it polls. */
    uint64_t held;
    uint64_t taken; /* with RX_WAIT from rx_packet: bytes of the packets that are done */
    /* With RX_WAIT: threads of the NIC's own have it in hand, and will poll; nobody else
     * needs to. */
    bool elsewhere;
    bool matched; /* the NIC knows whose it is, though rx_header is not done: the next may begin */
    bool behind;  /* messages of its channel before it are under way: rx_done comes after theirs */
    uint64_t number; /* goes up from one message of the channel to the next */

    enum rx_sink { RX_DISCARD, RX_DEPOSIT, RX_PACKETS } sink;
    void *base; /* RX_DEPOSIT: the first `room` bytes of the payload go here */
    uint64_t room;
    const struct vector *vector; /* not NULL: the bytes go into the vector instead */
    uint64_t skip;               /* their offset in the vector; skip + room does not wrap */
};

enum rx_step {
    RX_GO,    /* done with this step */
    RX_WAIT,  /* call again later: a handler is suspended, or there is no room for a response */
    RX_FIRST, /* from rx_header only: call again with the first packet */
    RX_KEPT, /* from rx_packet only: go on with what follows, but leave this in place, see `held` */
    RX_HEADED, /* from rx_short only: see there */
    RX_TURN    /* from rx_header of one that is behind: call again when one before it has ended */
};

/* A fabric's own end and what it keeps of a peer, behind which only that fabric looks: a struct
 * shm_fabric or shm_peer, for one. */
struct fabric;
struct fabric_peer;
struct nic;
struct nic_peer;

#define FABRIC_NOBODY UINT32_MAX /* the uid of who cannot prove to have one */

/* The identity of a peer, as its fabric knows it. */
struct fabric_address {
    uint32_t nid, pid;
    uint64_t incarnation;
    uint32_t uid;
    bool dead;                    /* it has died, and messages of it are left: no search finds it */
    const struct fabric_ops *ops; /* the fabric's */
};

struct fabric_upcalls {
    /* A peer made contact, or was reached. Returns the NIC's object for it, or
     * NULL to refuse it. `fp` is the fabric's. */
    struct nic_peer *(*peer_up)(struct nic *, const struct fabric_address *,
                                struct fabric_peer *fp);
    /* The peer is gone; every tx of it was given back through `sent`, every rx
     * ended through rx_done. */
    void (*peer_down)(struct nic *, struct nic_peer *);
    /* An rx object for one channel of a peer, and its end. The first one lasts as long as the
     * channel and takes whatever begins with nothing before it; others are for those behind. */
    struct fabric_rx *(*rx_new)(struct nic_peer *, enum fabric_class);
    void (*rx_free)(struct nic_peer *, struct fabric_rx *);

    /* The short cut for a message that is here whole, and is no ask: RX_GO: it is done; RX_WAIT:
     * its payload is placed, and rx_done wants to be called later; RX_FIRST: it
     * goes the ordinary way, which begins with rx_header; RX_HEADED: it goes the
     * rest of that way, the part of rx_header is done. */
    enum rx_step (*rx_short)(struct nic_peer *, struct fabric_rx *, const void *payload);
    enum rx_step (*rx_header)(struct nic_peer *, struct fabric_rx *);
    /* `length` bytes of payload that begin at `offset`, in place: a packet, or several, one
     * behind the other in memory, too. The packets of a message come in order; all but the last
     * have the packet size. After RX_WAIT they come again, less the first rx->taken bytes,
     * and perhaps more behind them. */
    enum rx_step (*rx_packet)(struct nic_peer *, struct fabric_rx *, void *data, uint64_t offset,
                              size_t length);
    enum rx_step (*rx_done)(struct nic_peer *, struct fabric_rx *, enum fabric_status);
    /* The buffer of a tx that send() kept is the NIC's again. */
    void (*sent)(struct nic_peer *, struct fabric_tx *, enum fabric_status);
    /* Whether the NIC expects a response from the peer: a fabric that does not see a peer die
     * asks then whether it lives. */
    bool (*expects)(struct nic_peer *);
    /* Whether the NIC needs the peer as it is: it expects a response, has something for it, or
     * has something of it in hand. Without that a fabric that is short of room may end it, and
     * nobody notices. */
    bool (*needs)(struct nic_peer *);

    void (*lock)(struct nic *);
    void (*unlock)(struct nic *);
};

struct fabric_setup {
    struct nic *nic;
    const struct fabric_upcalls *up;
    const struct options *options;
    uint32_t nid;
    uint32_t pid; /* wanted; 0: any */
    uint64_t incarnation;
    size_t packet_size;
    const struct slmp_key *key; /* of the job, unless an option names another; NULL: none */
    bool asymmetric;            /* this process answers membarrier */
    bool own_only;              /* no peer but oneself comes through this fabric */
    bool alone;                 /* no peer comes through another one */
};

enum fabric_send { FABRIC_SENT, FABRIC_QUEUED, FABRIC_FULL };
enum fabric_short { SHORT_SENT, SHORT_FULL, SHORT_UNREADABLE /* sent, and says so */ };
/* fabric_sent_short() is what send() says of a message that went as a short one. */
static inline enum fabric_send fabric_sent_short(struct fabric_tx *tx, enum fabric_short sent)
{
    tx->fault = sent == SHORT_UNREADABLE ? FABRIC_SEGV : tx->fault;
    return sent == SHORT_FULL ? FABRIC_FULL : FABRIC_SENT;
}

enum fabric_connect { FABRIC_UP, FABRIC_LATER, FABRIC_SOON, FABRIC_ELSEWHERE, FABRIC_NEVER };
enum doorbell_kind { DOORBELL_FD, DOORBELL_FUTEX };

struct fabric_info {
    size_t inline_max;       /* payloads up to here leave at once */
    size_t peer_memory;      /* bytes of one connection, both directions */
    size_t peer_memory_most; /* once large messages went both ways, in both classes */
    unsigned max_peers;
    int64_t contact_ns; /* one that has answered may take so long until contact is made */
};

/* Figures of a fabric over a network and of its peers, for the stats page. Counts begin with the
 * fabric.
 */
#define FABRIC_REPORT_PEERS 64
struct fabric_report {
    uint64_t packets_in, packets_out;
    uint64_t resent, timeouts, duplicates;
    uint64_t dropped;   /* not understood, not welcome, or no room for them */
    uint64_t forged;    /* dropped since they proved nothing */
    uint64_t replayed;  /* dropped since they had come before; only with a job's key */
    uint64_t shortened; /* times that packets became shorter for a path */
    uint64_t peers;     /* now; the first of them: */
    struct fabric_peer_report {
        uint32_t nid, pid;
        int64_t rtt;             /* smoothed, in nanoseconds; 0: not measured */
        uint32_t window, flight; /* packets of the REQUEST class that may be, and are, under way */
        uint64_t resent, dropped;
    } peer[FABRIC_REPORT_PEERS];
};

/* The functions that only a NIC's home has. */
struct fabric_home {
    _Atomic uint32_t *(*doorbell)(struct fabric *);
    /* Returns FABRIC_STATS zeroed bytes, which the NIC writes and other processes of the user can
     * read as long as the NIC is open. */
    void *(*stats)(struct fabric *);
    /* Tells whether peers have taken any message that left for them since this was last asked: a
     * thread that waits should then go on polling. */
    bool (*flows)(struct fabric *);
    /* Tells peers on which core a thread of this process waits (-1: on none), and adds to `others`
     * those on which threads of theirs do. */
    void (*waits_on)(struct fabric *, int core, int64_t now, cpu_set_t *others);
    /* For a forked child, which has none of its parent's fabrics. */
    void (*forget)(void);
};

struct fabric_ops {
    const char *name;
    /* Opens a NIC's end. 0, or -errno: -EADDRINUSE when the pid is taken;
     * `why` then holds a line that says what and how to mend it. */
    int (*open)(const struct fabric_setup *, struct fabric **, uint32_t *pid, struct reason *why);
    /* Others may still peek() and foresee(), by an address that they had before: its memory, and
     * what these look at, stay what they are (invariant set 7). */
    void (*close)(struct fabric *);
    /* Looks for the process at an address. FABRIC_UP: `peer_up` was called.
     * FABRIC_LATER: nobody is there (yet). FABRIC_SOON: it has answered, and contact will come
     * or be given up. FABRIC_ELSEWHERE: it is there and takes
     * messages through another fabric only. FABRIC_NEVER: `why` says why. */
    enum fabric_connect (*connect)(struct fabric *, uint32_t nid, uint32_t pid, struct reason *why);
    enum fabric_send (*send)(struct fabric_peer *, enum fabric_class, struct fabric_tx *);
    /* The short cut for payloads of at most info.inline_max bytes: the message
     * leaves now or not at all. Its header is a multiple of 8 in memory. */
    enum fabric_short (*send_short)(struct fabric_peer *, enum fabric_class, const void *header,
                                    const void *payload, size_t length);
    /* The same for a payload of at most FABRIC_LINE_PAYLOAD bytes, which stands behind the header
     * already, in the NIC's own memory. Asks do not go so. */
    enum fabric_short (*send_line)(struct fabric_peer *, enum fabric_class,
                                   const struct fabric_line *, size_t length);
    /* True while a message of the peer has not been taken out by it. */
    bool (*unsent)(struct fabric_peer *);
    /* Moves what can be moved; true if anything did. Requests may wait for the next call where
     * responses came: FABRIC_POLLS_ALL calls have looked at all that was there before the first. */
    bool (*poll)(struct fabric *);
    /* A look that needs no lock: false says that poll() would find nothing. */
    bool (*peek)(struct fabric *);
    /* Fetches, without the lock, what the next look for requests will look at; and for writing,
     * what the next request to a peer is written to. NULL: there is nothing to fetch, which
     * cannot be said of a NIC's home. */
    void (*foresee)(struct fabric *);
    void (*foresend)(struct fabric_peer *);
    /* The descriptor that the NIC thread waits on; it becomes readable when
     * the doorbell rings for DOORBELL_FD or a peer dies. fd_event() serves it. */
    int (*fd)(struct fabric *);
    void (*fd_event)(struct fabric *);
    /* Prepares for sleep (invariant set 1): true if nothing is left to do and the doorbell
     * is ASLEEP; *word is then its value. disarm() ends it. */
    bool (*arm)(struct fabric *, enum doorbell_kind, uint32_t *word);
    void (*disarm)(struct fabric *, bool polled);
    /* When the NIC thread must look again without being rung, on clock_ns();
     * -1: never. */
    int64_t (*next_deadline)(struct fabric *);
    void (*info)(const struct options *, struct fabric_info *);
    /* NULL: it has nothing to tell. */
    void (*report)(struct fabric *, struct fabric_report *);
    const struct fabric_home *home; /* NULL: it is nobody's */
};

/* The doorbell word (invariant set 1). */
#define DOORBELL_STATE 7u
#define DOORBELL_AWAKE 0u
#define DOORBELL_POLLED 1u
#define DOORBELL_ASLEEP_FD 2u
#define DOORBELL_ASLEEP_FUTEX 3u
#define DOORBELL_RUNG 8u
#define DOORBELL_GENERATION 16u /* increment */

static inline bool doorbell_asleep(uint32_t word)
{
    return (word & DOORBELL_STATE) >= DOORBELL_ASLEEP_FD;
}

/* fabric_none is a closed NIC's: nothing comes there. */
extern const struct fabric_ops fabric_shm, fabric_udp, fabric_none;

#endif
